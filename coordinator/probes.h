/* SPDX-License-Identifier: Apache-2.0
 *
 * How far each probe of the self-test on GPUs has come, and what it said
 * last. Pure.
 *
 * Counting is O(1) for each report, whatever the number of ranks;
 * coordinator/culprit.h tells who is missing.
 */
#ifndef COORDINATOR_PROBES_H
#define COORDINATOR_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

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

/* What one said last, and its agent of it. */
struct probes_report {
    Gpul__ProbePhase__State state;
    uint32_t since_ms; /* it was in that state, when it said so */
    uint32_t progress;
    uint32_t stage;    /* of NCCL in it, 0: not known */
    uint64_t heard_ms; /* when it said so */
    char *words;       /* NULL: none yet; those of before are kept */
    char *call;        /* that it was inside of, NULL: never was */
};

struct probes {
    uint32_t count;
    uint8_t *steps;                     /* by rank, enum probes_step */
    struct probes_report *reports;      /* by rank */
    uint32_t passed[PROBES_STEP_COUNT]; /* ranks that came so far, or further */
};

/* All count as heard now. Returns 0 or GPUL_ENOMEM; `p` can be released
 * either way. */
int probes_init(struct probes *p, uint32_t count, uint64_t now_ms);

/* An all-zero one may be released too. */
void probes_release(struct probes *p);

/* This step, and with it every one before, is behind the rank. Returns false
 * if that is not news. */
bool probes_pass(struct probes *p, uint32_t rank, enum probes_step step);

/* How it is, whichever phase it is in. Returns 0 or GPUL_ENOMEM. */
int probes_say(struct probes *p, uint32_t rank, const Gpul__ProbePhase *said,
               uint64_t now_ms);

/* Does what is waited for lack this rank? */
typedef bool (*probes_lack_fn)(const struct probes *p, uint32_t rank,
                               const void *arg);

#endif
