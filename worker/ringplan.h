/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a ring all-reduce: which piece of the buffer is sent and
 * which is received, one after the other. Pure arithmetic.
 *
 * The buffer is cut into blocks of at most n pieces; a piece is small enough
 * to stay in the cache between being received, added up and passed on. In a
 * block, hop k = 0 ... 2n-3 sends piece (rank - k) mod n to the right and
 * receives piece (rank - k - 1) mod n from the left:
 *
 *     k <  n - 1   reduce: what arrives is added to what is there
 *     k >= n - 1   gather: what arrives is the sum and replaces it
 *
 * Hop k + 1 sends exactly what hop k received. If a block's hops came right
 * after each other, every rank would wait for a whole trip of a piece at
 * each. So blocks are staggered: slot t * K + k (K = 2n - 2 hops) belongs to
 * hop k of block t - k. What slot j sends was received in slot j - K - 1,
 * while K other slots were under way.
 *
 *     K = 2      slot  0    1    2    3    4    5    6    7
 *                hop   b0h0  -   b1h0 b0h1 b2h0 b1h1  -   b2h1
 */
#ifndef WORKER_RINGPLAN_H
#define WORKER_RINGPLAN_H

#include <stdbool.h>
#include <stdint.h>

struct ringplan {
    uint32_t rank;
    uint32_t n;           /* ranks, at least 2 */
    uint64_t count;       /* elements of the buffer */
    uint64_t piece_count; /* elements of a whole piece */
    uint64_t hops;        /* K */
    uint64_t blocks;
    uint64_t slots; /* all of them, the empty ones included */
};

/* A run of elements; count 0 where a slot is empty. */
struct ringplan_piece {
    uint64_t first;
    uint64_t count;
    bool is_reduced; /* to be added up, when received */
};

/* Asserts rank < n, n >= 2, piece_count >= 1. */
void ringplan_init(struct ringplan *plan, uint32_t rank, uint32_t n,
                   uint64_t count, uint64_t piece_count);

/* The first slot from j on that is in some block, `slots` if there is none.
 * Before the first blocks have gone round and after the last are on their
 * way most slots are not: with one block, K - 1 of K. */
uint64_t ringplan_next(const struct ringplan *plan, uint64_t j);

/* What slot j < slots sends, and what it receives. */
struct ringplan_piece ringplan_send(const struct ringplan *plan, uint64_t j);
struct ringplan_piece ringplan_receive(const struct ringplan *plan, uint64_t j);

/* Slots that must have been received before slot j may be sent. */
uint64_t ringplan_needs(const struct ringplan *plan, uint64_t j);

#endif
