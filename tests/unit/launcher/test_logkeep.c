/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of failed jobs in a folder of the test's, with neighbours that are not
 * to be touched.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/logkeep.h"

#define OLD "20200101-000000-00000000" /* before all others */

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/test-logkeep-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command); /* a path of ours, without anything special */
}

static const char *below(const char *folder, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
    return path;
}

static bool is_there(const char *folder, const char *name)
{
    struct stat st;
    return lstat(below(folder, name), &st) == 0;
}

static void make_folder(const char *folder, const char *name)
{
    assert_int_equal(mkdir(below(folder, name), 0700), 0);
}

static void make_file(const char *folder, const char *name, const char *text)
{
    FILE *f = fopen(below(folder, name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The folder of a failed job, with one of each file. */
static void make_job(const char *id)
{
    make_folder(id, "");
    make_folder(id, "attempt-1");
    make_folder(id, "self-test");
    make_file(id, "attempt-1/rank-0.out", "x");
    make_file(id, "attempt-1/rank-12.err", "x");
    make_file(id, "attempt-1/rank-12.error.json", "x");
    make_file(id, "attempt-1/tf_config-rank-12.json", "x");
    make_file(id, "self-test/rank-0.log", "x");
    make_file(id, "self-test/rank-0.nccl", "x");
    make_file(id, "self-test/scout-3.log", "x");
    assert_int_equal(logkeep_mark(root, id, NULL), 0);
}

static const char *id_of(int i)
{
    static char id[32];
    snprintf(id, sizeof(id), "20261130-2215%02d-3f9a2c41", i);
    return id;
}

/* The newest stay, however the directory lists them. */
static void test_newest(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++) {
        make_job(id_of(i * 5 % 7));
    }
    logkeep_prune(root, 7);
    assert_true(is_there(id_of(0), "self-test/scout-3.log"));
    logkeep_prune(root, 3);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(is_there(id_of(i), ""), i >= 4);
    }
    assert_true(is_there(id_of(4), "attempt-1/rank-0.out"));
    logkeep_prune(root, 0);
    assert_int_equal(rmdir(root), 0); /* nothing is left */
    assert_int_equal(mkdir(root, 0700), 0);
}

/* Runs, jobs that were cut off, and folders with a borrowed mark have none of
 * their own. */
static void test_unmarked(void **state)
{
    (void)state;
    make_folder(OLD, "");
    make_folder(OLD, "attempt-1");
    make_job(id_of(1));
    make_folder(id_of(2), "");
    make_file(id_of(2), ".gpulaunch-job", "gpulaunch job " OLD "\n");
    make_folder(id_of(3), "");
    make_file(id_of(3), ".gpulaunch-job", "gpulaunch job");
    logkeep_prune(root, 0);
    assert_true(is_there(OLD, "attempt-1"));
    assert_false(is_there(id_of(1), ""));
    assert_true(is_there(id_of(2), ".gpulaunch-job"));
    assert_true(is_there(id_of(3), ".gpulaunch-job"));
}

/* A marked folder with anything in it that we do not write stays whole. */
static void test_foreign_content(void **state)
{
    (void)state;
    static const char *const names[] = {
        "notes.txt",           "attempt-1/notes",  "attempt-1/rank-0.out.gz",
        "attempt-1/rank-.out", "attempt-1/rank-1", "attempt-1/scout-1.out",
        "self-test/.hidden",   "attempt-x",        "attempt-1 ",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        make_job(OLD);
        make_file(OLD, names[i], "mine");
        logkeep_prune(root, 0);
        assert_true(is_there(OLD, names[i]));
        assert_true(is_there(OLD, "attempt-1/rank-0.out"));
        assert_int_equal(unlink(below(OLD, names[i])), 0);
        make_folder(OLD, names[i]);
        logkeep_prune(root, 0);
        assert_true(is_there(OLD, "attempt-1/rank-0.out"));
        assert_int_equal(rmdir(below(OLD, names[i])), 0);
        logkeep_prune(root, 0);
        assert_false(is_there(OLD, ""));
    }
}

/* No link is followed: not in the place of a job, of a folder, of a file or of
 * the mark. */
static void test_links(void **state)
{
    (void)state;
    make_folder("away", "");
    make_folder("away", "attempt-1");
    make_file("away", "attempt-1/rank-0.out", "precious");
    make_file("away", ".gpulaunch-job", "gpulaunch job " OLD "\n");
    static const char *const places[] = {"attempt-2", "attempt-1/rank-7.out",
                                         "self-test/rank-7.log"};
    static const char *const targets[] = {
        "../away/attempt-1", "../../away/attempt-1/rank-0.out", "../../away"};
    assert_int_equal(symlink("away", below(OLD, "")), -1); /* a slash */
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" OLD, root);
    assert_int_equal(symlink("away", path), 0);
    logkeep_prune(root, 0);
    assert_int_equal(unlink(path), 0); /* was there */
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        make_job(OLD);
        assert_int_equal(symlink(targets[i], below(OLD, places[i])), 0);
        logkeep_prune(root, 0);
        assert_true(is_there(OLD, "attempt-1/rank-0.out"));
        assert_int_equal(unlink(below(OLD, places[i])), 0);
        logkeep_prune(root, 0);
        assert_false(is_there(OLD, ""));
    }
    make_job(OLD);
    assert_int_equal(unlink(below(OLD, ".gpulaunch-job")), 0);
    assert_int_equal(
        symlink("../away/.gpulaunch-job", below(OLD, ".gpulaunch-job")), 0);
    logkeep_prune(root, 0);
    assert_true(is_there(OLD, "attempt-1/rank-0.out"));
    assert_true(is_there("away", "attempt-1/rank-0.out"));
    assert_true(is_there("away", ".gpulaunch-job"));
}

/* Nor are folders with other names than those of jobs ours. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "20200101-000000-0000000",   "20200101-000000-000000000",
        "20200101-000000-0000000G",  "20200101-000000-0000000F",
        "2020010x-000000-00000000",  "20200101_000000-00000000",
        " 20200101-000000-00000000", "logs",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        make_job(names[i]);
    }
    make_file(".", OLD, "a file");
    logkeep_prune(root, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(is_there(names[i], "attempt-1/rank-0.out"));
    }
    assert_true(is_there(".", OLD));
}

/* A mark is made once, in a folder that is there, and through no link. */
static void test_mark(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    assert_int_equal(logkeep_mark(root, OLD, &err), GPUL_ESYS);
    make_folder(OLD, "");
    make_folder("away", "");
    assert_int_equal(symlink("../away/file", below(OLD, ".gpulaunch-job")), 0);
    assert_int_equal(logkeep_mark(root, OLD, &err), GPUL_ESYS);
    assert_false(is_there("away", "file"));
    assert_int_equal(symlink("away", below(".", id_of(1))), 0);
    assert_int_equal(logkeep_mark(root, id_of(1), &err), GPUL_ESYS);
    assert_false(is_there("away", ".gpulaunch-job"));
    logkeep_prune("/nowhere/at/all", 0); /* no place, nothing to do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_newest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmarked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_content, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mark, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
