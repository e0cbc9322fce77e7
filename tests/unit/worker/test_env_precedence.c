/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose value of a variable a rank gets: that of -x, of the environment, or
 * ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

struct precedence_row {
    const char *inherited; /* NULL: not there */
    const char *user;      /* -x, NULL: not given */
    enum env_action action;
    const char *value; /* what the rank gets, NULL: nothing */
    const char *rule;
    const char *notices;
};

static void assert_precedence(const char *name,
                              const struct precedence_row *row)
{
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    char string[256];
    snprintf(string, sizeof(string), "%s=%s", name,
             row->inherited == NULL ? "" : row->inherited);
    const char *const inherited[] = {row->inherited == NULL ? NULL : string,
                                     NULL};
    const struct env_variable user[] = {{name, row->user}};
    f.in.inherited = inherited;
    f.in.user = user;
    f.in.user_count = row->user != NULL;
    struct env_case c;
    env_case_init(&c, &f, 0);
    const char *value = env_case_value(&c, name);
    if (row->value == NULL) {
        assert_null(value);
    } else {
        assert_string_equal(value, row->value);
    }
    if (row->action != 0) {
        const struct env_entry *entry = env_case_entry(&c, name);
        assert_non_null(entry);
        assert_int_equal(entry->action, row->action);
        assert_string_equal(entry->rule, row->rule);
        assert_string_equal(entry->value, row->action == ENV_DROPPED
                                              ? row->inherited
                                              : row->value);
    } else {
        assert_null(env_case_entry(&c, name));
    }
    assert_string_equal(env_case_notices(&c), row->notices);
    env_case_release(&c);
    env_fixture_release(&f);
}

/* An identity variable is ours, unless -x says otherwise. */
static void test_identity_precedence(void **state)
{
    (void)state;
    static const char rule[] = "PyTorch: ranks in the world";
    static const struct precedence_row rows[] = {
        {NULL, NULL, ENV_SET, "2", rule, ""},
        {"2", NULL, ENV_SET, "2", rule, ""},
        {"8", NULL, ENV_REPLACED, "2", rule,
         "WORLD_SIZE=8 from your environment is replaced by 2\n"},
        {"", NULL, ENV_REPLACED, "2", rule,
         "WORLD_SIZE= from your environment is replaced by 2\n"},
        {NULL, "9", ENV_KEPT, "9", "given with -x",
         "WORLD_SIZE=9, given with -x, stands in place of 2\n"},
        {"8", "9", ENV_KEPT, "9", "given with -x",
         "WORLD_SIZE=9, given with -x, stands in place of 2\n"},
        {"8", "2", ENV_KEPT, "2", "given with -x", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_precedence("WORLD_SIZE", &rows[i]);
    }
}

/* A default gives way to what the user has. */
static void test_default_precedence(void **state)
{
    (void)state;
    static const char rule[] = "OpenMP: cores of the host over its ranks";
    static const char own[] =
        "your own; by default OpenMP: cores of the host over its ranks";
    static const struct precedence_row rows[] = {
        {NULL, NULL, ENV_SET, "16", rule, ""},
        {"16", NULL, ENV_KEPT, "16", own, ""},
        {"4", NULL, ENV_KEPT, "4", own,
         "OMP_NUM_THREADS=4 is kept from your environment (gpulaunch's "
         "default is each node's own)\n"},
        {"4", "5", ENV_KEPT, "5", "given with -x", ""},
        {NULL, "5", ENV_KEPT, "5", "given with -x", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_precedence("OMP_NUM_THREADS", &rows[i]);
    }
}

/* A leftover is dropped, what must not be there too; -x wins over both. */
static void test_leftover_precedence(void **state)
{
    (void)state;
    static const struct precedence_row leftover[] = {
        {NULL, NULL, 0, NULL, NULL, ""},
        {"1", NULL, ENV_DROPPED, NULL, "left by another launcher",
         "not passed on to the ranks: PMI_RANK\n"},
        {"1", "2", ENV_KEPT, "2", "given with -x", ""},
    };
    static const struct precedence_row absent[] = {
        {NULL, NULL, 0, NULL, NULL, ""},
        {"1", NULL, ENV_DROPPED, NULL, "Horovod: the world is fixed",
         "not passed on to the ranks: HOROVOD_ELASTIC\n"},
        {"1", "2", ENV_KEPT, "2", "given with -x", ""},
    };
    static const struct precedence_row other[] = {
        {NULL, NULL, 0, NULL, NULL, ""},
        {"a=b", NULL, ENV_INHERITED, "a=b", "inherited", ""},
        {"a", "b", ENV_KEPT, "b", "given with -x", ""},
    };
    for (size_t i = 0; i < 3; i++) {
        assert_precedence("PMI_RANK", &leftover[i]);
        assert_precedence("HOROVOD_ELASTIC", &absent[i]);
        assert_precedence("MY_OWN", &other[i]);
    }
}

static void assert_error_file(const char *const *inherited,
                              enum env_action action, const char *value,
                              const char *notices)
{
    struct env_fixture f;
    struct env_case c;
    env_fixture_init(&f, 1, 2);
    f.in.error_dir = "/l/attempt-1";
    f.in.inherited = inherited;
    env_case_init(&c, &f, 1);
    const struct env_entry *entry =
        env_case_entry(&c, "TORCHELASTIC_ERROR_FILE");
    assert_non_null(entry);
    assert_int_equal(entry->action, action);
    assert_string_equal(entry->value, value);
    assert_string_equal(env_case_notices(&c), notices);
    env_case_release(&c);
    env_fixture_release(&f);
}

/* Torch's error file is each rank's own; the user's stays, one of a torchrun
 * around us does not. */
static void test_error_file(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    static const char *const own[] = {"TORCHELASTIC_ERROR_FILE=/mine", NULL};
    static const char *const outer[] = {"TORCHELASTIC_ERROR_FILE=/theirs",
                                        "TORCHELASTIC_RUN_ID=job-1", NULL};
    assert_error_file(none, ENV_SET, "/l/attempt-1/rank-1.error.json", "");
    assert_error_file(own, ENV_KEPT, "/mine",
                      "TORCHELASTIC_ERROR_FILE=/mine is kept from your "
                      "environment (gpulaunch's default is each rank's "
                      "own)\n");
    assert_error_file(outer, ENV_REPLACED, "/l/attempt-1/rank-1.error.json",
                      "TORCHELASTIC_ERROR_FILE=/theirs from your environment "
                      "is replaced by each rank's own\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_file),
        cmocka_unit_test(test_identity_precedence),
        cmocka_unit_test(test_default_precedence),
        cmocka_unit_test(test_leftover_precedence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
