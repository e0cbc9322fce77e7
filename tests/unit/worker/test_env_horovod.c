/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

static uint32_t number(const struct env_case *c, const char *name)
{
    const char *value = env_case_value(c, name);
    assert_non_null(value);
    return (uint32_t)strtoul(value, NULL, 10);
}

/* horovodrun's own way: walk all nodes and count those that have the slot. */
static void assert_places(const uint32_t *counts, uint32_t nodes)
{
    struct env_fixture f;
    env_fixture_init(&f, nodes, 1);
    env_fixture_set_ranks(&f, counts);
    uint32_t rank = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        env_fixture_stand_on(&f, node);
        for (uint32_t local = 0; local < counts[node]; local++, rank++) {
            uint32_t size = 0;
            uint32_t before = 0;
            for (uint32_t i = 0; i < nodes; i++) {
                size += counts[i] > local;
                before += counts[i] > local && i < node;
            }
            struct env_case c;
            env_case_init(&c, &f, local);
            assert_int_equal(number(&c, "HOROVOD_RANK"), rank);
            assert_int_equal(number(&c, "HOROVOD_SIZE"), f.in.world.world_size);
            assert_int_equal(number(&c, "HOROVOD_LOCAL_RANK"), local);
            assert_int_equal(number(&c, "HOROVOD_LOCAL_SIZE"), counts[node]);
            assert_int_equal(number(&c, "HOROVOD_CROSS_SIZE"), size);
            assert_int_equal(number(&c, "HOROVOD_CROSS_RANK"), before);
            env_case_release(&c);
        }
    }
    env_fixture_release(&f);
}

/* Cross rank and size count the nodes that have this local rank, also where
 * nodes have unequal numbers of ranks. */
static void test_cross(void **state)
{
    (void)state;
    static const uint32_t worlds[][5] = {
        {1, 1, 1, 1, 1}, {4, 4, 4, 4, 4}, {3, 4, 1, 2, 4},
        {1, 8, 1, 8, 2}, {5, 4, 3, 2, 1}, {1, 2, 3, 4, 5},
    };
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        for (uint32_t nodes = 1; nodes <= 5; nodes++) {
            assert_places(worlds[i], nodes);
        }
    }
}

/* The node's name is the key of a node; the interface is a name, and the
 * user's own choice of one stays. */
static void test_names(void **state)
{
    (void)state;
    static const char *const inherited[] = {"HOROVOD_GLOO_IFACE=ib0",
                                            "HOROVOD_HOSTNAME=other",
                                            "GLOO_SOCKET_IFNAME=ib0", NULL};
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.node.node_name = "local-0";
    f.in.node.interface = "lo";
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "HOROVOD_HOSTNAME"), "local-0");
    assert_string_equal(env_case_value(&c, "HOROVOD_GLOO_IFACE"), "lo");
    assert_string_equal(env_case_value(&c, "GLOO_SOCKET_IFNAME"), "lo");
    env_case_release(&c);
    f.in.inherited = inherited;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "HOROVOD_HOSTNAME"), "local-0");
    assert_string_equal(env_case_value(&c, "HOROVOD_GLOO_IFACE"), "ib0");
    assert_string_equal(env_case_value(&c, "GLOO_SOCKET_IFNAME"), "ib0");
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
