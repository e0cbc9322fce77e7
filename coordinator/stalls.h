/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that make no step any more, and the one report that is made of them.
 * Pure.
 *
 * In a collective all wait for the one that has not come. So of the ranks that
 * stall those that have made fewer steps than others are behind, and are named
 * first; if all have made the same, that is said. It is the way in which
 * PyTorch's flight recorder finds its culprits:
 * https://pytorch.org/tutorials/prototype/flight_recorder_tutorial.html
 *
 * A report comes once all ranks that are left stall, or STALLS_COLLECT_MS after
 * the first does. As long as ranks stall, or soon again, the next one is
 * STALLS_GAP_MS later, then twice that.
 */
#ifndef COORDINATOR_STALLS_H
#define COORDINATOR_STALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "coordinator/roster.h"
#include "coordinator/text.h"
#include "proto/message.h"

enum {
    /* A node takes 1 s to look at its ranks, and up to 5 s at its GPUs. */
    STALLS_COLLECT_MS = 6000,
    STALLS_GAP_MS = 10000,
    STALLS_GAP_MS_MAX = 3600000,
    /* Different looks of ranks that are told apart; more are not told. */
    STALLS_LOOKS_MAX = 32,
};

/* What a rank is at a report. */
enum stalls_part {
    STALLS_WELL = 0, /* it does not stall */
    STALLS_BEHIND,   /* others have made more steps */
    STALLS_FRONT,    /* none has made more */
    STALLS_SILENT,   /* it has never made one that is known */
};

struct stalls_rank {
    uint64_t steps;
    uint64_t since_ms;
    uint8_t kind; /* SILENT or BEHIND of Gpul__StallRow__Kind; 0: well */
    uint8_t part; /* enum stalls_part, of the last report */
    uint8_t look; /* index in looks; 0: not known */
};

/* How ranks look to their nodes: the same for all that it counts. */
struct stalls_look {
    uint32_t count;
    uint32_t cpu_percent;
    uint32_t threads;                     /* of the first of them */
    char state[GPUL_TOKEN_BYTES_MAX + 1]; /* "": they could not be seen */
    char wait_channel[GPUL_WAIT_CHANNEL_BYTES_MAX + 1];
    char gpus[GPUL_FINDING_BYTES_MAX + 1];
};

struct stalls {
    struct stalls_rank *ranks; /* NULL until one stalls */
    uint32_t world_size;
    uint32_t count; /* ranks that stall */
    uint64_t limit_ms;
    bool is_learned;
    bool is_said;         /* there was a report, and not all go on */
    uint64_t since_ms;    /* is_said: the first silence */
    uint64_t due_ms;      /* of the next report; 0: none */
    uint64_t earliest_ms; /* not before that */
    uint64_t held_ms;     /* when output was last held up; 0: never */
    uint64_t gap_ms;      /* between the last report and the next; 0: none */
    uint64_t well_ms;     /* since when nothing stalls */
    struct stalls_look looks[STALLS_LOOKS_MAX];
};

struct stalls_report {
    struct text text;
    struct text verdict;     /* why the job was stopped, should it be; a line,
                                shorter than the text */
    struct text ranks;       /* "0,3-5": who is to be looked at; "": all */
    const struct node *node; /* of the first of these, or NULL */
    uint32_t count;          /* ranks that stall */
    bool are_all_stopped;    /* by a signal: somebody has a reason */
};

/* All zero is an empty one. */
void stalls_release(struct stalls *s);

/* A row of a node that has the rank, of `world_size` ranks. True: the last
 * rank that stalled goes on, after *silence_ms, and there was a report. */
bool stalls_take(struct stalls *s, uint32_t world_size,
                 const Gpul__StallRow *row, uint64_t now_ms,
                 uint64_t *silence_ms);

/* So many ranks are left: if all of them stall, there is nobody to wait for. */
void stalls_check(struct stalls *s, uint32_t ranks_left, uint64_t now_ms);

/* This rank has ended. */
void stalls_ended(struct stalls *s, uint32_t rank);

/* When a report is due; UINT64_MAX: none. */
uint64_t stalls_due_ms(const struct stalls *s);

/* Output of a node is held up now: its ranks may wait for whoever reads it, and
 * all others for them. */
void stalls_hold(struct stalls *s, uint64_t now_ms);

/* Is the report that is due put off for that? All have their limit once more
 * from when it ended. */
bool stalls_put_off(struct stalls *s, uint64_t now_ms);

/* Make it. `ranks_left` have not ended. */
void stalls_report(struct stalls *s, const struct roster *roster,
                   uint32_t ranks_left, uint64_t now_ms,
                   struct stalls_report *out);

/* The words of a report whose parts are known: stalls_words.c. */
void stalls_words(const struct stalls *s, const struct roster *roster,
                  uint32_t ranks_left, uint64_t now_ms,
                  struct stalls_report *out);

#endif
