/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of the schedules for every n from 2 to 64 and some up to 4096:
 * each round is a matching, the ring's edges are all there once, the circle
 * has every pair once in n-1 (n) rounds; suspects meet good ones only, and
 * nobody whom they may not meet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "coordinator/pairing.h"

enum { N_MAX = 4096, SEED = 20261201 };

static const uint32_t large[] = {100, 127, 128, 255, 511, 1000, 1023, 4096};
enum { LARGE_COUNT = sizeof(large) / sizeof(large[0]) };

static struct pairing_pair pairs[N_MAX / 2];
static uint32_t uses[N_MAX];

/* No participant twice, none that does not exist. */
static void expect_matching(uint32_t n, uint32_t count)
{
    assert_true(count <= n / 2);
    memset(uses, 0, sizeof(uses));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(pairs[i].a < n && pairs[i].b < n);
        assert_true(pairs[i].a != pairs[i].b);
        assert_int_equal(uses[pairs[i].a]++, 0);
        assert_int_equal(uses[pairs[i].b]++, 0);
    }
}

/* ---- the ring ---- */

static void expect_ring(uint32_t n)
{
    uint32_t rounds = pairing_neighbour_rounds(n);
    uint32_t edges = 0;
    uint8_t *seen = calloc(n, 1);
    assert_non_null(seen);
    assert_int_equal(rounds, n == 2 ? 1 : n % 2 == 0 ? 2 : 3);
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t count = pairing_neighbours(pairs, n, round);
        expect_matching(n, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(pairs[i].b, (pairs[i].a + 1) % n);
            assert_int_equal(seen[pairs[i].a]++, 0);
            edges++;
        }
    }
    assert_int_equal(edges, n == 2 ? 1 : n);
    assert_int_equal(pairing_neighbours(pairs, n, rounds), 0);
    free(seen);
}

static void test_ring(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 64; n++) {
        expect_ring(n);
    }
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        expect_ring(large[i]);
    }
}

static void test_ring_of_eight_and_three(void **state)
{
    static const struct pairing_pair a[] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    static const struct pairing_pair b[] = {{1, 2}, {3, 4}, {5, 6}, {7, 0}};
    static const struct pairing_pair three[] = {{0, 1}, {1, 2}, {2, 0}};
    (void)state;
    assert_int_equal(pairing_neighbours(pairs, 8, 0), 4);
    assert_memory_equal(pairs, a, sizeof(a));
    assert_int_equal(pairing_neighbours(pairs, 8, 1), 4);
    assert_memory_equal(pairs, b, sizeof(b));
    for (uint32_t round = 0; round < 3; round++) {
        assert_int_equal(pairing_neighbours(pairs, 3, round), 1);
        assert_memory_equal(pairs, &three[round], sizeof(three[round]));
    }
}

/* ---- all pairs ---- */

static void expect_circle(uint32_t n)
{
    uint32_t rounds = pairing_circle_rounds(n);
    uint8_t *met = calloc(n, n);
    assert_non_null(met);
    assert_int_equal(rounds, n % 2 == 0 ? n - 1 : n);
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t count = pairing_circle(pairs, n, round);
        expect_matching(n, count);
        assert_int_equal(count, n / 2);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t a = pairs[i].a;
            uint32_t b = pairs[i].b;
            assert_int_equal(met[(size_t)a * n + b]++, 0);
            assert_int_equal(met[(size_t)b * n + a]++, 0);
        }
    }
    /* rounds * (n / 2) pairs, none twice: that is all of them */
    assert_int_equal((uint64_t)rounds * (n / 2), (uint64_t)n * (n - 1) / 2);
    assert_int_equal(pairing_circle(pairs, n, rounds), 0);
    free(met);
}

static void test_circle(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 64; n++) {
        expect_circle(n);
    }
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        expect_circle(large[i]);
    }
}

static void test_no_participants(void **state)
{
    static const uint32_t none[] = {0, 1, PAIRING_NODES_MAX + 1, UINT32_MAX};
    uint8_t role = PAIRING_ASKS;
    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_equal(pairing_neighbour_rounds(none[i]), 0);
        assert_int_equal(pairing_neighbours(pairs, none[i], 0), 0);
        assert_int_equal(pairing_circle_rounds(none[i]), 0);
        assert_int_equal(pairing_circle(pairs, none[i], 0), 0);
        assert_int_equal(pairing_cross(pairs, none[i], &role, NULL, NULL), 0);
        assert_int_equal(pairing_far(pairs, none[i], &role, NULL, NULL), 0);
    }
}

/* ---- pairs that depend on what is known ---- */

static bool may_all(const void *arg, uint32_t a, uint32_t b)
{
    (void)arg;
    return a != b;
}

/* Neighbours have met. */
static bool may_further(const void *arg, uint32_t a, uint32_t b)
{
    uint32_t n = *(const uint32_t *)arg;
    return (a + 1) % n != b && (b + 1) % n != a;
}

