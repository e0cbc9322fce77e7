/* SPDX-License-Identifier: Apache-2.0
 *
 * What each rank puts into a collective and what must come out, element by
 * element: worker/pattern.h's small integers, exact in float32 in whatever
 * order they are added, so a result is right bit by bit or wrong. Pure.
 *
 * Rank r sends value(r, i) at element i of its send buffer, so an element
 * tells where it came from, and one that arrived in a wrong place shows. For
 * c elements of the call's argument and n ranks, rank r must then have
 *
 *     all-reduce      c      sum(i)
 *     all-gather      n c    value(i / c, i mod c)
 *     reduce-scatter  c      sum(r c + i)
 *     broadcast       c      value(0, i)                 (root 0)
 *     all-to-all      n c    value(i / c, r c + i mod c)
 *     send/recv       c      value(r - 1, i)             (from the left)
 *     copies          c      value(r, i)
 */
#ifndef WORKER_VERIFY_H
#define WORKER_VERIFY_H

#include <stdint.h>

#include "common/bandwidth.h"
#include "worker/pattern.h"

/* One call; ranks <= PATTERN_RANKS_MAX. */
struct verify_call {
    enum gpul_collective collective;
    uint32_t rank;
    uint32_t ranks;
    uint64_t count;
};

/* The part of the pattern that does not depend on the rank, once. */
struct verify_table {
    float values[PATTERN_PERIOD];
};

struct verify_verdict {
    uint64_t wrong_elements;
    uint64_t first_wrong; /* element of the receive buffer, if any */
    uint32_t first_bit;   /* the lowest that differs in it */
};

void verify_table_init(struct verify_table *table);

/* Elements of a rank's send and receive buffers. */
uint64_t verify_send_count(const struct verify_call *call);
uint64_t verify_receive_count(const struct verify_call *call);

/* Write elements first ... first + n - 1 of the send buffer to `out`. */
void verify_fill(float *out, const struct verify_table *table,
                 const struct verify_call *call, uint64_t first, uint64_t n);

/* Compare elements first ... first + n - 1 of the receive buffer, in `got`,
 * and add what is wrong to the verdict, which starts as zeros. */
void verify_check(struct verify_verdict *verdict,
                  const struct verify_table *table,
                  const struct verify_call *call, const float *got,
                  uint64_t first, uint64_t n);

#endif
