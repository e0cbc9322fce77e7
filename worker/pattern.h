/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ranks put into an all-reduce, and what must come out: small
 * integers whose sum float32 holds exactly, so a result is right bit by bit
 * or wrong. Pure.
 *
 *     value(rank, i) = a(i) + b(rank)
 *     a(i)           = i mod 13 + i mod 17 + i mod 19         (0 ... 46)
 *     b(rank)        = 1 + rank mod 79                        (1 ... 79)
 *     sum(i)         = n * a(i) + b(0) + ... + b(n - 1)
 *
 * The largest sum is 125 n, exact in float32 (below 2^24) for every n up to
 * PATTERN_RANKS_MAX, in whatever order it is added up. No value is 0, so a
 * contribution that is missing or there twice shows at every element. a(i)
 * repeats only after 4199 elements, which divides no power of two: a piece
 * that lands in the place of another shows too.
 */
#ifndef WORKER_PATTERN_H
#define WORKER_PATTERN_H

#include <stdint.h>

enum {
    PATTERN_PERIOD = 13 * 17 * 19,
    PATTERN_RANKS_MAX = 134217, /* 125 * this <= 2^24 */
};

/* One contribution, and the sum of all of them (1 <= n <= RANKS_MAX). */
float pattern_value(uint32_t rank, uint64_t index);
float pattern_sum(uint32_t n, uint64_t index);

/* Write the contribution of `rank` into data[0] ... data[count - 1]. */
void pattern_fill(float *data, uint64_t count, uint32_t rank);

struct pattern_verdict {
    uint64_t wrong_elements;
    uint64_t first_wrong_index; /* of the lowest wrong one, else 0 */
};

/* Compare every element with the sum over n ranks. */
void pattern_check(struct pattern_verdict *out, const float *data,
                   uint64_t count, uint32_t n);

#endif
