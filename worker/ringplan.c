/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ringplan.h"

#include <assert.h>

void ringplan_init(struct ringplan *plan, uint32_t rank, uint32_t n,
                   uint64_t count, uint64_t piece_count)
{
    assert(n >= 2 && rank < n && piece_count >= 1);
    uint64_t block_count = piece_count * n;
    *plan = (struct ringplan){
        .rank = rank,
        .n = n,
        .count = count,
        .piece_count = piece_count,
        .hops = 2 * ((uint64_t)n - 1),
        .blocks = count / block_count + (count % block_count != 0),
    };
    if (plan->blocks > 0) {
        plan->slots = (plan->blocks + plan->hops - 1) * plan->hops;
    }
}

uint64_t ringplan_next(const struct ringplan *plan, uint64_t j)
{
    while (j < plan->slots) {
        uint64_t wave = j / plan->hops;
        uint64_t hop = j % plan->hops;
        uint64_t first = wave < plan->blocks ? 0 : wave - plan->blocks + 1;
        if (hop < first) {
            return j - hop + first;
        }
        if (hop <= wave) {
            return j;
        }
        j += plan->hops - hop; /* to the next wave */
    }
    return plan->slots;
}

/* Piece `p` of block `b`. The last block is shared out evenly; its first
 * pieces are one element larger where it does not divide. */
static struct ringplan_piece piece_at(const struct ringplan *plan, uint64_t b,
                                      uint64_t p)
{
    uint64_t start = b * plan->piece_count * plan->n;
    uint64_t left = plan->count - start;
    uint64_t whole = plan->piece_count * plan->n;
    uint64_t elements = left < whole ? left : whole;
    uint64_t each = elements / plan->n;
    uint64_t larger = elements % plan->n;
    return (struct ringplan_piece){
        .first = start + p * each + (p < larger ? p : larger),
        .count = each + (p < larger),
    };
}

/* `behind` is 0 for what is sent, 1 for what is received. */
static struct ringplan_piece slot_piece(const struct ringplan *plan, uint64_t j,
                                        uint64_t behind)
{
    assert(j < plan->slots);
    uint64_t wave = j / plan->hops;
    uint64_t hop = j % plan->hops;
    if (wave < hop || wave - hop >= plan->blocks) {
        return (struct ringplan_piece){0};
    }
    uint64_t n = plan->n;
    uint64_t p = (plan->rank + 2 * n - hop - behind) % n;
    struct ringplan_piece piece = piece_at(plan, wave - hop, p);
    piece.is_reduced = hop < n - 1;
    return piece;
}

struct ringplan_piece ringplan_send(const struct ringplan *plan, uint64_t j)
{
    return slot_piece(plan, j, 0);
}

struct ringplan_piece ringplan_receive(const struct ringplan *plan, uint64_t j)
{
    return slot_piece(plan, j, 1);
}

uint64_t ringplan_needs(const struct ringplan *plan, uint64_t j)
{
    /* The first hop sends what the rank itself put in. For it the rule would
     * only hold a slot back; for all others it is the received hop before. */
    if (j % plan->hops == 0 || j < plan->hops + 1) {
        return 0;
    }
    return j - plan->hops;
}
