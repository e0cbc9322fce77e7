/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

#define NAME "NCCL_SOCKET_MAGIC"
#define OURS "0x0123456789abcdef"

static void expect(const struct env_fixture *f, const char *value,
                   enum env_action action, const char *notices)
{
    struct env_case c;
    env_case_init(&c, f, 0);
    assert_string_equal(env_case_value(&c, NAME), value);
    assert_int_equal(env_case_entry(&c, NAME)->action, action);
    assert_string_equal(env_case_notices(&c), notices);
    env_case_release(&c);
}

/* The job's number is set; without one nothing is. */
static void test_set(void **state)
{
    (void)state;
    struct env_fixture f;
    struct env_case c;
    env_fixture_init(&f, 2, 1);
    env_case_init(&c, &f, 0);
    assert_null(env_case_value(&c, NAME));
    env_case_release(&c);
    f.in.nccl_magic = OURS;
    expect(&f, OURS, ENV_SET, "");
    env_fixture_release(&f);
}

/* The user's own stays, and the line that says so does not show ours. */
static void test_kept(void **state)
{
    (void)state;
    static const char *const inherited[] = {NAME "=77", NULL};
    static const struct env_variable user = {NAME, "88"};
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.nccl_magic = OURS;
    f.in.inherited = inherited;
    expect(&f, "77", ENV_KEPT,
           NAME " is kept from your environment, in place of one of this job's "
                "own\n");
    f.in.inherited = (const char *const[]){NULL};
    f.in.user = &user;
    f.in.user_count = 1;
    expect(&f, "88", ENV_KEPT, "");
    env_fixture_release(&f);
}

/* Where it is not to be shown it is there all the same, without a value. */
static void test_not_shown(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.nccl_magic = "";
    expect(&f, "", ENV_SET, "");
    env_fixture_release(&f);
}

/* The exact name of each node's own interface, and the family; the user's own
 * are kept, and on loopback NCCL finds its way. */
static void test_interface(void **state)
{
    (void)state;
    static const char *const inherited[] = {"NCCL_SOCKET_IFNAME=ib", NULL};
    static const char *const six[] = {"fd00::1", "fd00::2"};
    static const char *const loopback[] = {"127.0.0.1", "127.0.0.1"};
    struct env_fixture f;
    struct env_case c;
    env_fixture_init(&f, 2, 1);
    f.in.node.interface = "ens5";
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "NCCL_SOCKET_IFNAME"), "=ens5");
    assert_string_equal(env_case_value(&c, "NCCL_SOCKET_FAMILY"), "AF_INET");
    env_case_release(&c);
    f.in.inherited = inherited;
    f.in.world.addresses = six;
    env_case_init(&c, &f, 0);
    assert_string_equal(env_case_value(&c, "NCCL_SOCKET_IFNAME"), "ib");
    assert_string_equal(env_case_value(&c, "NCCL_SOCKET_FAMILY"), "AF_INET6");
    assert_string_equal(
        env_case_notices(&c),
        "NCCL_SOCKET_IFNAME=ib is kept from your environment (gpulaunch's "
        "default is each node's own)\n");
    env_case_release(&c);
    f.in.inherited = (const char *const[]){NULL};
    f.in.world.host_count = 1;
    f.in.world.addresses = loopback;
    env_case_init(&c, &f, 0);
    assert_null(env_case_value(&c, "NCCL_SOCKET_IFNAME"));
    assert_null(env_case_value(&c, "NCCL_SOCKET_FAMILY"));
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_not_shown),
        cmocka_unit_test(test_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
