/* SPDX-License-Identifier: Apache-2.0
 *
 * Does each rank of this node go on? A rank beats by a line for each step, or
 * is watched by what it writes. Pure: what happened goes in with its time,
 * ranks that stall and that go on come out.
 *
 * A rank that has beaten once is judged by its beats alone: one that hangs may
 * still write. Its limit is the given one, or learned: BEATS_FACTOR times its
 * longest step after BEATS_WARMUP steps, but never under BEATS_LIMIT_MIN_MS. A
 * rank that has never beaten is judged only by a given limit, and by silence.
 *
 * Cost: O(1) for a beat or output, O(ranks) for a tick that is due.
 */
#ifndef WORKER_BEATS_H
#define WORKER_BEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
    BEATS_WARMUP = 5,
    BEATS_FACTOR = 5,
    /* An evaluation or a checkpoint between quick steps is no hang. */
    BEATS_LIMIT_MIN_MS = 60000,
    /* A tick that comes so late shows that this process did not run: what
     * looks like silence of the ranks was ours. */
    BEATS_LATE_MS = 1000,
};

/* Of a number in a beat; more is cut. */
#define BEATS_STEP_MAX UINT64_C(1000000000000000000)

/* What of a line has come. */
enum beats_line {
    BEATS_EMPTY,    /* nothing */
    BEATS_DIGITS,   /* a number that may go on */
    BEATS_NUMBERED, /* a number, and something behind it */
    BEATS_WORD,     /* something else */
};

/* As Gpul__StallRow__Kind. */
enum beats_kind { BEATS_SILENT = 1, BEATS_BEHIND = 2, BEATS_RESUMED = 3 };

/* What has become of a rank. */
struct beats_news {
    uint32_t local_rank;
    enum beats_kind kind;
    uint64_t steps;
    uint64_t silence_ms; /* since its last sign; RESUMED: what it was */
    uint64_t limit_ms;
    bool is_learned; /* the limit */
};

struct beats_rank {
    uint64_t sign_ms; /* of its last beat, or its last output before any */
    uint64_t due_ms;  /* when it counts as stalled, or is told again */
    uint64_t beats;
    uint64_t steps;
    uint64_t warm_ms; /* of the beat that ended the warm-up */
    uint64_t warm_steps;
    uint64_t beat_ms;    /* of the last one */
    uint64_t longest_ms; /* step after the warm-up; 0: none yet */
    uint64_t number;     /* of the line that has not ended */
    enum beats_line line;
    bool is_stalled;
    bool is_told;      /* as stalled, by beats_next_news */
    bool is_over;      /* ended, or beats no more: not watched */
    bool is_uncounted; /* its steps are not known */
    bool has_news;
    uint64_t stalled_ms; /* how long it was, before it went on */
};

struct beats {
    struct beats_rank *ranks;
    uint32_t count;
    uint64_t limit_ms; /* given; 0: learned */
    uint64_t next_ms;  /* no rank is due before */
    uint32_t *news;    /* local ranks, each once */
    uint32_t news_count;
};

/* All zero is an empty one: nothing is watched. Errors: GPUL_ENOMEM. */
int beats_begin(struct beats *b, uint32_t count, uint64_t limit_ms,
                uint64_t now_ms, struct gpul_error *err);
void beats_release(struct beats *b);

/* Bytes of a rank's beat pipe. Each line is a step; a line that begins with a
 * number names it. */
void beats_take(struct beats *b, uint32_t local_rank, const char *bytes,
                size_t n, uint64_t now_ms);

/* Its steps so far were told to somebody else: until a line has a number, no
 * number of steps is known, and it counts as SILENT when it stalls. */
void beats_take_over(struct beats *b, uint32_t local_rank);

/* It has written something. */
void beats_output(struct beats *b, uint32_t local_rank, uint64_t now_ms);

/* It has ended, or closed its pipe: that is no hang. */
void beats_over(struct beats *b, uint32_t local_rank, uint64_t now_ms);

/* Steps that a rank has made since the end of its warm-up, and the time from
 * there to the last of them; 0 and 0 where it has made none, or they are not
 * known. */
void beats_pace(const struct beats *b, uint32_t local_rank, uint64_t *steps,
                uint64_t *ms);

/* When the next tick is wanted; UINT64_MAX: none. */
uint64_t beats_next_ms(const struct beats *b);
void beats_tick(struct beats *b, uint64_t now_ms);

/* News that nobody has heard yet. A rank that stalls is told again each time
 * that its silence has doubled; one that went on before its stall was told is
 * not told at all. */
bool beats_next_news(struct beats *b, struct beats_news *out, uint64_t now_ms);

#endif
