/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/unit/worker/env_fixture.h"
#include "worker/tf_config.h"

static void assert_text(const struct env_fixture *f, bool evaluator_in_cluster,
                        uint32_t rank, const char *expected)
{
    struct tf_config c;
    assert_int_equal(tf_config_init(&c, &f->in.world, evaluator_in_cluster), 0);
    char *text = calloc(1, tf_config_bytes_max(&c) + 1);
    assert_non_null(text);
    tf_config_put(text, &c, rank);
    assert_string_equal(text, expected);
    free(text);
    tf_config_release(&c);
}

/* Workers only: one entry a rank, each on its own port of its node. */
static void test_workers(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 2, 2);
    f.ports[1] = 65000;
    assert_text(&f, false, 3,
                "{\"cluster\":{\"worker\":[\"10.0.0.1:20000\","
                "\"10.0.0.1:20001\",\"10.0.0.2:65000\",\"10.0.0.2:65001\"]},"
                "\"task\":{\"type\":\"worker\",\"index\":3}}");
    env_fixture_release(&f);
}

/* Ranks take chief, worker and ps in this order; the evaluator stands in no
 * copy, or on request in its own only. */
static void test_roles(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 5, 1);
    f.in.world.roles = (struct gpul_rolemap){{1, 2, 1, 1}};
#define CLUSTER                                                                \
    "{\"cluster\":{\"chief\":[\"10.0.0.1:20000\"],\"worker\":["                \
    "\"10.0.0.2:20000\",\"10.0.0.3:20000\"],\"ps\":[\"10.0.0.4:20000\"]"
#define TASK(type, index)                                                      \
    "},\"task\":{\"type\":\"" type "\",\"index\":" index "}}"
    for (int in_cluster = 0; in_cluster < 2; in_cluster++) {
        assert_text(&f, in_cluster != 0, 0, CLUSTER TASK("chief", "0"));
        assert_text(&f, in_cluster != 0, 1, CLUSTER TASK("worker", "0"));
        assert_text(&f, in_cluster != 0, 2, CLUSTER TASK("worker", "1"));
        assert_text(&f, in_cluster != 0, 3, CLUSTER TASK("ps", "0"));
    }
    assert_text(&f, false, 4, CLUSTER TASK("evaluator", "0"));
    assert_text(&f, true, 4,
                CLUSTER
                ",\"evaluator\":[\"10.0.0.5:20000\"]" TASK("evaluator", "0"));
    env_fixture_release(&f);
}

/* IPv6 literals stand in brackets. */
static void test_ipv6(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.addresses[0] = "2001:db8::7";
    assert_text(&f, false, 0,
                "{\"cluster\":{\"worker\":[\"[2001:db8::7]:20000\"]},"
                "\"task\":{\"type\":\"worker\",\"index\":0}}");
    env_fixture_release(&f);
}

/* The announced longest copy is the longest, for every mix of roles. */
static void test_longest(void **state)
{
    (void)state;
    static const struct gpul_rolemap mixes[] = {
        {{0, 12, 0, 0}}, {{1, 11, 0, 0}}, {{1, 2, 9, 0}},
        {{0, 2, 10, 0}}, {{1, 9, 1, 1}},  {{0, 11, 0, 1}},
    };
    struct env_fixture f;
    env_fixture_init(&f, 12, 1);
    f.ports[3] = 9;
    for (size_t m = 0; m < 2 * sizeof(mixes) / sizeof(mixes[0]); m++) {
        f.in.world.roles = mixes[m / 2];
        struct tf_config c;
        assert_int_equal(tf_config_init(&c, &f.in.world, m % 2 == 1), 0);
        size_t longest = 0;
        for (uint32_t rank = 0; rank < 12; rank++) {
            char text[1024];
            size_t n = (size_t)(tf_config_put(text, &c, rank) - text);
            longest = n > longest ? n : longest;
        }
        assert_int_equal(tf_config_bytes_max(&c), longest);
        tf_config_release(&c);
    }
    env_fixture_release(&f);
}

/* How many tasks fit: the largest world of the kind that is not too long. */
static void test_fitting(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        uint16_t port;
        uint32_t fitting;
    } rows[] = {
        {"node0001", 2222, 8187}, /* a short host name */
        {"node0001", 22222, 7705},
        {"10.123.45.67", 20000, 6238},
        {"2001:0db8:0000:0000:0000:0000:0000:0007", 2222, 2673},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct env_fixture f;
        env_fixture_init(&f, 9000, 1);
        for (uint32_t n = 0; n < 9000; n++) {
            f.addresses[n] = rows[i].address;
            f.ports[n] = rows[i].port;
        }
        struct tf_config c;
        assert_int_equal(tf_config_init(&c, &f.in.world, false), 0);
        assert_int_equal(tf_config_tasks(&c), 9000);
        assert_int_equal(tf_config_tasks_fitting(&c, TF_CONFIG_BYTES_MAX),
                         rows[i].fitting);
        tf_config_release(&c);
        for (uint32_t more = 0; more < 2; more++) {
            uint32_t size = rows[i].fitting + more;
            f.in.world.node_count = size;
            f.in.world.world_size = size;
            gpul_rolemap_all_workers(&f.in.world.roles, size);
            assert_int_equal(tf_config_init(&c, &f.in.world, false), 0);
            assert_int_equal(tf_config_bytes_max(&c) <= TF_CONFIG_BYTES_MAX,
                             more == 0);
            tf_config_release(&c);
        }
        env_fixture_release(&f);
    }
}

static int spawn_with_value(size_t bytes)
{
    static const char name[] = "TF_CONFIG=";
    char *string = malloc(sizeof(name) + bytes);
    assert_non_null(string);
    memcpy(string, name, sizeof(name) - 1);
    memset(string + sizeof(name) - 1, 'x', bytes);
    string[sizeof(name) - 1 + bytes] = 0;
    char command[] = "/bin/true";
    char *argv[] = {command, NULL};
    char *envp[] = {string, NULL};
    pid_t pid = -1;
    int rc = posix_spawn(&pid, command, NULL, NULL, argv, envp);
    free(string);
    if (rc == 0) {
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    return rc;
}

/* This kernel takes a value of exactly the limit and not one byte more. */
static void test_kernel_limit(void **state)
{
    (void)state;
    assert_int_equal(TF_CONFIG_BYTES_MAX, 131061);
    assert_int_equal(spawn_with_value(TF_CONFIG_BYTES_MAX), 0);
    assert_int_equal(spawn_with_value(TF_CONFIG_BYTES_MAX + 1), E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers), cmocka_unit_test(test_roles),
        cmocka_unit_test(test_ipv6),    cmocka_unit_test(test_longest),
        cmocka_unit_test(test_fitting), cmocka_unit_test(test_kernel_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
