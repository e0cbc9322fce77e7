/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by pairs against networks in numbers: exactly what was built in
 * is named, whatever the number of nodes and wherever it is.
 *
 * Usage: test_pairsearch [SEED]; a failure prints the seed of that network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pairnet.h"

static uint64_t base_seed = 20261201;

static struct pairnet net;

static int teardown(void **state)
{
    (void)state;
    pairnet_end(&net);
    return 0;
}

static void begin(uint32_t nodes, uint64_t seed)
{
    pairnet_end(&net);
    pairnet_init(&net, nodes, seed);
    net.noise = 0.03;
}

static void test_healthy(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 64; n++) {
        for (uint64_t i = 0; i < 20; i++) {
            begin(n, base_seed + i);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
            pairnet_expect(&net, net.result.outcome == PAIRSEARCH_HEALTHY);
            pairnet_expect(&net, net.result.named_in == 0);
        }
    }
}

/* One node, in each place. */
static void check_one_node(uint32_t nodes_max, uint8_t ways, double rate,
                           uint32_t rounds)
{
    for (uint32_t n = 3; n <= nodes_max; n++) {
        for (uint32_t node = 0; node < n; node++) {
            begin(n, base_seed + n * 1000 + node * 4 + ways);
            pairnet_slow(&net, node, ways, rate);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
            pairnet_expect(&net, net.result.named_in <= rounds);
            pairnet_expect(&net, net.result.nodes[node].is_tested_alone);
        }
    }
}

static void test_one_node(void **state)
{
    (void)state;
    check_one_node(64, PAIRSEARCH_BOTH_WAYS, 0.5, 3);
    check_one_node(24, PAIRSEARCH_SENDS, 0.5, 3);
    check_one_node(24, PAIRSEARCH_RECEIVES, 0.5, 3);
    check_one_node(24, PAIRSEARCH_BOTH_WAYS, 0.65, PAIRSEARCH_ROUNDS_MAX);
}

/* A little slower, where noise does not hide it: the margin is 15 % of few
 * figures, and the slow ones are no part of what is healthy. */
static void test_a_little_slower(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 16; n++) {
        for (uint32_t node = 0; node < n; node++) {
            begin(n, base_seed);
            net.noise = 0;
            pairnet_slow(&net, node, PAIRSEARCH_BOTH_WAYS, 0.82);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
        }
    }
}

/* One path of the ring, in each place. */
static void check_one_path(uint32_t nodes_max, uint8_t ways)
{
    for (uint32_t n = 3; n <= nodes_max; n++) {
        for (uint32_t a = 0; a < n; a++) {
            begin(n, base_seed + n * 1000 + a * 4 + ways);
            if (ways & PAIRSEARCH_A_TO_B) {
                pairnet_bad_path(&net, a, (a + 1) % n, 0.6);
            }
            if (ways & PAIRSEARCH_B_TO_A) {
                pairnet_bad_path(&net, (a + 1) % n, a, 0.6);
            }
            pairnet_run(&net);
            pairnet_expect_exact(&net);
            pairnet_expect(&net, net.result.paths[0].is_tested_alone);
        }
    }
}

static void test_one_path(void **state)
{
    (void)state;
    check_one_path(64, PAIRSEARCH_BOTH_WAYS);
    check_one_path(24, PAIRSEARCH_A_TO_B);
    check_one_path(24, PAIRSEARCH_B_TO_A);
}

/* Any path, where all pairs are measured. */
static void test_any_path(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 16; n++) {
        for (uint32_t pair = 0; pair < n * n; pair++) {
            if (pair / n == pair % n) {
                continue;
            }
            begin(n, base_seed + n * 1000 + pair);
            net.config.is_all_pairs = true;
            pairnet_bad_path(&net, pair / n, pair % n, 0.6);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
            pairnet_expect(&net,
                           net.together_rounds == pairing_circle_rounds(n));
        }
    }
}

/* ---- several ---- */

static const double rates[3] = {0.5, 0.65, 0.35};

