/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/ranklogs.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/gpul-logs-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *path)
{
    static char whole[256];
    snprintf(whole, sizeof(whole), "%s/%s", folder, path);
    return whole;
}

static void begin(struct ranklogs *l, uint32_t attempt)
{
    assert_int_equal(ranklogs_begin(l, in_folder("deep/er/job"), attempt, NULL),
                     0);
}

static void write_log(struct ranklogs *l, uint32_t rank, const char *text)
{
    int fd;
    assert_int_equal(ranklogs_open(l, &fd, rank, RANKLOG_OUT, NULL), 0);
    assert_int_equal(ranklogs_write(fd, text, strlen(text), NULL), 0);
    close(fd);
}

/* Folders appear with the first file, all private, and go with the last. */
static void test_life(void **state)
{
    (void)state;
    struct ranklogs l;
    struct stat st;
    char path[256];
    ranklogs_init(&l);
    begin(&l, 1);
    assert_int_equal(access(in_folder("deep"), F_OK), -1);
    write_log(&l, 3, "first");
    begin(&l, 2);
    write_log(&l, 3, "second");
    assert_int_equal(ranklogs_put_file(&l, "tf_config", "{}", NULL), 0);
    ranklogs_path(&l, path, sizeof(path), 3, RANKLOG_OUT);
    assert_string_equal(path, in_folder("deep/er/job/attempt-2/rank-3.out"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(stat(in_folder("deep/er/job"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    ranklogs_remove(&l);
    assert_int_equal(access(in_folder("deep/er/job"), F_OK), -1);
    assert_int_equal(access(in_folder("deep/er"), F_OK), 0);
    ranklogs_release(&l);
}

/* Only what was made here is removed: another node's files stay. */
static void test_shared_folder(void **state)
{
    (void)state;
    struct ranklogs l;
    struct ranklogs other;
    ranklogs_init(&l);
    ranklogs_init(&other);
    begin(&l, 1);
    begin(&other, 1);
    write_log(&l, 0, "a");
    write_log(&other, 1, "b");
    ranklogs_remove(&l);
    assert_int_equal(
        access(in_folder("deep/er/job/attempt-1/rank-1.out"), F_OK), 0);
    assert_int_equal(
        access(in_folder("deep/er/job/attempt-1/rank-0.out"), F_OK), -1);
    ranklogs_remove(&other);
    assert_int_equal(access(in_folder("deep/er/job"), F_OK), -1);
    ranklogs_release(&l);
    ranklogs_release(&other);
}

/* An agent after another adds to its files, and removes them too. */
static void test_resume(void **state)
{
    (void)state;
    struct ranklogs l;
    struct stat st;
    ranklogs_init(&l);
    begin(&l, 1);
    write_log(&l, 0, "first");
    begin(&l, 2);
    write_log(&l, 0, "second");
    ranklogs_release(&l);

    ranklogs_init(&l);
    begin(&l, 2);
    assert_int_equal(ranklogs_resume(&l, "no-such-folder", NULL), 0);
    assert_int_equal(ranklogs_resume(&l, "attempt-1", NULL), 0);
    assert_int_equal(ranklogs_resume(&l, "attempt-2", NULL), 0);
    write_log(&l, 0, " and more");
    write_log(&l, 1, "new");
    assert_int_equal(stat(in_folder("deep/er/job/attempt-2/rank-0.out"), &st),
                     0);
    assert_int_equal(st.st_size, 15);
    ranklogs_remove(&l);
    assert_int_equal(access(in_folder("deep/er/job"), F_OK), -1);
    ranklogs_release(&l);
}

/* Not even one that goes on opens what is no plain file. */
static void test_resume_in_the_way(void **state)
{
    (void)state;
    struct ranklogs l;
    int fd;
    ranklogs_init(&l);
    begin(&l, 1);
    write_log(&l, 0, "first");
    assert_int_equal(symlink("/dev/null", in_folder("deep/er/job/attempt-1/"
                                                    "rank-1.out")),
                     0);
    assert_int_equal(
        mkfifo(in_folder("deep/er/job/attempt-1/rank-2.out"), 0600), 0);
    assert_int_equal(ranklogs_resume(&l, "attempt-1", NULL), 0);
    assert_int_equal(ranklogs_open(&l, &fd, 1, RANKLOG_OUT, NULL), GPUL_ESYS);
    assert_int_equal(ranklogs_open(&l, &fd, 2, RANKLOG_OUT, NULL), GPUL_ESYS);
    ranklogs_release(&l);
}

/* No log goes into a file that was there, nor through a link of a folder. */
static void test_in_the_way(void **state)
{
    (void)state;
    struct ranklogs l;
    struct gpul_error err;
    int fd;
    char expected[300];
    ranklogs_init(&l);
    begin(&l, 1);
    write_log(&l, 0, "a");
    assert_int_equal(ranklogs_open(&l, &fd, 0, RANKLOG_OUT, &err), GPUL_ESYS);
    assert_int_equal(fd, -1);
    snprintf(expected, sizeof(expected), "%s: File exists",
             in_folder("deep/er/job/attempt-1/rank-0.out"));
    assert_string_equal(err.text, expected);

    assert_int_equal(symlink("/tmp", in_folder("deep/er/job/attempt-2")), 0);
    begin(&l, 2);
    assert_int_equal(ranklogs_open(&l, &fd, 0, RANKLOG_OUT, &err), GPUL_ESYS);
    assert_memory_equal(err.text, "log folder ", 11);
    ranklogs_release(&l);
}

/* A folder of somebody else is not written into. */
static void test_foreign_folder(void **state)
{
    (void)state;
    struct ranklogs l;
    struct gpul_error err;
    int fd;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(mkdir(in_folder("theirs"), 0777), 0);
    assert_int_equal(chown(in_folder("theirs"), 65534, 65534), 0);
    ranklogs_init(&l);
    assert_int_equal(ranklogs_begin(&l, in_folder("theirs"), 1, NULL), 0);
    assert_int_equal(ranklogs_open(&l, &fd, 0, RANKLOG_ERR, &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, "theirs: belongs to somebody else"));
    ranklogs_release(&l);
}

static void put(const char *path)
{
    int fd = open(in_folder(path), O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *path)
{
    return access(in_folder(path), F_OK) == 0;
}

/* A link that is put in the place of a folder, once it was made, leads to
 * nothing that is removed or taken up. */
static void test_planted_link(void **state)
{
    (void)state;
    static const char *const places[] = {"deep/er/job/attempt-1",
                                         "deep/er/job"};
    assert_int_equal(mkdir(in_folder("away"), 0700), 0);
    assert_int_equal(mkdir(in_folder("away/attempt-1"), 0700), 0);
    put("away/rank-0.out");
    put("away/attempt-1/rank-0.out");
    for (size_t i = 0; i < 2; i++) {
        struct ranklogs l;
        char target[256], place[256];
        ranklogs_init(&l);
        begin(&l, 1);
        write_log(&l, 0, "a");
        snprintf(place, sizeof(place), "%s", in_folder(places[i]));
        snprintf(target, sizeof(target), "%s", in_folder("moved"));
        assert_int_equal(rename(place, target), 0);
        snprintf(target, sizeof(target), "%s", in_folder("away"));
        assert_int_equal(symlink(target, place), 0);
        ranklogs_remove(&l);
        ranklogs_release(&l);

        ranklogs_init(&l);
        begin(&l, 1);
        assert_int_equal(ranklogs_resume(&l, "attempt-1", NULL), 0);
        assert_int_equal(l.made_count, 0);
        ranklogs_remove(&l);
        ranklogs_release(&l);
        assert_true(is_there("away/rank-0.out"));
        assert_true(is_there("away/attempt-1/rank-0.out"));
        assert_int_equal(unlink(place), 0);
        remove(in_folder("moved/rank-0.out"));
        remove(in_folder("moved/attempt-1/rank-0.out"));
        remove(in_folder("moved/attempt-1"));
        assert_int_equal(rmdir(in_folder("moved")), 0);
    }
}

/* An empty folder in the place of a rank's file goes, another stays. */
static void test_folder_for_file(void **state)
{
    (void)state;
    struct ranklogs l;
    ranklogs_init(&l);
    begin(&l, 1);
    assert_int_equal(ranklogs_expect_errors(&l, 0, 2, NULL), 0);
    assert_int_equal(
        mkdir(in_folder("deep/er/job/attempt-1/rank-0.error.json"), 0700), 0);
    assert_int_equal(
        mkdir(in_folder("deep/er/job/attempt-1/rank-1.error.json"), 0700), 0);
    put("deep/er/job/attempt-1/rank-1.error.json/kept");
    ranklogs_remove(&l);
    assert_false(is_there("deep/er/job/attempt-1/rank-0.error.json"));
    assert_true(is_there("deep/er/job/attempt-1/rank-1.error.json/kept"));
    ranklogs_release(&l);
}

/* Without a folder there are no logs, and no path is made up. */
static void test_off(void **state)
{
    (void)state;
    struct ranklogs l;
    char path[8] = "x";
    ranklogs_init(&l);
    assert_int_equal(ranklogs_begin(&l, "", 1, NULL), 0);
    assert_false(ranklogs_is_on(&l));
    ranklogs_path(&l, path, sizeof(path), 0, RANKLOG_OUT);
    assert_string_equal(path, "");
    ranklogs_remove(&l);
    ranklogs_release(&l);
}

/* A parent that cannot be made is named. */
static void test_no_parent(void **state)
{
    (void)state;
    struct ranklogs l;
    struct gpul_error err;
    int fd;
    ranklogs_init(&l);
    assert_int_equal(ranklogs_begin(&l, "/dev/null/logs/job", 1, NULL), 0);
    assert_int_equal(ranklogs_open(&l, &fd, 0, RANKLOG_OUT, &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "cannot create /dev/null/logs: Not a directory");
    ranklogs_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_shared_folder, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_resume, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_resume_in_the_way, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_in_the_way, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_foreign_folder, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_planted_link, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_folder_for_file, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_no_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
