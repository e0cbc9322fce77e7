/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by pairs, case by case: two nodes, what is missing, dead, cut
 * off, losing data or shared, groups, and figures that mean nothing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairnet.h"

enum { SEED = 20261201 };

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
    pairnet_init(&net, nodes, SEED + seed);
    net.noise = 0.03;
}

static void expect_node(uint32_t node, enum pairsearch_state state)
{
    pairnet_expect(&net, net.result.nodes[node].state == state);
}

static void expect_outcome(enum pairsearch_outcome outcome)
{
    pairnet_expect(&net, net.result.outcome == outcome);
}

/* ---- two nodes ---- */

static void test_two_nodes(void **state)
{
    (void)state;
    begin(2, 0);
    net.config.floor_bytes_per_s = PAIRNET_RATE / 2;
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_HEALTHY);
    assert_int_equal(net.result.rounds, 1);

    begin(2, 0);
    net.config.floor_bytes_per_s = PAIRNET_RATE / 2;
    pairnet_slow(&net, 1, PAIRSEARCH_BOTH_WAYS, 0.2);
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_NEEDS_THIRD);
    expect_node(0, PAIRSEARCH_NODE_UNKNOWN);
    expect_node(1, PAIRSEARCH_NODE_UNKNOWN);
    assert_int_equal(net.result.path_count, 1);
    assert_int_equal(net.result.paths[0].kind, PAIRSEARCH_PATH_UNRESOLVED);
    assert_int_equal(net.result.paths[0].ways, PAIRSEARCH_BOTH_WAYS);
    assert_int_equal(net.result.reference.rule, PAIRSEARCH_RULE_FLOOR);

    /* One direction slower than the other needs no floor. */
    begin(2, 0);
    pairnet_bad_path(&net, 0, 1, 0.3);
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_NEEDS_THIRD);
    assert_int_equal(net.result.paths[0].ways, PAIRSEARCH_A_TO_B);
}

/* ---- nothing to compare with ---- */

/* Two bad ones of three: no pair is good. */
static void test_all_bad(void **state)
{
    (void)state;
    begin(3, 0);
    net.config.floor_bytes_per_s = 0.8 * PAIRNET_RATE;
    pairnet_slow(&net, 0, PAIRSEARCH_BOTH_WAYS, 0.5);
    pairnet_slow(&net, 2, PAIRSEARCH_BOTH_WAYS, 0.5);
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_ALL_BAD);
    assert_int_equal(net.result.unknown_nodes, 3);
}

/* Without a floor most nodes are the rule; that some are faster is said. */
static void test_few_are_faster(void **state)
{
    (void)state;
    begin(16, 0);
    for (uint32_t i = 0; i < 16; i++) {
        pairnet_slow(&net, i, PAIRSEARCH_BOTH_WAYS,
                     i == 4 || i == 8 || i == 12 ? 1 : 0.5);
    }
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_HEALTHY);
    assert_int_equal(net.result.slow_nodes, 0);
    assert_int_equal(net.result.faster_nodes, 3);
}

/* ---- missing ---- */

static void test_nothing_is_reported(void **state)
{
    struct pairsearch_config config = {.node_count = 9};
    struct pairsearch_round round;
    struct pairsearch_result result;
    struct pairsearch *search;
    (void)state;
    assert_int_equal(pairsearch_create(&search, &config, NULL), 0);
    pairsearch_result(search, &result);
    assert_int_equal(result.outcome, PAIRSEARCH_INCOMPLETE);
    assert_int_equal(result.unknown_nodes, 9);
    while (pairsearch_next(search, &round)) {
        assert_true(round.number <= PAIRSEARCH_ROUNDS_MAX);
    }
    pairsearch_result(search, &result);
    assert_int_equal(result.outcome, PAIRSEARCH_INCOMPLETE);
    assert_int_equal(result.unknown_nodes, 9);
    assert_int_equal(result.path_count, 0);
    pairsearch_destroy(search);
}

