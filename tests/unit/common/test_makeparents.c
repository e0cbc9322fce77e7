/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/makeparents.h"

static char scratch[64];

static int enter_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/test-makeparents-XXXXXX");
    return mkdtemp(scratch) != NULL ? chdir(scratch) : -1;
}

static int leave_scratch(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(scratch) == 0 ? 0 : -1;
}

static void assert_folder(const char *path, mode_t mode)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0777, mode);
}

/* All that is missing above the last part is made, private, and again without
 * harm; what was there keeps its mode, and the last part is not made. */
static void test_makes(void **state)
{
    (void)state;
    struct gpul_error err;
    assert_int_equal(mkdir("old", 0755), 0);
    assert_int_equal(chmod("old", 0755), 0); /* whatever the umask */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpul_make_parents("old/new/newer/last", &err), 0);
        assert_folder("old", 0755);
        assert_folder("old/new", 0700);
        assert_folder("old/new/newer", 0700);
        assert_int_equal(access("old/new/newer/last", F_OK), -1);
    }
    assert_int_equal(gpul_make_parents("last", &err), 0);
    assert_int_equal(gpul_make_parents("/", &err), 0);
    assert_int_equal(rmdir("old/new/newer") | rmdir("old/new") | rmdir("old"),
                     0);
}

/* The folder that cannot be made is named; a path must be usable. */
static void test_refuses(void **state)
{
    (void)state;
    struct gpul_error err;
    char longest[5000];
    assert_int_equal(gpul_make_parents("/dev/null/a/b", &err), GPUL_ESYS);
    assert_string_equal(err.text, "cannot create /dev/null/a: Not a directory");
    assert_int_equal(gpul_make_parents("", &err), GPUL_EINVAL);
    assert_string_equal(err.text, "\"\": not a usable path");
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = 0;
    assert_int_equal(gpul_make_parents(longest, &err), GPUL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_makes),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
