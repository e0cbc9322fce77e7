/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "worker/portplan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct portplan plan; /* too large for a comfortable stack */

static const struct portplan_input linux_default = {
    .ephemeral_first = 32768,
    .ephemeral_last = 60999,
    .port_count = 4,
    .seed = 1,
};

static bool touches(uint32_t first, uint32_t count, uint32_t low, uint32_t high)
{
    return first <= high && first + count - 1 >= low;
}

/* 0: preferred, 1: low, 2: touches the ephemeral range. */
static int rank_of(const struct portplan_input *in, uint32_t first)
{
    uint32_t blocks = (in->port_count + 15) / 16;
    if (touches(first, blocks * 16, in->ephemeral_first, in->ephemeral_last)) {
        return 2;
    }
    return first < 20000 ? 1 : 0;
}

/* For every length, each possible run comes up once, on a block boundary,
 * above the privileged ports, the best kind first. */
static void test_order(void **state)
{
    (void)state;
    static const struct {
        uint32_t port_count;
        size_t count;
        size_t ephemeral_from;
    } rows[] = {
        /* 4096 blocks less 64 privileged and 2 customary ones; 1765 of them
         * are ephemeral; longer runs lose some at every edge. */
        {1, 4030, 2265},
        {16, 4030, 2265},
        {17, 4027, 2261},
        {4099, 3513, 1544},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct portplan_input in = linux_default;
        in.port_count = rows[i].port_count;
        portplan_make(&plan, &in);
        assert_int_equal(plan.count, rows[i].count);
        assert_int_equal(plan.ephemeral_from, rows[i].ephemeral_from);
        bool is_seen[65536] = {false};
        int rank = 0;
        for (size_t j = 0; j < plan.count; j++) {
            uint32_t first = plan.first_ports[j];
            assert_int_equal(first % 16, 0);
            assert_true(first >= 1024);
            assert_true(first + in.port_count <= 65536);
            assert_false(is_seen[first]);
            is_seen[first] = true;
            assert_true(rank_of(&in, first) >= rank);
            rank = rank_of(&in, first);
            assert_int_equal(j >= plan.ephemeral_from, rank == 2);
        }
    }
}

/* Ports found taken, and those that people use by custom, are in no run. */
static void test_avoided_ports(void **state)
{
    (void)state;
    static const uint32_t avoid[] = {20000, 25007, 40015, 70000};
    struct portplan_input in = linux_default;
    in.port_count = 40;
    in.avoid_ports = avoid;
    in.avoid_count = COUNT(avoid);
    portplan_make(&plan, &in);
    assert_true(plan.count > 3000);
    for (size_t i = 0; i < plan.count; i++) {
        uint32_t first = plan.first_ports[i];
        for (size_t j = 0; j < COUNT(avoid); j++) {
            assert_false(touches(first, 40, avoid[j], avoid[j]));
        }
        assert_false(touches(first, 40, 29400, 29400));
        assert_false(touches(first, 40, 29500, 29500));
    }
}

/* The same node of the same job looks in the same order, others elsewhere. */
static void test_seed(void **state)
{
    (void)state;
    static struct portplan other;
    struct portplan_input in = linux_default;
    in.seed = portplan_seed("job", "node1");
    portplan_make(&plan, &in);
    portplan_make(&other, &in);
    assert_memory_equal(plan.first_ports, other.first_ports,
                        plan.count * sizeof(plan.first_ports[0]));
    in.seed = portplan_seed("job", "node2");
    portplan_make(&other, &in);
    size_t same = 0;
    for (size_t i = 0; i < plan.count; i++) {
        same += plan.first_ports[i] == other.first_ports[i];
    }
    assert_true(same < 50);
    assert_true(portplan_seed("ab", "c") != portplan_seed("a", "bc"));
}

/* Without room outside the ephemeral range the runs inside it remain. */
static void test_only_ephemeral(void **state)
{
    (void)state;
    struct portplan_input in = linux_default;
    in.ephemeral_first = 1024;
    in.ephemeral_last = 65535;
    portplan_make(&plan, &in);
    assert_int_equal(plan.ephemeral_from, 0);
    assert_int_equal(plan.count, 4030);
}

/* A run longer than all ports is in no plan. */
static void test_too_long(void **state)
{
    (void)state;
    static const uint32_t counts[] = {64000, 65536, 65537, UINT32_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct portplan_input in = linux_default;
        in.port_count = counts[i];
        portplan_make(&plan, &in);
        assert_int_equal(plan.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_avoided_ports),
        cmocka_unit_test(test_seed),     cmocka_unit_test(test_only_ephemeral),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