/* One that cannot measure is unknown, its neighbours are not. */
static void test_mute(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 33; n++) {
        for (uint32_t mute = 0; mute < n; mute++) {
            begin(n, n * 100 + mute);
            net.is_mute[mute] = true;
            pairnet_run(&net);
            expect_outcome(PAIRSEARCH_INCOMPLETE);
            pairnet_expect(&net, net.result.unknown_nodes == 1);
            expect_node(mute, PAIRSEARCH_NODE_UNKNOWN);
            pairnet_expect(&net,
                           net.result.nodes[mute].ways == PAIRSEARCH_BOTH_WAYS);
        }
    }
}

/* Of figures that get lost nobody is accused, and nobody is good of whom
 * nothing was measured. */
static void test_lost_figures(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        begin(4 + (uint32_t)i % 40, i);
        net.missing = (double)(1 + i % 9) / 10;
        if (i % 2 == 0) {
            pairnet_slow(&net, 2, PAIRSEARCH_BOTH_WAYS, 0.5);
        }
        pairnet_run(&net);
        for (uint32_t node = 0; node < net.config.node_count; node++) {
            const struct pairsearch_node *v = &net.result.nodes[node];
            pairnet_expect(&net, v->state != PAIRSEARCH_NODE_UNREACHABLE);
            pairnet_expect(&net, v->state != PAIRSEARCH_NODE_SLOW ||
                                     net.rates[0][node] < 1);
            pairnet_expect(&net, v->state != PAIRSEARCH_NODE_OK ||
                                     (v->best_bytes_per_s[0] > 0 &&
                                      v->best_bytes_per_s[1] > 0));
        }
    }
}

/* ---- dead, cut off, losing data ---- */

static void expect_dead(uint32_t n)
{
    net.noise = 0;
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_FOUND);
    for (uint32_t i = 0; i < n; i++) {
        expect_node(i, net.is_dead[i] ? PAIRSEARCH_NODE_UNREACHABLE
                                      : PAIRSEARCH_NODE_OK);
        pairnet_expect(&net, !net.is_dead[i] || net.result.nodes[i].ways ==
                                                    PAIRSEARCH_RECEIVES);
    }
    pairnet_expect(&net, net.result.path_count == 0);
    pairnet_expect(&net, net.alone_rounds == 0);
}

static void test_dead(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 64; n++) {
        for (uint32_t dead = 0; dead < n; dead++) {
            begin(n, n * 100 + dead);
            net.is_dead[dead] = true;
            expect_dead(n);
        }
    }
    for (uint32_t n = 4; n <= 12; n++) {
        for (uint32_t pair = 0; pair < n * n; pair++) {
            if (pair / n < pair % n) {
                begin(n, n * 100 + pair);
                net.is_dead[pair / n] = true;
                net.is_dead[pair % n] = true;
                expect_dead(n);
            }
        }
    }
}

/* All pairs of a small job are measured where a third is slow, but those of a
 * dead node cost a time-out each. */
static void test_dead_is_spared(void **state)
{
    (void)state;
    begin(8, 0);
    for (uint32_t i = 1; i < 4; i++) {
        pairnet_slow(&net, i, PAIRSEARCH_BOTH_WAYS, 0.5);
    }
    net.is_dead[6] = true;
    pairnet_run(&net);
    expect_node(6, PAIRSEARCH_NODE_UNREACHABLE);
    assert_int_equal(net.result.slow_nodes, 3);
    assert_true(net.together_rounds > 4);
    assert_true(net.dead_pairs <= 3);
}

