/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check has found out: a list of findings, how many of each severity,
 * and what they come to. docs/check.md has the ids. Pure.
 */
#ifndef COORDINATOR_FINDINGS_H
#define COORDINATOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/arena.h"
#include "coordinator/outcome.h"
#include "proto/message.h"

enum {
    /* Passes that are kept one by one, so that what matters finds room. */
    FINDINGS_PASSES_MAX = GPUL_CHECK_FINDINGS_MAX / 2,
    FINDINGS_SEVERITIES = GPUL__FINDING__SEVERITY__UNKNOWN + 1,
    FINDINGS_CODES = 4, /* exit codes that a finding may stand for */
};

/* One finding, borrowed for the call. A text that is NULL counts as "". What
 * is over its bound in proto/limits.h is cut. */
struct finding {
    const char *id; /* "NET-110" */
    Gpul__Finding__Severity severity;
    const char *nodes; /* host-list expression; "": of none in particular */
    const char *text;
    const char *value;
    const char *expected;
    const char *remedy;
};

struct findings {
    Gpul__Finding **items;
    uint64_t *hashes; /* of id, nodes and text */
    size_t count;
    size_t capacity;
    size_t told; /* of these, already on their way to the front end */
    uint32_t counts[FINDINGS_SEVERITIES];
    uint32_t untold;                 /* counted, and not among the items */
    uint32_t failed[FINDINGS_CODES]; /* of the failed, by their code */
    struct arena memory;
};

/* An all-zero list is empty. */
void findings_release(struct findings *f);

/* Add a finding, unless the same (id, nodes, text) is there. Errors:
 * GPUL_ENOMEM, and nothing changed. */
int findings_add(struct findings *f, const struct finding *finding);

/* The next ones that have not been told, at most `max`; they count as told
 * from now on. Returns how many; `out` borrows them. */
size_t findings_next(struct findings *f, Gpul__Finding ***out, size_t max);

void findings_fill(const struct findings *f, Gpul__FindingCounts *out);

/* Which exit code a failed finding of this id stands for: 21 for DATA-8xx, 125
 * for PERF-709 (the test itself was none), 30 for other PERF-7xx, 20 for any
 * other. */
enum outcome_code finding_code(const char *id);

/* What they come to: 21 before 20 before 30 before 125, 0 if nothing failed.
 * `is_strict`: a warning, and what could not be checked, count as failed (20)
 * too. */
enum outcome_code findings_code(const struct findings *f, bool is_strict);

/* The first finding that has decided findings_code; NULL: none is kept. */
const Gpul__Finding *findings_cause(const struct findings *f,
                                    enum outcome_code code);

/* Fold names into one host-list expression, as many of them as fit. */
void finding_fold(char out[GPUL_CHECK_NODES_BYTES_MAX + 1],
                  const char *const *names, size_t count);

#endif
