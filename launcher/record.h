/* SPDX-License-Identifier: Apache-2.0
 *
 * What is worth keeping of a run, for the result file: copies of what the
 * coordinator told, and when. Pure: times come in.
 */
#ifndef LAUNCHER_RECORD_H
#define LAUNCHER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpulaunch.pb-c.h"
#include "proto/limits.h"

enum {
    RECORD_NOTICES_MAX = 100,
    RECORD_FACTS_MAX = 100,
    RECORD_STALLS_MAX = 100,
};

/* A time in which training hung. */
struct record_stall {
    Gpul__Event *report; /* the last one of it */
    uint64_t first_ms;   /* of the first one */
    uint64_t resumed_ms; /* 0: it has not gone on */
};

/* What a rank has told of its work. */
struct record_metric {
    uint32_t rank;
    char *text;     /* owned; "": no figure */
    uint64_t steps; /* behind its warm-up; 0: none */
    uint64_t steps_ms;
};

struct record {
    uint64_t started_unix_s;
    /* Milliseconds of one clock; 0: did not happen. */
    uint64_t started_ms;
    uint64_t assigned_ms;
    uint64_t tested_ms;
    uint64_t launched_ms;
    uint64_t ended_ms;
    Gpul__Event **pages; /* ASSIGNED events of the last generation */
    size_t page_count;
    Gpul__Event *self_test; /* SELF_TEST_PASSED, _SLOW, _SKIPPED, or NULL */
    char *facts[RECORD_FACTS_MAX]; /* lines on the self-test's libraries */
    size_t fact_count;
    char *settings[RECORD_FACTS_MAX]; /* likewise on the user's of NCCL */
    size_t setting_count;
    char backend[GPUL_TOKEN_BYTES_MAX + 1]; /* of the self-test, "": none yet */
    bool is_simulated;                      /* a library is a double */
    bool may_be_simulated;                  /* nobody has told */
    struct record_stall stalls[RECORD_STALLS_MAX];
    size_t stall_count;
    struct record_metric *metrics; /* in the order in which they ended */
    size_t metric_count;
    char *notices[RECORD_NOTICES_MAX];
    size_t notice_count;
    Gpul__JobEnd *end;
};

void record_release(struct record *r);

/* A deep copy of any message, to be freed by protobuf-c; NULL without memory.
 */
void *record_copy(const ProtobufCMessage *message);

/* Keep what matters of an event. Without memory the record stays thinner. */
void record_event(struct record *r, const Gpul__Event *event, uint64_t now_ms);

/* The first end is the end. Returns 0 or GPUL_ENOMEM. */
int record_end(struct record *r, const Gpul__JobEnd *end, uint64_t now_ms);

/* Nothing is left of what the end calls unclean: that was seen since. */
void record_clear_unclean(struct record *r);

/* Something is left that the end does not tell. Without memory the record
 * stays thinner. */
void record_add_unclean(struct record *r, const char *text);

/* Ranks of the assigned nodes, 0 before that. */
uint32_t record_world_size(const struct record *r);

/* The node that this rank was assigned to, NULL if unknown. */
const Gpul__Member *record_member(const struct record *r, uint32_t rank);

#endif