/* A firewall between two nodes, in one direction. */
static void test_blocked(void **state)
{
    static const enum pairsearch_status statuses[] = {PAIRSEARCH_REFUSED,
                                                      PAIRSEARCH_TIMEOUT};
    (void)state;
    for (uint32_t n = 3; n <= 32; n++) {
        for (uint32_t a = 0; a < n; a++) {
            begin(n, n * 100 + a);
            pairnet_bad_path(&net, (a + 1) % n, a, 1);
            net.paths[0].status = statuses[a % 2];
            pairnet_run(&net);
            expect_outcome(PAIRSEARCH_FOUND);
            pairnet_expect(&net, net.result.path_count == 1);
            const struct pairsearch_path *path = &net.result.paths[0];
            pairnet_expect(&net, path->kind == (a % 2 == 0
                                                    ? PAIRSEARCH_PATH_BLOCKED
                                                    : PAIRSEARCH_PATH_STALLED));
            pairnet_expect(
                &net, (path->ways == PAIRSEARCH_A_TO_B ? path->a : path->b) ==
                          (a + 1) % n);
            pairnet_expect(&net, path->is_tested_alone);
            pairnet_expect(&net, net.result.unknown_nodes == 0);
        }
    }
}

/* Nobody can dial it, and it reaches all. */
static void test_firewall_of_a_node(void **state)
{
    (void)state;
    begin(8, 0);
    for (uint32_t i = 0; i < 8; i++) {
        if (i != 5) {
            pairnet_bad_path(&net, i, 5, 1);
            net.paths[net.path_count - 1].status = PAIRSEARCH_REFUSED;
        }
    }
    pairnet_run(&net);
    expect_node(5, PAIRSEARCH_NODE_UNREACHABLE);
    assert_int_equal(net.result.nodes[5].ways, PAIRSEARCH_RECEIVES);
    assert_true(net.result.nodes[5].best_bytes_per_s[0] > 0);
    assert_int_equal(net.result.path_count, 0);
    assert_int_equal(net.result.unknown_nodes, 0);
}

/* It is found by the loss even where the rate is good. */
static void test_lossy(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        begin(8, i);
        pairnet_bad_path(&net, 3, 4, i == 0 ? 1 : 0.4);
        net.paths[0].loss = 0.1;
        pairnet_run(&net);
        pairnet_expect(&net, net.result.path_count == 1);
        assert_int_equal(net.result.paths[0].kind, PAIRSEARCH_PATH_LOSSY);
        assert_int_equal(net.result.paths[0].ways, PAIRSEARCH_A_TO_B);
    }
    begin(8, 0); /* all that one sends */
    for (uint32_t i = 0; i < 8; i++) {
        if (i != 5) {
            pairnet_bad_path(&net, 5, i, 0.3);
            net.paths[net.path_count - 1].loss = 0.1;
        }
    }
    pairnet_run(&net);
    expect_node(5, PAIRSEARCH_NODE_SLOW);
    assert_int_equal(net.result.nodes[5].ways, PAIRSEARCH_SENDS);
    assert_true(net.result.nodes[5].is_lossy);
}

/* A slow node whose path to one neighbour is blocked as well. */
static void test_slow_and_blocked(void **state)
{
    (void)state;
    begin(8, 0);
    pairnet_slow(&net, 3, PAIRSEARCH_BOTH_WAYS, 0.4);
    pairnet_bad_path(&net, 3, 4, 1);
    net.paths[0].status = PAIRSEARCH_REFUSED;
    pairnet_run(&net);
    expect_node(3, PAIRSEARCH_NODE_SLOW);
    assert_int_equal(net.result.nodes[3].ways, PAIRSEARCH_BOTH_WAYS);
    assert_int_equal(net.result.path_count, 1);
    assert_int_equal(net.result.paths[0].kind, PAIRSEARCH_PATH_BLOCKED);
}

/* ---- a shared network ---- */

/* All pairs at once want more than the link in the middle carries: nobody is
 * named, and a node that is slow by itself still is. */
