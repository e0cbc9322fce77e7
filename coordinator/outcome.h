/* SPDX-License-Identifier: Apache-2.0
 *
 * How the job ended: decided once, by whatever came first; everything later
 * is a consequence and only recorded. Pure.
 */
#ifndef COORDINATOR_OUTCOME_H
#define COORDINATOR_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/arena.h"
#include "coordinator/roster.h"
#include "coordinator/text.h"
#include "proto/message.h"

/* The records of exits must fit the JobEnd beside everything else. */
enum {
    OUTCOME_EXITS_BYTES_MAX = GPUL_JOB_END_BYTES_MAX / 2,
    /* Records of ranks that were stopped, so that others find room. */
    OUTCOME_STOPPED_MAX = GPUL_JOB_END_EXITS_MAX / 2,
};

/* Exit codes of gpulaunch itself; docs/operations.md. */
enum outcome_code {
    OUTCOME_SUCCESS = 0,
    OUTCOME_CHECK_FAILED = 20,
    OUTCOME_WRONG_DATA = 21,
    OUTCOME_SLOW = 30,
    OUTCOME_DEADLINE = 40,
    OUTCOME_LOST_EARLY = 41,
    OUTCOME_INFRASTRUCTURE = 75,
    OUTCOME_TIMEOUT = 124,
    OUTCOME_INTERNAL = 125,
    OUTCOME_NOT_EXECUTABLE = 126,
    OUTCOME_NOT_FOUND = 127,
    OUTCOME_SIGNAL_BASE = 128,
};

struct outcome {
    bool is_decided;
    uint32_t exit_code;
    const char *reason; /* a token of docs/operations.md, static */
    struct text text;
    const struct node *node; /* who it is about, NULL: nobody */
    bool has_rank;
    uint32_t rank;
    uint64_t decided_ms; /* by the first failing rank */
    Gpul__Exit *exits[GPUL_JOB_END_EXITS_MAX];
    size_t exit_count;
    size_t stopped_count; /* of these, ranks that were stopped */
    size_t evidence_count;
    size_t exit_bytes;
    char *unclean[GPUL_UNCLEAN_MAX];
    size_t unclean_count;
    uint32_t restarts;   /* that count against the user's limit */
    struct arena memory; /* of exits and unclean */
};

void outcome_init(struct outcome *o);
void outcome_release(struct outcome *o);

/* Decide, unless it is decided already. `reason` must be static, `node` may
 * be NULL. Returns true if this was the decision. */
bool outcome_decide(struct outcome *o, uint32_t code, const char *reason,
                    const struct node *node, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A rank of `node` ended badly: decide by it if it is the first failure, and
 * keep the record either way unless the job had succeeded before. */
bool outcome_rank_failed(struct outcome *o, const struct node *node,
                         const Gpul__Exit *fate, uint64_t now_ms);

/* A rank ended since we had it stopped: keep a record, as long as there is
 * room for those that fail by themselves. */
void outcome_rank_stopped(struct outcome *o, const Gpul__Exit *fate,
                          uint64_t now_ms);

/* Did the rank end with anything but 0? */
bool exit_is_failure(const Gpul__Exit *fate);

/* The exit code that stands for it, 1 to 255. */
uint32_t exit_code(const Gpul__Exit *fate);

/* Something could not be stopped: "node: what". */
void outcome_add_unclean(struct outcome *o, const struct node *node,
                         const char *what);

/* Fill the JobEnd; it borrows from `o`. */
void outcome_fill(struct outcome *o, Gpul__JobEnd *end);

#endif
