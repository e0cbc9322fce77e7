/* SPDX-License-Identifier: Apache-2.0
 *
 * Equal lines of several ranks, said once with the set of ranks that wrote
 * them. Pure; time comes in with each line.
 *
 * A line waits at most FOLDING_WINDOW_MS for other ranks to say the same, or
 * until all have. A rank's lines never change places among themselves, on
 * whatever way: a line joins an equal one if its rank has said nothing after
 * that, or if none of those who said it has said anything since, so that it
 * can be put off. So each rank's lines, in order, can be read back from what
 * comes out. Lines of different ranks may change places within the window.
 *
 * Memory: FOLDING_BYTES_MAX and FOLDING_LINES_MAX; what is over makes the
 * oldest lines leave early.
 */
#ifndef LAUNCHER_FOLDING_H
#define LAUNCHER_FOLDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rankset.h"

enum {
    FOLDING_WINDOW_MS = 100,
    FOLDING_LINES_MAX = 1024,
    FOLDING_BYTES_MAX = 1 << 20, /* text and ranks of the lines that wait */
    FOLDING_TIME_BYTES = 32,
};

struct folding;

/* A line that several ranks may have said. */
struct folding_line {
    uint8_t way; /* where it is to go: only lines of one way are equal */
    const uint8_t *text;
    size_t n;
    char time[FOLDING_TIME_BYTES]; /* of the first, "" if there is none */
};

/* Ranks are below rank_count_max; `voices` of them may say something, and a
 * line that so many have said does not wait. Errors: GPUL_ENOMEM. */
int folding_create(struct folding **out, uint32_t rank_count_max,
                   uint32_t voices);
void folding_destroy(struct folding *f);

/* A rank says a line; the text is copied. Take what is due afterwards.
 * Errors: GPUL_ENOMEM, nothing has changed: take all, then write the line. */
int folding_add(struct folding *f, uint32_t rank,
                const struct folding_line *line, uint64_t now_ms);

/* Everything that waits is due now. */
void folding_hurry(struct folding *f);

/* The next line that is due, and who said it; false: none. Both are good
 * until the next call of any function. */
bool folding_next(struct folding *f, uint64_t now_ms, struct folding_line *line,
                  const struct gpul_rankset **ranks);

/* When folding_next will have something; UINT64_MAX: nothing waits. */
uint64_t folding_deadline_ms(const struct folding *f);

#endif
