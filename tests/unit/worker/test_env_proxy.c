/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

#define NOTICE(names)                                                          \
    "a proxy is set (" names "): the nodes' addresses are added to no_proxy "  \
    "and NO_PROXY, since JAX and gRPC may stall otherwise\n"

struct row {
    const char *inherited[5];
    const char *user_name;
    const char *user_value;
    const char *lower; /* no_proxy of the rank, NULL: none */
    const char *upper;
    const char *notices;
};

static void assert_value(const struct env_case *c, const char *name,
                         const char *expected)
{
    const char *value = env_case_value(c, name);
    if (expected == NULL) {
        assert_null(value);
    } else {
        assert_string_equal(value, expected);
    }
}

/* Where a proxy is in force the nodes are exempt from it, behind what the
 * user has exempted; where none is, nothing changes. */
static void test_rows(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{NULL}, NULL, NULL, NULL, NULL, ""},
        {{"no_proxy=a", NULL}, NULL, NULL, "a", NULL, ""},
        {{"http_proxy=", NULL}, NULL, NULL, NULL, NULL, ""},
        {{"MY_PROXY_HOST=x", "_PROX=x", NULL}, NULL, NULL, NULL, NULL, ""},
        {{"http_proxy=http://u:secret@p", NULL},
         NULL,
         NULL,
         "10.0.0.1,10.0.0.2",
         "10.0.0.1,10.0.0.2",
         NOTICE("http_proxy")},
        {{"https_proxy=p", "grpc_proxy=p", "HTTP_PROXY=p", NULL},
         NULL,
         NULL,
         "10.0.0.1,10.0.0.2",
         "10.0.0.1,10.0.0.2",
         NOTICE("HTTP_PROXY, grpc_proxy, https_proxy")},
        {{"all_proxy=p", "no_proxy=a,b", NULL},
         NULL,
         NULL,
         "a,b,10.0.0.1,10.0.0.2",
         "a,b,10.0.0.1,10.0.0.2",
         NOTICE("all_proxy")},
        {{"all_proxy=p", "no_proxy=a", "NO_PROXY=B", NULL},
         NULL,
         NULL,
         "a,10.0.0.1,10.0.0.2",
         "B,10.0.0.1,10.0.0.2",
         NOTICE("all_proxy")},
        {{NULL},
         "http_proxy",
         "p",
         "10.0.0.1,10.0.0.2",
         "10.0.0.1,10.0.0.2",
         NOTICE("http_proxy")},
        {{"http_proxy=p", NULL}, "http_proxy", "", NULL, NULL, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct env_variable user[] = {
            {rows[i].user_name, rows[i].user_value}};
        struct env_fixture f;
        env_fixture_init(&f, 2, 1);
        f.in.inherited = rows[i].inherited;
        f.in.user = user;
        f.in.user_count = rows[i].user_name != NULL;
        struct env_case c;
        env_case_init(&c, &f, 0);
        assert_value(&c, "no_proxy", rows[i].lower);
        assert_value(&c, "NO_PROXY", rows[i].upper);
        assert_string_equal(env_case_notices(&c), rows[i].notices);
        env_case_release(&c);
        env_fixture_release(&f);
    }
}

/* Nodes that share an address name it once, in any order of the nodes. */
static void test_shared_addresses(void **state)
{
    (void)state;
    static const char *const inherited[] = {"http_proxy=p", NULL};
    static const char *const addresses[] = {"10.0.0.9", "10.0.0.1", "10.0.0.9",
                                            "fd00::1", "10.0.0.1"};
    struct env_fixture f;
    env_fixture_init(&f, 5, 1);
    memcpy(f.addresses, addresses, sizeof(addresses));
    f.in.inherited = inherited;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_value(&c, "no_proxy", "10.0.0.1,10.0.0.9,fd00::1");
    assert_value(&c, "MASTER_ADDR", "10.0.0.9");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* More addresses than one variable holds: said, and nothing is changed. */
static void test_too_many(void **state)
{
    (void)state;
    static const char *const inherited[] = {"http_proxy=p", "no_proxy=a", NULL};
    struct env_fixture f;
    env_fixture_init(&f, 20000, 1);
    f.in.inherited = inherited;
    f.in.tf_config = ENV_TF_NEVER;
    struct env_case c;
    env_case_init(&c, &f, 0);
    assert_value(&c, "no_proxy", "a");
    assert_value(&c, "NO_PROXY", NULL);
    assert_string_equal(
        env_case_notices(&c),
        "a proxy is set (http_proxy), and the addresses of 20000 nodes do not "
        "fit into no_proxy: JAX and gRPC may stall; unset it or give -x "
        "no_proxy=PATTERN\n");
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_shared_addresses),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
