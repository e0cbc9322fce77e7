/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of what nodes say of themselves: each has an ID, looks at one
 * node or at the differences between nodes, and ends in a finding that names
 * nodes, values and what to do. docs/checks.md is the catalogue. Pure.
 *
 * Happy path: checks_init, checks_add for every node in any order,
 * checks_add_sentence for what others have found, checks_judge once; then
 * `findings`. A node that was never added is
 * `unknown`, and so is a fact that it did not tell: neither ever passes.
 *
 * Memory: for each check and each variable that is compared, up to
 * TALLY_ANSWERS_MAX answers with one bit a node; nodes mostly agree, so it is
 * a few kB for each at 10,000 nodes. Work: one pass over a survey for each
 * node.
 */
#ifndef COORDINATOR_CHECKS_H
#define COORDINATOR_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/roster.h"
#include "coordinator/tally.h"
#include "coordinator/text.h"
#include "proto/message.h"

/* gpul.Finding.Severity, in short. */
enum check_severity {
    CHECK_NONE = GPUL__FINDING__SEVERITY__NONE, /* it does not apply */
    CHECK_PASS = GPUL__FINDING__SEVERITY__PASS,
    CHECK_WARN = GPUL__FINDING__SEVERITY__WARN,
    CHECK_FAIL = GPUL__FINDING__SEVERITY__FAIL,
    CHECK_UNKNOWN = GPUL__FINDING__SEVERITY__UNKNOWN,
    CHECK_SEVERITIES,
};

/* What the job will ask of a node. */
struct checks_need {
    uint32_t job_ranks;  /* 0: as many as nodes */
    uint32_t node_ranks; /* of the node with most; 0: one */
    /* Host memory to GPU memory; 0: 1.5. Within 3 % counts as equal, since
     * MemTotal is that much below what is installed. */
    double memory_ratio;
    /* That a rank reads of the data set; 0: CHECKS_DATA_BYTES_PER_S. */
    double data_bytes_per_s;
};

/* An image classifier on an H100 (MLPerf Storage 1.0, resnet50: 400 samples of
 * 114,660 bytes each 0.224 s). */
#define CHECKS_DATA_BYTES_PER_S 205e6

struct check;

struct checks_finding {
    const struct check *check;
    enum check_severity severity;
    uint64_t *nodes; /* owned; bits, by node rank; NULL: the job */
    char *text;      /* owned: a sentence with names and values */
    char *value;     /* owned; "": none to show */
    char *expected;  /* owned; likewise */
};

struct checks {
    uint32_t node_count;
    struct checks_need need;
    struct checks_state *state; /* what was added */
    struct checks_finding *findings;
    size_t finding_count;
    uint32_t counts[CHECK_SEVERITIES]; /* of findings; PASS: one a check */
};

/* Returns 0 or GPUL_ENOMEM; `c` can be released either way. */
int checks_init(struct checks *c, uint32_t node_count,
                const struct checks_need *need);

/* An all-zero one may be released too. */
void checks_release(struct checks *c);

/* What one node says; a second survey of a node is left out. Returns 0 or
 * GPUL_ENOMEM. */
int checks_add(struct checks *c, uint32_t node_rank,
               const Gpul__Survey *survey);

/* What another part of the job has found: "ID sentence". Where a survey tells
 * the same ID too, that one is kept. `nodes` are bits, NULL: the job. Returns
 * 0, GPUL_ENOMEM, or GPUL_ENOTFOUND where no check has that ID. */
int checks_add_sentence(struct checks *c, enum check_severity severity,
                        const uint64_t *nodes, const char *sentence);

/* All is in: fill `findings`, FAIL before WARN before UNKNOWN before PASS, each
 * kind by ID, then by its first node. Returns 0 or GPUL_ENOMEM. */
int checks_judge(struct checks *c, const struct roster *r);

/* Is the node one of those that the finding names? */
bool checks_names(const struct checks_finding *f, uint32_t node_rank);

/* What to do about it; "" for a pass. */
const char *checks_remedy(const struct checks_finding *f);

/* "HOST-502" */
const char *check_id(const struct check *check);

#endif
