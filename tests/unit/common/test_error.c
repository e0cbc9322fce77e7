/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is used up is told with what to raise. EAGAIN has that meaning only
 * where something was to be started. */
static void test_shortages(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *plain;
        const char *start;
    } rows[] = {
        {ENOENT, "x 1: No such file or directory",
         "x 1: No such file or directory"},
        {EMFILE, "x 1: Too many open files; raise ulimit -n",
         "x 1: Too many open files; raise ulimit -n"},
        {ENFILE, "x 1: Too many open files in system; raise sysctl fs.file-max",
         "x 1: Too many open files in system; raise sysctl fs.file-max"},
        {ENOMEM,
         "x 1: Cannot allocate memory; this machine, or its cgroup, is short "
         "of memory",
         "x 1: Cannot allocate memory; this machine, or its cgroup, is short "
         "of memory"},
        {EAGAIN, "x 1: Resource temporarily unavailable",
         "x 1: Resource temporarily unavailable; raise ulimit -u, or pids.max "
         "of the cgroup"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_error err;
        assert_int_equal(gpul_fail_errno(&err, rows[i].number, "x %d", 1),
                         GPUL_ESYS);
        assert_string_equal(err.text, rows[i].plain);
        assert_int_equal(gpul_fail_start(&err, rows[i].number, "x %d", 1),
                         GPUL_ESYS);
        assert_int_equal(err.status, GPUL_ESYS);
        assert_string_equal(err.text, rows[i].start);
        assert_int_equal(gpul_fail_errno(NULL, rows[i].number, "x"), GPUL_ESYS);
        assert_int_equal(gpul_fail_start(NULL, rows[i].number, "x"), GPUL_ESYS);
    }
}

/* The first failure stays, with what is put before it. */
static void test_wrap(void **state)
{
    (void)state;
    struct gpul_error err;
    gpul_fail(&err, GPUL_ELIMIT, "too much");
    assert_int_equal(gpul_wrap(&err, GPUL_EINVAL, "in %s", "f"), GPUL_ELIMIT);
    assert_string_equal(err.text, "in f: too much");
    assert_int_equal(gpul_wrap(NULL, GPUL_EINVAL, "in"), GPUL_EINVAL);
    assert_string_equal(gpul_status_text(GPUL_ELIMIT), "over a limit");
    assert_string_equal(gpul_status_text(1), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortages),
        cmocka_unit_test(test_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
