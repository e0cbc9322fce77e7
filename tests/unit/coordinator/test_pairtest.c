/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of trials: nodes tell what the test has made up, until the search has
 * its answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/pairtest.h"

enum { NODES = 8, BUSY = 60, NOBODY = 1000 };
#define MS UINT64_C(1000000)

/* One GB/s, but for one node. */
struct plan {
    uint32_t slow;
    double slow_gbps;
    uint32_t busy_percent; /* of everybody */
};

static void fill_way(Gpul__TrialWay *way, double gbps, uint32_t busy_percent)
{
    gpul__trial_way__init(way);
    way->bytes = (uint64_t)(gbps * 1e9 * 0.2);
    way->ns = 200 * MS;
    way->segments = 1000;
    way->rtt_count = 256;
    way->rtt_median_ns = 20000;
    way->busy_percent = busy_percent;
}

static int tell(struct pairtest *t, uint32_t node, const struct plan *plan)
{
    Gpul__TrialResult result = GPUL__TRIAL_RESULT__INIT;
    Gpul__TrialWay ways[2];
    uint32_t partner = t->nodes[node].partner;
    bool is_slow = node == plan->slow || partner == plan->slow;
    for (int i = 0; i < 2; i++) {
        fill_way(&ways[i], is_slow ? plan->slow_gbps : 1, plan->busy_percent);
    }
    result.trial = t->trial;
    result.sending = &ways[0];
    result.receiving = &ways[1];
    return pairtest_tell(t, node, &result);
}

/* To the end; returns the rounds. */
static uint32_t run(struct pairtest *t, const struct plan *plan,
                    struct pairsearch_result *result)
{
    uint32_t rounds = 0;
    while (pairtest_next(t)) {
        uint32_t last = 0;
        rounds++;
        for (uint32_t i = 0; i < t->node_count; i++) {
            if (t->nodes[i].partner != PAIRTEST_RESTS) {
                assert_int_equal(last, 0);
                last = (uint32_t)tell(t, i, plan);
            }
        }
        assert_int_equal(last, 1);
        assert_int_equal(pairtest_finish(t, NULL), 0);
    }
    pairsearch_result(t->search, result);
    return rounds;
}

static void test_healthy(void **state)
{
    (void)state;
    struct pairtest t;
    struct pairsearch_result result;
    const struct plan plan = {.slow = NOBODY};
    assert_int_equal(pairtest_init(&t, NODES, NULL), 0);
    assert_in_range(run(&t, &plan, &result), 2, 3);
    assert_int_equal(result.outcome, PAIRSEARCH_HEALTHY);
    pairtest_release(&t);
}

static void test_slow(void **state)
{
    (void)state;
    for (uint32_t slow = 0; slow < NODES; slow++) {
        struct pairtest t;
        struct pairsearch_result result;
        const struct plan plan = {.slow = slow, .slow_gbps = 0.01};
        assert_int_equal(pairtest_init(&t, NODES, NULL), 0);
        run(&t, &plan, &result);
        assert_int_equal(result.outcome, PAIRSEARCH_FOUND);
        assert_int_equal(result.slow_nodes, 1);
        assert_int_equal(result.nodes[slow].state, PAIRSEARCH_NODE_SLOW);
        assert_int_equal(result.path_count, 0);
        assert_in_range(result.named_in, 1, 3);
        pairtest_release(&t);
    }
}

/* The same on processors that are the bound: nobody is named. */
static void test_busy(void **state)
{
    (void)state;
    struct pairtest t;
    struct pairsearch_result result;
    const struct plan plan = {
        .slow = 3, .slow_gbps = 0.5, .busy_percent = BUSY};
    assert_int_equal(pairtest_init(&t, NODES, NULL), 0);
    run(&t, &plan, &result);
    assert_int_equal(result.outcome, PAIRSEARCH_HEALTHY);
    pairtest_release(&t);
}

/* In a pair one dials first; who rests tells nothing; a result counts once,
 * and only in its round. */
static void test_order(void **state)
{
    (void)state;
    struct pairtest t;
    struct pairsearch_result ignored;
    const struct plan plan = {.slow = NOBODY};
    assert_int_equal(pairtest_init(&t, 3, NULL), 0);
    assert_int_equal(t.step, PAIRTEST_OPENING);
    assert_int_equal(tell(&t, 0, &plan), 0);
    assert_true(pairtest_next(&t));
    assert_int_equal(t.left, 2);
    uint32_t a = t.round.pairs[0].a;
    uint32_t b = t.round.pairs[0].b;
    uint32_t rests = 3 - a - b;
    assert_int_equal(t.nodes[a].partner, b);
    assert_int_equal(t.nodes[b].partner, a);
    assert_true(t.nodes[a].dials_first);
    assert_false(t.nodes[b].dials_first);
    assert_int_equal(t.nodes[rests].partner, PAIRTEST_RESTS);
    assert_int_equal(tell(&t, rests, &plan), 0);
    assert_int_equal(tell(&t, a, &plan), 0);
    assert_int_equal(tell(&t, a, &plan), 0);
    assert_int_equal(t.left, 1);
    t.trial++; /* what is said of another round is not heard */
    Gpul__TrialResult late = GPUL__TRIAL_RESULT__INIT;
    late.trial = t.trial - 1;
    assert_int_equal(pairtest_tell(&t, b, &late), 0);
    t.trial--;
    assert_int_equal(tell(&t, b, &plan), 1);
    assert_int_equal(pairtest_finish(&t, NULL), 0);
    run(&t, &plan, &ignored);
    pairtest_release(&t);
    pairtest_release(&t);
}

static void test_limits(void **state)
{
    (void)state;
    struct pairtest t;
    struct gpul_error err;
    assert_int_equal(pairtest_init(&t, PAIRSEARCH_NODES_MAX + 1, &err),
                     GPUL_ELIMIT);
    pairtest_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_busy),    cmocka_unit_test(test_order),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