static void test_shared(void **state)
{
    (void)state;
    for (uint32_t n = 8; n <= 40; n++) {
        begin(n, n);
        net.middle = 1;
        pairnet_run(&net);
        expect_outcome(PAIRSEARCH_SHARED);
        pairnet_expect(&net, net.result.slow_nodes == 0);
        pairnet_expect(&net, net.result.unknown_nodes == 0);
        for (uint32_t i = 0; i < net.result.path_count; i++) {
            pairnet_expect(&net, net.result.paths[i].kind ==
                                     PAIRSEARCH_PATH_CONGESTED);
        }
        begin(n, n);
        net.middle = 1;
        pairnet_slow(&net, n / 3, PAIRSEARCH_BOTH_WAYS, 0.25);
        pairnet_run(&net);
        pairnet_expect(&net, net.result.slow_nodes == 1);
        expect_node(n / 3, PAIRSEARCH_NODE_SLOW);
        pairnet_expect(&net, net.result.nodes[n / 3].is_tested_alone);
    }
}

/* All pairs share one machine, so each round is as fast as it is full: one
 * pair alone is many times faster, and that is no reference for the others. */
static void test_one_machine(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 24; n++) {
        for (uint32_t node = 0; node < n; node++) {
            begin(n, n * 100 + node);
            net.total = 1;
            pairnet_slow(&net, node, PAIRSEARCH_SENDS, 0.3 / n);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
            pairnet_expect(&net, net.result.faster_nodes == 0);
            begin(n, n * 100 + node);
            net.total = 1;
            pairnet_bad_path(&net, node, (node + 1) % n, 0.3 / n);
            pairnet_run(&net);
            pairnet_expect_exact(&net);
        }
    }
}

/* The way back of each bad path is measured alone too, and much faster. */
static void test_one_machine_two_paths(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 12; n++) {
        begin(n, n);
        net.total = 1;
        pairnet_bad_path(&net, 0, 1, 0.3 / n);
        pairnet_bad_path(&net, 2, 3, 0.3 / n);
        pairnet_run(&net);
        pairnet_expect_exact(&net);
    }
}

/* Slow once, good when it is measured again: that is no fault; and where it was
 * alone both times no sign of a shared network either. */
static void test_slow_once(void **state)
{
    struct pairsearch_config config = {.node_count = 3};
    struct pairsearch_round round;
    struct pairsearch_result result;
    struct pairsearch *search;
    (void)state;
    assert_int_equal(pairsearch_create(&search, &config, NULL), 0);
    while (pairsearch_next(search, &round)) {
        double rate = round.number == 1 ? 3e9 : 1e10;
        struct pairsearch_measure m = {
            {.status = PAIRSEARCH_MEASURED, .bytes_per_s = rate},
            {.status = PAIRSEARCH_MEASURED, .bytes_per_s = rate},
        };
        assert_int_equal(round.count, 1);
        pairsearch_report(search, 0, &m);
    }
    pairsearch_result(search, &result);
    assert_int_equal(result.rounds, 4);
    assert_int_equal(result.outcome, PAIRSEARCH_HEALTHY);
    assert_int_equal(result.path_count, 0);
    pairsearch_destroy(search);
}

/* ---- the whole is slow, all pairs are good ---- */

static void begin_whole(uint32_t nodes, uint32_t slow_from)
{
    begin(nodes, slow_from);
    net.config.whole_bytes_per_s = PAIRNET_RATE / 4;
    net.config.whole_floor_bytes_per_s = PAIRNET_RATE / 2;
    net.whole = PAIRNET_RATE / 4;
    net.whole_from = slow_from;
}

