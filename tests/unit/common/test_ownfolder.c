/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ownfolder.h"

static char root[64];

static const char *below(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/test-ownfolder-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(below("link"));
    unlink(below("file"));
    rmdir(below("folder"));
    return rmdir(root);
}

/* By a path and below a descriptor; closed when a program is started. */
static void test_folder(void **state)
{
    (void)state;
    struct stat st;
    int parent = gpul_open_own_folder(AT_FDCWD, root);
    assert_true(parent >= 0);
    assert_int_equal(mkdirat(parent, "folder", 0700), 0);
    int fd = gpul_open_own_folder(parent, "folder");
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    close(fd);
    close(parent);
}

/* Neither a link to a folder of this user, nor a file, nor nothing. */
static void test_no_folder(void **state)
{
    (void)state;
    assert_int_equal(gpul_open_own_folder(AT_FDCWD, below("folder")), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(symlink(root, below("link")), 0);
    assert_int_equal(gpul_open_own_folder(AT_FDCWD, below("link")), -1);
    assert_true(errno == ENOTDIR || errno == ELOOP);
    int fd = open(below("file"), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(gpul_open_own_folder(AT_FDCWD, below("file")), -1);
    assert_int_equal(errno, ENOTDIR);
}

static void test_foreign(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(mkdir(below("folder"), 0777), 0);
    assert_int_equal(chown(below("folder"), 65534, 65534), 0);
    assert_int_equal(gpul_open_own_folder(AT_FDCWD, below("folder")), -1);
    assert_int_equal(errno, EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
