/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes times rails: each rail is searched in a network of its own, and the
 * table says whether it is a card, a node or a rail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/railtable.h"
#include "pairnet.h"

enum { NODES = 8, RAILS = 4 };

static struct pairnet nets[RAILS];
static struct pairsearch_result results[RAILS];
static struct railtable table;

static int setup(void **state)
{
    (void)state;
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        pairnet_init(&nets[rail], NODES, 1 + rail);
        nets[rail].noise = 0.03;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        pairnet_end(&nets[rail]);
    }
    railtable_release(&table);
    return 0;
}

static void judge(void)
{
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        pairnet_run(&nets[rail]);
        results[rail] = nets[rail].result;
    }
    assert_int_equal(railtable_judge(&table, results, RAILS, NODES, NULL), 0);
}

static void expect_node(uint32_t node, enum railtable_cause cause, uint64_t bad)
{
    assert_int_equal(table.nodes[node].cause, cause);
    assert_int_equal(table.nodes[node].bad, bad);
}

static void test_card_and_node(void **state)
{
    (void)state;
    pairnet_slow(&nets[2], 5, PAIRSEARCH_SENDS, 0.4);
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        pairnet_slow(&nets[rail], 1, PAIRSEARCH_BOTH_WAYS, 0.5);
    }
    pairnet_slow(&nets[1], 6, PAIRSEARCH_RECEIVES, 0.4);
    pairnet_slow(&nets[3], 6, PAIRSEARCH_RECEIVES, 0.4);
    nets[3].is_mute[7] = true;
    nets[0].is_dead[3] = true;
    judge();
    expect_node(0, RAILTABLE_OK, 0);
    expect_node(1, RAILTABLE_NODE, 0xf);
    expect_node(3, RAILTABLE_CARD, 1);
    expect_node(5, RAILTABLE_CARD, 4);
    expect_node(6, RAILTABLE_CARD, 8 + 2);
    expect_node(7, RAILTABLE_UNKNOWN, 0);
    assert_int_equal(table.nodes[7].unknown, 8);
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        assert_false(table.rails[rail].is_slow);
    }
}

/* No node of it stands out within the rail, but the rail does among rails. */
static void test_slow_rail(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < NODES; node++) {
        pairnet_slow(&nets[1], node, PAIRSEARCH_BOTH_WAYS, 0.5);
    }
    judge();
    for (uint32_t node = 0; node < NODES; node++) {
        expect_node(node, RAILTABLE_OK, 0);
    }
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        assert_int_equal(table.rails[rail].is_slow, rail == 1);
    }
    assert_true(table.rails[1].ratio > 0.4 && table.rails[1].ratio < 0.6);
}

static void test_unmeasured_rail(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < NODES; node++) {
        nets[0].is_mute[node] = true;
    }
    judge();
    expect_node(0, RAILTABLE_UNKNOWN, 0);
    assert_true(table.rails[0].ratio == 0);
    assert_false(table.rails[0].is_slow);
}

static void expect_refusal(uint32_t rails, uint32_t nodes, int status,
                           const char *text)
{
    struct gpul_error err = {0};
    assert_int_equal(railtable_judge(&table, results, rails, nodes, &err),
                     status);
    assert_string_equal(err.text, text);
}

static void test_limits(void **state)
{
    (void)state;
    judge();
    railtable_release(&table);
    expect_refusal(0, NODES, GPUL_EINVAL, "0 rails of 8 nodes");
    expect_refusal(RAILS, 0, GPUL_EINVAL, "4 rails of 0 nodes");
    expect_refusal(RAILS, NODES + 1, GPUL_EINVAL,
                   "rail 0 was searched with 8 nodes instead of 9");
    expect_refusal(RAILTABLE_RAILS_MAX + 1, NODES, GPUL_ELIMIT,
                   "65 rails: 64 at most");
    assert_null(table.nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_card_and_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_rail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unmeasured_rail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
