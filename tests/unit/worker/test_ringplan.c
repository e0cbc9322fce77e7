/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/ringplan.h"

enum { RANKS_MAX = 9 };

static const uint64_t counts[] = {0, 1, 2, 3, 5, 8, 17, 60, 61, 97, 200};

/* A ring without a network: what a slot sends lies in `mail` until the right
 * neighbour takes it as the same slot. */
struct ring {
    uint32_t n;
    uint64_t count;
    struct ringplan plans[RANKS_MAX];
    uint64_t data[RANKS_MAX][200]; /* a bit for each rank, times occurrences */
    uint64_t mail[RANKS_MAX][200];
};

static void ring_init(struct ring *ring, uint32_t n, uint64_t count,
                      uint64_t piece)
{
    *ring = (struct ring){.n = n, .count = count};
    for (uint32_t rank = 0; rank < n; rank++) {
        ringplan_init(&ring->plans[rank], rank, n, count, piece);
        for (uint64_t i = 0; i < count; i++) {
            ring->data[rank][i] = UINT64_C(1) << (6 * rank);
        }
    }
}

static void ring_send(struct ring *ring, uint32_t rank, uint64_t slot)
{
    struct ringplan_piece piece = ringplan_send(&ring->plans[rank], slot);
    memcpy(ring->mail[rank], &ring->data[rank][piece.first],
           piece.count * sizeof(uint64_t));
}

static void ring_receive(struct ring *ring, uint32_t rank, uint64_t slot)
{
    uint32_t left = (rank + ring->n - 1) % ring->n;
    struct ringplan_piece sent = ringplan_send(&ring->plans[left], slot);
    struct ringplan_piece piece = ringplan_receive(&ring->plans[rank], slot);
    assert_int_equal(piece.count, sent.count);
    assert_int_equal(piece.first, sent.first);
    assert_int_equal(piece.is_reduced, sent.is_reduced);
    for (uint64_t i = 0; i < piece.count; i++) {
        uint64_t *to = &ring->data[rank][piece.first + i];
        *to = ring->mail[left][i] + (piece.is_reduced ? *to : 0);
    }
}

static void assert_all_summed(const struct ring *ring)
{
    uint64_t all = 0;
    for (uint32_t rank = 0; rank < ring->n; rank++) {
        all += UINT64_C(1) << (6 * rank);
    }
    for (uint32_t rank = 0; rank < ring->n; rank++) {
        for (uint64_t i = 0; i < ring->count; i++) {
            assert_int_equal(ring->data[rank][i], all);
        }
    }
}

/* Every rank ends with every contribution once, for any number of ranks,
 * counts below, at and above it, and any size of piece. */
static void test_everybody_gets_the_sum(void **state)
{
    (void)state;
    static const uint64_t pieces[] = {1, 2, 3, 7, 50, 1000};
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
                static struct ring ring;
                ring_init(&ring, n, counts[c], pieces[p]);
                for (uint64_t j = 0; j < ring.plans[0].slots; j++) {
                    for (uint32_t rank = 0; rank < n; rank++) {
                        ring_send(&ring, rank, j);
                    }
                    for (uint32_t rank = 0; rank < n; rank++) {
                        ring_receive(&ring, rank, j);
                    }
                }
                assert_all_summed(&ring);
            }
        }
    }
}

static bool overlap(struct ringplan_piece a, struct ringplan_piece b)
{
    return a.count > 0 && b.count > 0 && a.first < b.first + b.count &&
           b.first < a.first + a.count;
}

/* A slot never needs one that comes with or after it, and whatever it sends
 * has arrived by the slot that it does need. */
static void test_needs_are_enough(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        struct ringplan plan;
        ringplan_init(&plan, 1, n, 97, 3);
        for (uint64_t j = 0; j < plan.slots; j++) {
            struct ringplan_piece sent = ringplan_send(&plan, j);
            uint64_t needs = ringplan_needs(&plan, j);
            assert_true(needs <= j);
            for (uint64_t r = needs; r < j; r++) {
                assert_false(overlap(sent, ringplan_receive(&plan, r)));
            }
        }
    }
}

/* No piece is larger than asked for: that is what the scratch buffer is. */
static void test_pieces_are_bounded(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        struct ringplan plan;
        ringplan_init(&plan, n - 1, n, 200, 6);
        uint64_t total = 0;
        for (uint64_t j = 0; j < plan.slots; j++) {
            struct ringplan_piece piece = ringplan_receive(&plan, j);
            assert_true(piece.count <= 6);
            assert_true(piece.first + piece.count <= 200);
            total += piece.count;
        }
        /* 2 (n - 1) / n of the buffer, but for what does not divide. */
        assert_in_range(total * n, 2 * (n - 1) * 200 - 2 * n * n,
                        2 * (n - 1) * 200 + 2 * n * n);
    }
}

/* Going from slot to slot visits every slot that has something in it, and
 * no more than the hops of the blocks. */
static void test_next_skips_the_empty(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            struct ringplan plan;
            uint64_t visited = 0;
            uint64_t from = 0;
            ringplan_init(&plan, 0, n, counts[c], 2);
            for (;;) {
                uint64_t j = ringplan_next(&plan, from);
                for (uint64_t skipped = from; skipped < j; skipped++) {
                    assert_int_equal(ringplan_send(&plan, skipped).count, 0);
                    assert_int_equal(ringplan_receive(&plan, skipped).count, 0);
                }
                if (j == plan.slots) {
                    break;
                }
                visited++;
                from = j + 1;
            }
            assert_int_equal(visited, plan.blocks * plan.hops);
        }
    }
}

/* In a ring of a hundred thousand, one block's slots are found at once. */
static void test_next_is_quick(void **state)
{
    (void)state;
    struct ringplan plan;
    uint64_t visited = 0;
    ringplan_init(&plan, 7, 131072, 131072, 1);
    for (uint64_t j = ringplan_next(&plan, 0); j < plan.slots;
         j = ringplan_next(&plan, j + 1)) {
        visited++;
    }
    assert_int_equal(visited, plan.hops);
}

/* The counts of a 64-node, 256 MiB all-reduce do not overflow anything. */
static void test_large(void **state)
{
    (void)state;
    struct ringplan plan;
    ringplan_init(&plan, 63, 64, UINT64_C(1) << 40, 65536);
    assert_int_equal(plan.blocks, UINT64_C(1) << 18);
    assert_int_equal(plan.slots, ((UINT64_C(1) << 18) + 125) * 126);
    struct ringplan_piece piece = ringplan_send(&plan, plan.slots - 1);
    assert_int_equal(piece.count, 65536);
    assert_true(piece.first + piece.count <= UINT64_C(1) << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_gets_the_sum),
        cmocka_unit_test(test_needs_are_enough),
        cmocka_unit_test(test_pieces_are_bounded),
        cmocka_unit_test(test_next_skips_the_empty),
        cmocka_unit_test(test_next_is_quick),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
