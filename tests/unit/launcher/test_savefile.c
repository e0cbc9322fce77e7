/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
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

#include "launcher/savefile.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-savefile-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static size_t count_files(void)
{
    size_t count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        count += e->d_name[0] != '.';
    }
    closedir(d);
    return count;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a.json", "link", "directory"};
    char path[PATH_MAX];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (unlink(path) != 0) {
            rmdir(path);
        }
    }
    return rmdir(folder);
}

static const char *beside(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void check_content(const char *name, const char *expected)
{
    char text[64] = {0};
    int fd = open(beside(name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

/* A new file, then its replacement, and nothing else in the folder. */
static void test_write(void **state)
{
    (void)state;
    assert_int_equal(savefile_write(beside("a.json"), "one", 3, NULL), 0);
    check_content("a.json", "one");
    assert_int_equal(savefile_write(beside("a.json"), "two!", 4, NULL), 0);
    check_content("a.json", "two!");
    assert_int_equal(count_files(), 1);
    struct stat st;
    assert_int_equal(stat(beside("a.json"), &st), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
}

/* Through a link the file behind it is replaced, the link stays. */
static void test_link(void **state)
{
    (void)state;
    char target[PATH_MAX];
    snprintf(target, sizeof(target), "%s", beside("a.json"));
    assert_int_equal(savefile_write(target, "one", 3, NULL), 0);
    assert_int_equal(symlink(target, beside("link")), 0);
    assert_int_equal(savefile_write(beside("link"), "new", 3, NULL), 0);
    check_content("a.json", "new");
    struct stat st;
    assert_int_equal(lstat(beside("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

/* A link to nothing is refused, before and after, and stays as it is. */
static void test_dangling(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    char expected[PATH_MAX + 64];
    assert_int_equal(symlink("nowhere", beside("link")), 0);
    snprintf(expected, sizeof(expected), "%s is a link to nothing; name a file",
             beside("link"));
    assert_int_equal(savefile_check(beside("link"), &err), GPUL_EINVAL);
    assert_string_equal(err.text, expected);
    assert_int_equal(savefile_write(beside("link"), "x", 1, NULL), GPUL_EINVAL);
    struct stat st;
    assert_int_equal(lstat(beside("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

/* A link of somebody else is not followed, wherever it leads; one of root is,
 * and a chain of this user's own. */
static void test_foreign_link(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    char expected[PATH_MAX + 64];
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(savefile_write(beside("a.json"), "mine", 4, NULL), 0);
    assert_int_equal(symlink("a.json", beside("link")), 0);
    assert_int_equal(lchown(beside("link"), 65534, 65534), 0);
    snprintf(expected, sizeof(expected),
             "%s is, or leads to, a symbolic link of user 65534; name a file",
             beside("link"));
    assert_int_equal(savefile_check(beside("link"), &err), GPUL_EINVAL);
    assert_string_equal(err.text, expected);
    assert_int_equal(savefile_write(beside("link"), "x", 1, NULL), GPUL_EINVAL);
    assert_int_equal(symlink("./link", beside("directory")), 0);
    assert_int_equal(savefile_write(beside("directory"), "x", 1, NULL),
                     GPUL_EINVAL);
    check_content("a.json", "mine");
    assert_int_equal(count_files(), 3);

    assert_int_equal(lchown(beside("link"), 0, 0), 0);
    assert_int_equal(savefile_write(beside("directory"), "new", 3, NULL), 0);
    check_content("a.json", "new");
    assert_int_equal(count_files(), 3);
}

/* Links in a ring end. */
static void test_ring(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    char expected[PATH_MAX + 64];
    assert_int_equal(symlink("directory", beside("link")), 0);
    assert_int_equal(symlink("link", beside("directory")), 0);
    assert_int_equal(savefile_write(beside("link"), "x", 1, &err), GPUL_ESYS);
    snprintf(expected, sizeof(expected),
             "cannot write %s: Too many levels of symbolic links",
             beside("link"));
    assert_string_equal(err.text, expected);
}

/* A check finds what a write would, and leaves no trace. */
static void test_check(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    char expected[PATH_MAX + 64];
    assert_int_equal(savefile_check(beside("a.json"), &err), 0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(mkdir(beside("directory"), 0700), 0);
    assert_int_equal(savefile_check(beside("directory"), &err), GPUL_EINVAL);
    snprintf(expected, sizeof(expected), "%s is a directory; name a file",
             beside("directory"));
    assert_string_equal(err.text, expected);
    assert_int_equal(savefile_check(beside("no/such"), &err), GPUL_ESYS);
    snprintf(expected, sizeof(expected),
             "cannot write %s: No such file or directory", beside("no/such"));
    assert_string_equal(err.text, expected);
    assert_int_equal(savefile_check("/dev/null", &err), 0);
}

/* A full disk is an error, and a special file is written in place. */
static void test_special(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    assert_int_equal(savefile_write("/dev/null", "x", 1, &err), 0);
    assert_int_equal(savefile_write("/dev/full", "x", 1, &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "cannot write /dev/full: No space left on device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dangling, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ring, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_check, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_special, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
