/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
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

#include "launcher/logdir.h"

static char folder[64];
static struct logdir_made made;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-logdir-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Removes the (empty) folders that the tests make, deepest first. */
static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/c",
                                        "a/b",
                                        "a",
                                        "state/gpulaunch/logs",
                                        "state/gpulaunch",
                                        "state",
                                        ".local/state/gpulaunch/logs",
                                        ".local/state/gpulaunch",
                                        ".local/state",
                                        ".local"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        rmdir(path);
    }
    snprintf(path, sizeof(path), "%s/gpulaunch-%lu", folder,
             (unsigned long)getuid());
    rmdir(path);
    snprintf(path, sizeof(path), "%s/file", folder);
    unlink(path);
    return rmdir(folder);
}

static const char *below(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* Missing folders are made, for this user only, and nothing is left in. */
static void test_made(void **state)
{
    (void)state;
    char *out = NULL;
    struct stat st;
    assert_int_equal(logdir_open(&out, &made, below("a/b/c"), NULL), 0);
    assert_string_equal(out, below("a/b/c"));
    assert_int_equal(stat(out, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(rmdir(out), 0); /* it was empty */
    free(out);
}

/* What was made goes again, whatever slashes and dots the path has, and what
 * was there or is not empty stays. */
static void test_unmade(void **state)
{
    (void)state;
    static const char *const paths[] = {"a/b/c", "a//b/./c/", "a/b/../b/c/.."};
    char *out = NULL;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(logdir_open(&out, &made, below(paths[i]), NULL), 0);
        free(out);
        logdir_unmake(&made);
        assert_int_equal(access(below("a"), F_OK), -1);
    }
    assert_int_equal(mkdir(below("a"), 0700), 0);
    assert_int_equal(logdir_open(&out, &made, below("a/b/c"), NULL), 0);
    free(out);
    logdir_unmake(&made);
    assert_int_equal(access(below("a/b"), F_OK), -1);
    assert_int_equal(access(below("a"), F_OK), 0);
    assert_int_equal(logdir_open(&out, &made, below("a/b/c"), NULL), 0);
    free(out);
    assert_int_equal(mkdir(below("a/b/other"), 0700), 0);
    logdir_unmake(&made);
    assert_int_equal(access(below("a/b/c"), F_OK), -1);
    assert_int_equal(rmdir(below("a/b/other")), 0);
}

/* A file in its place, and a folder that cannot be made, are named. */
static void test_refused(void **state)
{
    (void)state;
    char *out = NULL;
    struct gpul_error err = {0};
    char expected[PATH_MAX + 64];
    FILE *f = fopen(below("file"), "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(logdir_open(&out, &made, below("file"), &err),
                     GPUL_EINVAL);
    assert_null(out);
    snprintf(expected, sizeof(expected), "%s is not a directory",
             below("file"));
    assert_string_equal(err.text, expected);
    assert_int_equal(logdir_open(&out, &made, below("file/x"), &err),
                     GPUL_ESYS);
    snprintf(expected, sizeof(expected), "cannot create %s: Not a directory",
             below("file/x"));
    assert_string_equal(err.text, expected);
}

/* A place that takes no file is refused, whatever its modes say. */
static void test_unwritable(void **state)
{
    (void)state;
    char *out = NULL;
    struct gpul_error err = {0};
    assert_int_equal(logdir_open(&out, &made, "/proc/self", &err), GPUL_ESYS);
    assert_null(out);
    assert_int_equal(strncmp(err.text, "cannot write in /proc/self: ", 28), 0);
}

/* XDG_STATE_HOME, else HOME, else TMPDIR. */
static void test_default(void **state)
{
    (void)state;
    char *out = NULL;
    char state_home[PATH_MAX], expected[PATH_MAX];
    snprintf(state_home, sizeof(state_home), "%s", below("state"));
    setenv("XDG_STATE_HOME", state_home, 1);
    assert_int_equal(logdir_open_default(&out, &made, NULL), 0);
    assert_string_equal(out, below("state/gpulaunch/logs"));
    free(out);
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", folder, 1);
    assert_int_equal(logdir_open_default(&out, &made, NULL), 0);
    assert_string_equal(out, below(".local/state/gpulaunch/logs"));
    free(out);
    setenv("HOME", "/proc/self/nowhere", 1);
    setenv("TMPDIR", folder, 1);
    snprintf(expected, sizeof(expected), "%s/gpulaunch-%lu", folder,
             (unsigned long)getuid());
    assert_int_equal(logdir_open_default(&out, &made, NULL), 0);
    assert_string_equal(out, expected);
    free(out);
}

/* A path that no message can carry is refused where it was asked for. */
static void test_foreign(void **state)
{
    (void)state;
    char *out = NULL;
    char expected[PATH_MAX + 128];
    static const char *const names[] = {"a\xff", "a\nb", "a\x1b"};
    for (size_t i = 0; i < 3; i++) {
        struct gpul_error err = {0};
        assert_int_equal(logdir_open(&out, &made, below(names[i]), &err),
                         GPUL_EINVAL);
        assert_null(out);
        snprintf(expected, sizeof(expected),
                 "%s has bytes that are not UTF-8 or control characters; "
                 "choose another directory",
                 below(names[i]));
        assert_string_equal(err.text, expected);
        assert_int_equal(access(below(names[i]), F_OK), -1);
    }
}

/* By default the next place is taken. */
static void test_foreign_default(void **state)
{
    (void)state;
    char *out = NULL;
    char expected[PATH_MAX];
    setenv("XDG_STATE_HOME", below("a\xff"), 1);
    setenv("TMPDIR", folder, 1);
    snprintf(expected, sizeof(expected), "%s/gpulaunch-%lu", folder,
             (unsigned long)getuid());
    assert_int_equal(logdir_open_default(&out, &made, NULL), 0);
    assert_string_equal(out, expected);
    free(out);
    assert_int_equal(access(below("a\xff"), F_OK), -1);
}

/* A path that leaves no room for the names of logs is refused. */
static void test_long(void **state)
{
    (void)state;
    char *out = NULL;
    char path[PATH_MAX];
    size_t depth = 0, used = strlen(folder);
    struct gpul_error err = {0};
    strcpy(path, folder);
    for (; used < 4000; depth++, used += 101) {
        snprintf(path + used, sizeof(path) - used, "/%0100d", 1);
    }
    assert_int_equal(logdir_open(&out, &made, path, &err), GPUL_EINVAL);
    assert_null(out);
    assert_non_null(strstr(err.text, "too long for the names of log files"));
    path[strlen(folder) + 101] = '\0';
    assert_int_equal(access(path, F_OK), -1);
}

/* In a shared place a folder that others may enter is not trusted. */
static void test_shared(void **state)
{
    (void)state;
    char *out = NULL;
    char path[PATH_MAX], expected[PATH_MAX + 80];
    struct gpul_error err = {0};
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/proc/self/nowhere", 1);
    setenv("TMPDIR", folder, 1);
    snprintf(path, sizeof(path), "%s/gpulaunch-%lu", folder,
             (unsigned long)getuid());
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(logdir_open_default(&out, &made, &err), GPUL_EINVAL);
    assert_null(out);
    snprintf(expected, sizeof(expected),
             "no place for logs; give --log-dir: %s is not a private "
             "directory of this user",
             path);
    assert_string_equal(err.text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unmade, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_default, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_default, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
