/* SPDX-License-Identifier: Apache-2.0
 *
 * One way of a trial between two nodes, as a state machine: one connection, on
 * which the one that has dialled sends and the other one measures by its own
 * clock. It never waits, reads a clock or a socket. Pure; worker/trialrun.h is
 * the edge. docs/check.md, "Pair trials", tells the story.
 *
 *     who dials:      HELLO -> PINGS -> FLOW -> BYE -> OVER
 *     who listens:    HELLO -> PINGS -> FLOW -> BYE -> OVER
 *     any of them  -> FAILED
 *
 * On the wire, all numbers big-endian:
 *     both           linkhello of 24 bytes; the dialler's first
 *     dialler        'P', answered by 'P', so many times (round trips)
 *     dialler        'R' and its median round trip in ns, 8 bytes
 *     dialler        chunks of TRIAL_CHUNK_BYTES that begin with 'D'
 *     listener       'S': it has measured long enough
 *     dialler        'E' in the place of a next chunk
 *     listener       'B': all has come; both close
 *
 * What is measured begins TRIAL_WARM_MS (or ten round trips, if that is
 * longer, up to a second) behind the first byte, so that the connection has
 * found its speed, and lasts run_ms (or ten round trips, if that is longer, up
 * to two seconds), or until bytes_max have come.
 */
#ifndef WORKER_TRIAL_H
#define WORKER_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"
#include "worker/linkhello.h"

enum {
    TRIAL_CHUNK_BYTES = 64 << 10,
    TRIAL_PINGS_MAX = 256,
    TRIAL_PINGS_MS = 60, /* no new one after so long */
    TRIAL_WARM_MS = 50,
    TRIAL_WARM_MS_MAX = 1000,
    TRIAL_RUN_MS_MAX = 2000, /* of ten round trips */
    TRIAL_TEXT_BYTES = 160,
};

enum trial_state {
    TRIAL_HELLO = 1,
    TRIAL_PINGS,
    TRIAL_FLOW,
    TRIAL_BYE,
    TRIAL_OVER,
    TRIAL_FAILED,
};

struct trial_plan {
    bool is_dialler;
    uint64_t token;
    uint32_t self; /* node ranks */
    uint32_t peer;
    uint32_t run_ms;    /* at least 1 */
    uint64_t bytes_max; /* at least 1 */
};

struct trial {
    struct trial_plan plan;
    enum trial_state state;
    uint64_t now_ns; /* of the last call */

    /* What is read. */
    uint8_t got[LINKHELLO_BYTES]; /* of a hello, or of a round trip */
    size_t got_bytes;
    uint64_t position; /* of the flow */

    /* What is written. */
    uint8_t words[LINKHELLO_BYTES]; /* all but chunks */
    size_t word_bytes;              /* not yet written: word_at on */
    size_t word_at;
    size_t chunk_at; /* dialler: how much of a chunk is written; 0: none */
    bool is_stopped; /* dialler: 'S' has come */

    /* Dialler. */
    uint64_t pings_end_ns;
    uint64_t ping_ns; /* when the last one was said */
    uint64_t rtt_ns[TRIAL_PINGS_MAX];
    uint32_t rtt_count;

    /* Listener. */
    uint64_t warm_ns;
    uint64_t run_ns;
    uint64_t flow_ns;  /* when the first byte came; 0: not yet */
    uint64_t start_ns; /* of what is measured; 0: not yet */
    bool is_measured;
    uint64_t bytes; /* within ns */
    uint64_t ns;

    Gpul__TrialWay__Failure failure; /* of FAILED */
    char text[TRIAL_TEXT_BYTES];
};

/* The connection is there. */
void trial_init(struct trial *t, const struct trial_plan *plan,
                uint64_t now_ns);

/* What is to be written now: returns how many bytes, 0: nothing. The bytes are
 * valid until the next call. */
size_t trial_output(const struct trial *t, const uint8_t **bytes);

/* So many of them were. */
void trial_wrote(struct trial *t, size_t n, uint64_t now_ns);

/* What was read, any number of bytes. */
void trial_input(struct trial *t, const uint8_t *bytes, size_t n,
                 uint64_t now_ns);

/* The peer has closed the connection, or it broke: `why`. */
void trial_closed(struct trial *t, const char *why);

/* The time is over. */
void trial_timeout(struct trial *t);

/* Nothing has come, but time has passed. */
void trial_tick(struct trial *t, uint64_t now_ns);

/* When a tick is of use; UINT64_MAX: never. */
uint64_t trial_next_ns(const struct trial *t);

/* Is there no more to do, for good or bad? */
bool trial_is_over(const struct trial *t);

/* What is known, FAILED or not; text points into `t`. */
void trial_fill(struct trial *t, Gpul__TrialWay *way);

#endif