static void draw_roles(uint8_t *roles, uint32_t n, struct gpul_rng *rng)
{
    for (uint32_t i = 0; i < n; i++) {
        roles[i] = (uint8_t)gpul_rng_below(rng, 3);
    }
}

/* Whoever is left asking finds nobody whom it may meet. */
static void expect_nobody_left(const uint8_t *roles, uint32_t n, bool any)
{
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n && roles[a] != PAIRING_RESTS; b++) {
            bool fits =
                any ? roles[b] != PAIRING_RESTS
                    : roles[a] == PAIRING_ASKS && roles[b] == PAIRING_HELPS;
            assert_false(a != b && fits && may_further(&n, a, b));
        }
    }
}

static void expect_cross(uint32_t n, struct gpul_rng *rng)
{
    static uint8_t before[N_MAX];
    static uint8_t roles[N_MAX];
    draw_roles(before, n, rng);
    memcpy(roles, before, n);
    uint32_t count = pairing_cross(pairs, n, roles, may_further, &n);
    expect_matching(n, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(before[pairs[i].a], PAIRING_ASKS);
        assert_int_equal(before[pairs[i].b], PAIRING_HELPS);
        assert_true(may_further(&n, pairs[i].a, pairs[i].b));
        assert_int_equal(roles[pairs[i].a], PAIRING_RESTS);
        assert_int_equal(roles[pairs[i].b], PAIRING_RESTS);
    }
    expect_nobody_left(roles, n, false);

    memcpy(roles, before, n);
    count = pairing_far(pairs, n, roles, may_further, &n);
    expect_matching(n, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(before[pairs[i].a] != PAIRING_RESTS);
        assert_true(before[pairs[i].b] != PAIRING_RESTS);
        assert_true(may_further(&n, pairs[i].a, pairs[i].b));
    }
    expect_nobody_left(roles, n, true);
}

static void test_cross(void **state)
{
    struct gpul_rng rng;
    (void)state;
    gpul_rng_init(&rng, SEED);
    for (uint32_t n = 2; n <= 64; n++) {
        for (int i = 0; i < 20; i++) {
            expect_cross(n, &rng);
        }
    }
    expect_cross(1023, &rng);
    expect_cross(N_MAX, &rng);
}

/* A suspect's partner is on the other side of the ring; if that one is no
 * help, the next to it. */
static void test_cross_is_opposite(void **state)
{
    uint8_t roles[8];
    (void)state;
    memset(roles, PAIRING_HELPS, sizeof(roles));
    roles[3] = PAIRING_ASKS;
    roles[7] = PAIRING_RESTS;
    assert_int_equal(pairing_cross(pairs, 8, roles, may_all, NULL), 1);
    assert_int_equal(pairs[0].a, 3);
    assert_int_equal(pairs[0].b, 0);
}

/* All far pairs lie at an even distance, so that of nodes of which every
 * second is slow two good ones meet. */
static void test_far_is_even(void **state)
{
    static uint8_t roles[N_MAX];
    (void)state;
    for (uint32_t n = 8; n <= 64; n += 2) {
        memset(roles, PAIRING_HELPS, n);
        uint32_t count = pairing_far(pairs, n, roles, may_further, &n);
        uint32_t even = 0;
        assert_true(count >= n / 2 - 1);
        for (uint32_t i = 0; i < count; i++) {
            even += (pairs[i].a + pairs[i].b) % 2 == 0;
        }
        assert_true(even >= count - 1);
    }
}

/* ---- groups ---- */

/* Split as long as it goes: nothing is lost, no part is under two. */
static void expect_halves(const struct pairing_group *group, uint32_t depth)
{
    struct pairing_group halves[2];
    if (!pairing_halves(halves, group)) {
        assert_true(group->count == 2 || group->count == 3);
        return;
    }
    assert_true(depth < 13);
    assert_int_equal(halves[0].first, group->first);
    assert_int_equal(halves[1].first, group->first + halves[0].count);
    assert_int_equal(halves[0].count + halves[1].count, group->count);
    assert_in_range(halves[0].count - halves[1].count, 0, 1);
    expect_halves(&halves[0], depth + 1);
    expect_halves(&halves[1], depth + 1);
}

static void test_halves(void **state)
{
    struct pairing_group one = {.first = 5, .count = 1};
    struct pairing_group halves[2];
    (void)state;
    for (uint32_t n = 2; n <= N_MAX; n++) {
        struct pairing_group all = {.first = 0, .count = n};
        expect_halves(&all, 0);
    }
    assert_false(pairing_halves(halves, &one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_of_eight_and_three),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_no_participants),
        cmocka_unit_test(test_cross),
        cmocka_unit_test(test_cross_is_opposite),
        cmocka_unit_test(test_far_is_even),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
