/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds, settings and values that no rank is started with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

static void assert_refused(struct env_fixture *f, int status, const char *text)
{
    struct gpul_error err = {0};
    struct env_plan *plan = (struct env_plan *)&err;
    assert_int_equal(env_plan_create(&plan, &f->in, &err), status);
    assert_null(plan);
    assert_string_equal(err.text, text);
    assert_int_equal(env_plan_create(&plan, &f->in, NULL), status);
    env_fixture_release(f);
    env_fixture_init(f, 3, 2);
}

/* A world that cannot train is refused with a sentence that names the fault. */
static void test_refusals(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 3, 2);
    f.addresses[1] = "127.0.1.1";
    assert_refused(&f, GPUL_EINVAL,
                   "node 1: its address 127.0.1.1 is a loopback address, which "
                   "the other 2 hosts of the job cannot reach; give the node "
                   "an address on their network");
    f.addresses[2] = "a\"b";
    assert_refused(&f, GPUL_EINVAL, "node 2: \"a\"b\" is not an address");
    f.addresses[0] = "";
    assert_refused(&f, GPUL_EINVAL, "node 0: \"\" is not an address");
    f.ports[1] = 0;
    assert_refused(&f, GPUL_EINVAL,
                   "node 1: 5 ports from 0 on are not all valid ports");
    f.ports[1] = 65532;
    assert_refused(&f, GPUL_EINVAL,
                   "node 1: 5 ports from 65532 on are not all valid ports");
    f.in.world.roles = (struct gpul_rolemap){{1, 4, 2, 0}};
    assert_refused(&f, GPUL_EINVAL,
                   "--roles names 7 ranks, but there are 6: make the counts "
                   "add up to the ranks");
    f.in.world.roles = (struct gpul_rolemap){{0, 4, 0, 2}};
    assert_refused(&f, GPUL_EINVAL,
                   "--roles: a job has at most one evaluator, not 2");
    f.rank_counts[1] = 0;
    assert_refused(&f, GPUL_EINVAL, "node 1: 0 ranks from 2 on, not from 2 on");
    f.first_ranks[2] = 5;
    assert_refused(&f, GPUL_EINVAL, "node 2: 2 ranks from 5 on, not from 4 on");
    f.rank_counts[2] = 1;
    assert_refused(&f, GPUL_EINVAL, "the nodes have 5 ranks, not 6");
    f.in.world.job_id = "";
    assert_refused(&f, GPUL_EINVAL, "the job id is empty");
    env_fixture_stand_on(&f, 3);
    assert_refused(&f, GPUL_EINVAL, "there is no node 3 among 3");
    f.in.node.host_node_index = 1;
    assert_refused(&f, GPUL_EINVAL, "there is no node 1 among 1 on a host");
    env_fixture_release(&f);
}

/* The largest ports a node may hold, and loopback on a single host. */
static void test_bounds_that_hold(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) {
        f.addresses[i] = "127.0.0.1";
        f.ports[i] = (uint16_t)(65531 - 5 * i);
    }
    f.in.world.host_count = 1;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "MASTER_PORT"), "65533");
    assert_string_equal(env_case_value(&c, "HOROVOD_GLOO_RENDEZVOUS_PORT"),
                        "65535");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* -x with what is no name, or what Linux cannot pass on, is refused. */
static void test_user_refusals(void **state)
{
    (void)state;
    static char value[131072];
    memset(value, 'x', sizeof(value) - 1);
    struct env_variable user = {"", "1"};
    struct env_fixture f;
    env_fixture_init(&f, 1, 1);
    f.in.user = &user;
    f.in.user_count = 1;
    assert_refused(&f, GPUL_EINVAL, "-x: \"\" is not a name");
    user.name = "A=B";
    f.in.user = &user;
    f.in.user_count = 1;
    assert_refused(&f, GPUL_EINVAL, "-x: \"A=B\" is not a name");
    user = (struct env_variable){"AB", value};
    value[sizeof(value) - 1 - 2] = 0; /* "AB=", the value, NUL: one too many */
    f.in.user = &user;
    f.in.user_count = 1;
    assert_refused(&f, GPUL_ELIMIT,
                   "-x AB: 131073 bytes, over the 131072 that Linux allows "
                   "for one variable");
    value[sizeof(value) - 1 - 3] = 0;
    f.in.user = &user;
    f.in.user_count = 1;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "AB"), value);
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bounds_that_hold),
        cmocka_unit_test(test_user_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