static void test_halves(void **state)
{
    (void)state;
    begin_whole(32, 8); /* halves are slow, quarters are not */
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_FOUND);
    assert_int_equal(net.group_rounds, 2);
    assert_int_equal(net.result.group_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(net.result.groups[i].members.first, i * 16);
        assert_int_equal(net.result.groups[i].members.count, 16);
        assert_true(net.result.groups[i].are_halves_known);
    }

    begin_whole(13, 13); /* only all of them */
    pairnet_run(&net);
    assert_int_equal(net.group_rounds, 1);
    assert_int_equal(net.result.group_count, 1);
    assert_int_equal(net.result.groups[0].members.count, 13);

    begin_whole(13, 0); /* down to the smallest */
    pairnet_run(&net);
    assert_int_equal(net.result.group_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_in_range(net.result.groups[i].members.count, 2, 3);
    }

    begin_whole(3, 0); /* too small for halves */
    pairnet_run(&net);
    assert_int_equal(net.group_rounds, 0);
    assert_int_equal(net.result.group_count, 1);
    assert_false(net.result.groups[0].are_halves_known);
}

/* The slow node explains the whole; a whole that is good needs no groups. */
static void test_no_halves(void **state)
{
    (void)state;
    begin_whole(32, 8);
    pairnet_slow(&net, 3, PAIRSEARCH_BOTH_WAYS, 0.2);
    pairnet_run(&net);
    assert_int_equal(net.group_rounds, 0);
    begin_whole(32, 8);
    net.config.whole_bytes_per_s = PAIRNET_RATE;
    pairnet_run(&net);
    assert_int_equal(net.group_rounds, 0);
    expect_outcome(PAIRSEARCH_HEALTHY);
}

/* ---- figures that mean nothing ---- */

static double draw_nonsense(struct gpul_rng *rng)
{
    static const double values[] = {0,   -1,   NAN,    INFINITY, -INFINITY,
                                    1e9, 1e10, 1e-310, 1e308,    5e9};
    return values[gpul_rng_below(rng, sizeof(values) / sizeof(values[0]))];
}

static struct pairsearch_figure draw_figure(struct gpul_rng *rng)
{
    struct pairsearch_figure f;
    f.status = (enum pairsearch_status)gpul_rng_below(rng, 6);
    f.bytes_per_s = draw_nonsense(rng);
    f.loss = draw_nonsense(rng);
    return f;
}

static void expect_sane(const struct pairsearch_result *r)
{
    assert_true(isfinite(r->reference.median));
    assert_true(isfinite(r->reference.threshold));
    for (uint32_t i = 0; i < r->node_count; i++) {
        assert_true(r->nodes[i].ratio >= 0);
        assert_true(isfinite(r->nodes[i].best_bytes_per_s[0]));
        for (uint32_t k = 0; k < r->nodes[i].evidence_count; k++) {
            assert_true(r->nodes[i].evidence[k].from < r->node_count);
            assert_true(r->nodes[i].evidence[k].to < r->node_count);
        }
    }
    for (uint32_t i = 0; i < r->path_count; i++) {
        assert_true(r->paths[i].a < r->node_count);
        assert_true(r->paths[i].b < r->node_count);
        assert_true(r->paths[i].kind != 0 && r->paths[i].ways != 0);
    }
}

static void report_nonsense(struct pairsearch *search, struct gpul_rng *rng,
                            const struct pairsearch_round *round)
{
    for (uint32_t k = 0; k < round->count + 2; k++) {
        uint32_t index = (uint32_t)gpul_rng_below(rng, round->count + 3);
        struct pairsearch_measure m = {draw_figure(rng), draw_figure(rng)};
        pairsearch_report(search, index, &m);
        pairsearch_report_group(search, index, &m.a_to_b);
        pairsearch_report(search, UINT32_MAX, &m);
    }
}

/* Whatever is said, by whom and when: an end, and verdicts that are numbers.
 */