/* The nodes of which `bits` says so, alike or each with a rate of its own. */
static void check_nodes(uint32_t n, uint32_t bits, bool are_alike, double noise,
                        double floor)
{
    uint32_t count = 0;
    begin(n, base_seed + bits * 2 + are_alike);
    net.noise = noise;
    net.config.floor_bytes_per_s = floor * PAIRNET_RATE;
    for (uint32_t i = 0; i < n; i++) {
        if (bits >> i & 1) {
            pairnet_slow(&net, i, PAIRSEARCH_BOTH_WAYS,
                         rates[are_alike ? 0 : count % 3]);
            count++;
        }
    }
    pairnet_run(&net);
    pairnet_expect_exact(&net);
    pairnet_expect(&net, net.result.faster_nodes == 0);
}

static uint32_t ones(uint32_t bits)
{
    return bits == 0 ? 0 : (bits & 1) + ones(bits >> 1);
}

/* Two and three, in all places of up to 12 nodes, as long as half are good. */
static void test_two_and_three(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 12; n++) {
        for (uint32_t bits = 0; bits < 1u << n; bits++) {
            uint32_t count = ones(bits);
            if ((count != 2 && count != 3) || 2 * count > n) {
                continue;
            }
            check_nodes(n, bits, true, 0, 0);
            check_nodes(n, bits, false, 0.03, 0);
        }
    }
}

/* With a floor even where only two are good. */
static void test_most_are_bad(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 8; n++) {
        for (uint32_t bits = 0; bits < 1u << n; bits++) {
            if (ones(bits) <= n - 2) {
                check_nodes(n, bits, true, 0.03, 0.8);
            }
        }
    }
}

static void test_many_random(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 600; i++) {
        begin(1, base_seed + i);
        uint32_t n = 13 + (uint32_t)gpul_rng_below(&net.rng, 120);
        begin(n, base_seed + i);
        for (uint64_t k = 0; k < 1 + i % 4; k++) {
            pairnet_slow(&net, (uint32_t)gpul_rng_below(&net.rng, n),
                         (uint8_t)(1 + gpul_rng_below(&net.rng, 3)),
                         rates[k % 3]);
        }
        pairnet_run(&net);
        pairnet_expect_exact(&net);
    }
}

/* Every second one is slow, so all neighbours are alike. */
static void test_every_second(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 64; n += 2) {
        begin(n, base_seed + n);
        for (uint32_t i = 0; i < n; i += 2) {
            pairnet_slow(&net, i, PAIRSEARCH_BOTH_WAYS, 0.5);
        }
        pairnet_run(&net);
        for (uint32_t i = 0; i < n; i++) {
            pairnet_expect(&net, net.result.nodes[i].state ==
                                     (i % 2 == 0 ? PAIRSEARCH_NODE_SLOW
                                                 : PAIRSEARCH_NODE_OK));
        }
        pairnet_expect(&net, net.result.named_in <= (n < 12 ? 7 : 5));
    }
}

/* A node and a path that it is no end of. */
static void test_node_and_path(void **state)
{
    (void)state;
    for (uint32_t n = 5; n <= 32; n += n < 12 ? 1 : 5) {
        for (uint32_t node = 0; node < n; node++) {
            for (uint32_t a = 0; a < n; a++) {
                if (a == node || (a + 1) % n == node) {
                    continue;
                }
                begin(n, base_seed + n * 10000 + node * 100 + a);
                pairnet_slow(&net, node, PAIRSEARCH_BOTH_WAYS, 0.5);
                pairnet_bad_path(&net, a, (a + 1) % n, 0.5);
                pairnet_run(&net);
                pairnet_expect_exact(&net);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_healthy, teardown),
        cmocka_unit_test_teardown(test_one_node, teardown),
        cmocka_unit_test_teardown(test_a_little_slower, teardown),
        cmocka_unit_test_teardown(test_one_path, teardown),
        cmocka_unit_test_teardown(test_any_path, teardown),
        cmocka_unit_test_teardown(test_two_and_three, teardown),
        cmocka_unit_test_teardown(test_most_are_bad, teardown),
        cmocka_unit_test_teardown(test_many_random, teardown),
        cmocka_unit_test_teardown(test_every_second, teardown),
        cmocka_unit_test_teardown(test_node_and_path, teardown),
    };
    if (argc > 1) {
        base_seed = strtoull(argv[1], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
