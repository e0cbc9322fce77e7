/* SPDX-License-Identifier: Apache-2.0
 *
 * How far each probe of the self-test on GPUs has come, and what it said
 * last. Pure.
 *
 * Counting is O(1) for each report, whatever the number of ranks; naming who
 * is missing looks at every rank and happens when a bound is near.
 */
#ifndef COORDINATOR_PROBES_H
#define COORDINATOR_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/facts.h"
#include "coordinator/text.h"

/* What a probe leaves behind it, in this order. */
enum probes_step {
    PROBES_NOTHING,
    PROBES_CUDA, /* device chosen, context there */
    PROBES_INIT, /* communicator ready */
    PROBES_COLL, /* sweep done */
    PROBES_END,  /* result good, process gone */
    PROBES_STEP_COUNT,
};

/* Of a probe's last words; longer ones are cut. */
enum { PROBES_WORDS_BYTES_MAX = 200 };

struct probes {
    uint32_t count;
    uint8_t *steps;                     /* by rank, enum probes_step */
    char **words;                       /* by rank, NULL: none */
    uint32_t passed[PROBES_STEP_COUNT]; /* ranks that came so far, or further */
};

/* Returns 0 or GPUL_ENOMEM; `p` can be released either way. */
int probes_init(struct probes *p, uint32_t count);

/* An all-zero one may be released too. */
void probes_release(struct probes *p);

/* This step, and with it every one before, is behind the rank. Returns false
 * if that is not news. */
bool probes_pass(struct probes *p, uint32_t rank, enum probes_step step);

/* Returns 0 or GPUL_ENOMEM. */
int probes_say(struct probes *p, uint32_t rank, const char *words);

/* Does what is waited for lack this rank? */
typedef bool (*probes_lack_fn)(const struct probes *p, uint32_t rank,
                               const void *arg);

/* "rank 7 (node c, device GPU-1); it said last: ..." or "ranks 3,8-9 (nodes
 * node[1-2]); rank 3 (device GPU-2) said last: ...". Ten ranges and ten nodes
 * are named, then there are counts. */
void probes_missing(struct text *out, const struct probes *p,
                    const struct facts *facts, const struct roster *r,
                    probes_lack_fn lacks, const void *arg);

#endif