static void test_nonsense(void **state)
{
    struct gpul_rng rng;
    (void)state;
    gpul_rng_init(&rng, SEED);
    for (int i = 0; i < 2000; i++) {
        struct pairsearch_config config = {
            .node_count = 2 + (uint32_t)gpul_rng_below(&rng, 24),
            .floor_bytes_per_s = draw_nonsense(&rng),
            .loss_limit = draw_nonsense(&rng),
            .whole_bytes_per_s = draw_nonsense(&rng),
            .whole_floor_bytes_per_s = draw_nonsense(&rng),
            .is_all_pairs = gpul_rng_below(&rng, 4) == 0,
        };
        struct pairsearch_round round;
        struct pairsearch_result result;
        struct pairsearch *search;
        assert_int_equal(pairsearch_create(&search, &config, NULL), 0);
        report_nonsense(search, &rng, &(struct pairsearch_round){0});
        while (pairsearch_next(search, &round)) {
            assert_true(round.number <= PAIRSEARCH_ROUNDS_MAX + 26);
            report_nonsense(search, &rng, &round);
            pairsearch_result(search, &result);
            expect_sane(&result);
        }
        report_nonsense(search, &rng, &(struct pairsearch_round){.count = 3});
        pairsearch_result(search, &result);
        expect_sane(&result);
        pairsearch_destroy(search);
    }
}

/* Each pair of a round: one bad figure too good to be true accuses nobody. */
static void test_too_good(void **state)
{
    (void)state;
    begin(16, 0);
    pairnet_bad_path(&net, 3, 4, 50);
    pairnet_run(&net);
    expect_outcome(PAIRSEARCH_HEALTHY);
}

static void test_limits(void **state)
{
    struct pairsearch_config config = {.node_count = 1};
    struct pairsearch *search;
    struct gpul_error err = {0};
    (void)state;
    assert_int_equal(pairsearch_create(&search, &config, &err), GPUL_EINVAL);
    assert_null(search);
    assert_string_equal(err.text, "pairs need two nodes at least, not 1");
    config.node_count = PAIRSEARCH_NODES_MAX + 1;
    assert_int_equal(pairsearch_create(&search, &config, NULL), GPUL_ELIMIT);
    config.node_count = PAIRSEARCH_ALL_PAIRS_NODES_MAX + 1;
    config.is_all_pairs = true;
    assert_int_equal(pairsearch_create(&search, &config, NULL), GPUL_ELIMIT);
    assert_null(search);
    pairsearch_destroy(NULL);
}

/* ---- many nodes ---- */

static void test_four_thousand(void **state)
{
    (void)state;
    begin(PAIRNET_NODES_MAX - 1, 0);
    pairnet_slow(&net, 17, PAIRSEARCH_BOTH_WAYS, 0.5);
    pairnet_slow(&net, 18, PAIRSEARCH_SENDS, 0.5);
    pairnet_slow(&net, 4094, PAIRSEARCH_RECEIVES, 0.5);
    pairnet_run(&net);
    pairnet_expect_exact(&net);
    pairnet_expect(&net, net.result.named_in <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_two_nodes, teardown),
        cmocka_unit_test_teardown(test_all_bad, teardown),
        cmocka_unit_test_teardown(test_few_are_faster, teardown),
        cmocka_unit_test_teardown(test_nothing_is_reported, teardown),
        cmocka_unit_test_teardown(test_mute, teardown),
        cmocka_unit_test_teardown(test_lost_figures, teardown),
        cmocka_unit_test_teardown(test_dead, teardown),
        cmocka_unit_test_teardown(test_dead_is_spared, teardown),
        cmocka_unit_test_teardown(test_blocked, teardown),
        cmocka_unit_test_teardown(test_firewall_of_a_node, teardown),
        cmocka_unit_test_teardown(test_lossy, teardown),
        cmocka_unit_test_teardown(test_slow_and_blocked, teardown),
        cmocka_unit_test_teardown(test_shared, teardown),
        cmocka_unit_test_teardown(test_one_machine, teardown),
        cmocka_unit_test_teardown(test_one_machine_two_paths, teardown),
        cmocka_unit_test(test_slow_once),
        cmocka_unit_test_teardown(test_halves, teardown),
        cmocka_unit_test_teardown(test_no_halves, teardown),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test_teardown(test_too_good, teardown),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_teardown(test_four_thousand, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
