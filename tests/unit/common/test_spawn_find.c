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

#include "common/spawn.h"

static char directory[] = "/tmp/test_spawn_find.XXXXXX";

static void make_file(const char *name, mode_t mode)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* A command is looked for as execvp does; what is found but cannot run is
 * told apart from what is not there. */
static void test_find(void **state)
{
    (void)state;
    char sub[64];
    snprintf(sub, sizeof(sub), "%s/sub", directory);
    assert_int_equal(mkdir(sub, 0700), 0);
    make_file("sub/tool", 0700);
    make_file("data", 0600);
    char tool[96];
    char list[256];
    snprintf(tool, sizeof(tool), "%s/tool", sub);
    snprintf(list, sizeof(list), "/no/such:%s:%s", directory, sub);
    char joined[96];
    snprintf(joined, sizeof(joined), "%s/sub/tool", directory);
    char not_executable[96];
    snprintf(not_executable, sizeof(not_executable),
             "%s/data is not executable", directory);
    char is_directory[96];
    snprintf(is_directory, sizeof(is_directory), "%s/sub is not executable",
             directory);

    const struct {
        const char *command;
        const char *path_list;
        const char *base;
        const char *found; /* or NULL: */
        int exec_errno;
        const char *text;
    } rows[] = {
        {"tool", list, NULL, tool, 0, NULL},
        {"tool", "sub", directory, joined, 0, NULL},
        {"tool", "/no/such:", sub, tool, 0, NULL},
        {"sub/tool", list, directory, joined, 0, NULL},
        {"./none", list, NULL, "./none", 0, NULL},
        {"/abs", list, directory, "/abs", 0, NULL},
        {"sh", NULL, directory, "/usr/bin/sh", 0, NULL},
        {"data", list, NULL, NULL, EACCES, not_executable},
        {"sub", list, NULL, NULL, EACCES, is_directory},
        {"pyhton", list, NULL, NULL, ENOENT,
         "command \"pyhton\" not found in PATH"},
        {"", list, NULL, NULL, ENOENT, "the command is empty"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *found = NULL;
        int exec_errno = -1;
        struct gpul_error err = {0};
        int rc = gpul_spawn_find(&found, &exec_errno, rows[i].command,
                                 rows[i].path_list, rows[i].base, &err);
        assert_int_equal(exec_errno, rows[i].exec_errno);
        if (rows[i].found != NULL) {
            assert_int_equal(rc, 0);
            assert_string_equal(found, rows[i].found);
        } else {
            assert_int_equal(rc, GPUL_ENOTFOUND);
            assert_null(found);
            assert_string_equal(err.text, rows[i].text);
        }
        free(found);
    }
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"data", "sub/tool", "sub"};
    char path[96];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        remove(path);
    }
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
