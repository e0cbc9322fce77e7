/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
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

#include "worker/leftovers.h"

#define TEXT(literal) (literal), sizeof(literal) - 1

static char scratch[] = "/tmp/gpulaunch-test-leftovers-XXXXXX";
static char path[256];
static struct ranklogs logs;
static struct lastwords words;

static int set_up(void **state)
{
    (void)state;
    memcpy(scratch + strlen(scratch) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(scratch));
    ranklogs_init(&logs);
    assert_int_equal(ranklogs_begin(&logs, scratch, 1, NULL), 0);
    assert_int_equal(ranklogs_expect_errors(&logs, 4, 2, NULL), 0);
    snprintf(path, sizeof(path), "%s/attempt-1/rank-4.error.json", scratch);
    return 0;
}

/* Whatever ranks have written where they were told to is removed. */
static int tear_down(void **state)
{
    (void)state;
    lastwords_release(&words);
    ranklogs_remove(&logs);
    ranklogs_release(&logs);
    assert_int_equal(access(scratch, F_OK), -1);
    return 0;
}

static void write_error(size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < n; i++) {
        fputc('0' + (int)(i % 10), file);
    }
    assert_int_equal(fclose(file), 0);
}

static void test_nothing(void **state)
{
    (void)state;
    assert_null(leftovers_collect(&words, &logs, 4));
    write_error(0);
    assert_null(leftovers_collect(&words, &logs, 4));
}

static void test_all(void **state)
{
    (void)state;
    lastwords_take(&words, true, TEXT("one\ntwo\n"));
    lastwords_take(&words, false, TEXT("NCCL WARN gone"));
    write_error(12);
    Gpul__Evidence *e = leftovers_collect(&words, &logs, 4);
    assert_non_null(e);
    assert_string_equal(e->tail, "one\ntwo");
    assert_int_equal(e->n_nccl_warnings, 1);
    assert_string_equal(e->nccl_warnings[0], "NCCL WARN gone");
    assert_int_equal(e->error_file.len, 12);
    assert_memory_equal(e->error_file.data, "012345678901", 12);
    assert_int_equal(e->error_file_bytes, 12);
    gpul__evidence__free_unpacked(e, NULL);
}

/* Only the end of what was written is kept, in whole lines. */
static void test_long_tail(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char line[32];
        int n = snprintf(line, sizeof(line), "line %d\n", i);
        lastwords_take(&words, true, line, (size_t)n);
    }
    Gpul__Evidence *e = leftovers_collect(&words, &logs, 4);
    assert_non_null(e);
    assert_memory_equal(e->tail, "line ", 5);
    assert_string_equal(e->tail + strlen(e->tail) - 9, "line 4999");
    assert_in_range(strlen(e->tail), 4000, GPUL_TAIL_BYTES_MAX);
    gpul__evidence__free_unpacked(e, NULL);
}

/* A file that is too large is told of, not read in part. */
static void test_large_error(void **state)
{
    (void)state;
    write_error(GPUL_ERROR_FILE_BYTES_MAX);
    Gpul__Evidence *e = leftovers_collect(&words, &logs, 4);
    assert_int_equal(e->error_file.len, GPUL_ERROR_FILE_BYTES_MAX);
    gpul__evidence__free_unpacked(e, NULL);
    write_error(GPUL_ERROR_FILE_BYTES_MAX + 1);
    e = leftovers_collect(&words, &logs, 4);
    assert_int_equal(e->error_file.len, 0);
    assert_int_equal(e->error_file_bytes, GPUL_ERROR_FILE_BYTES_MAX + 1);
    gpul__evidence__free_unpacked(e, NULL);
}

/* What is no plain file is not read, and nothing waits for it. */
static void test_no_plain_file(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(leftovers_collect(&words, &logs, 4));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_null(leftovers_collect(&words, &logs, 4));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_null(leftovers_collect(&words, &logs, 4));
}

/* An agent after another has the log of what it has not seen. */
static void test_resumed(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(ranklogs_open(&logs, &fd, 4, RANKLOG_ERR, NULL), 0);
    assert_int_equal(ranklogs_write(fd, TEXT("before\nand after\n"), NULL), 0);
    close(fd);
    assert_int_equal(ranklogs_resume(&logs, "attempt-1", NULL), 0);
    lastwords_take(&words, true, TEXT("and after\n"));
    Gpul__Evidence *e = leftovers_collect(&words, &logs, 4);
    assert_string_equal(e->tail, "before\nand after");
    gpul__evidence__free_unpacked(e, NULL);
}

/* Without log files the memory of what went by is all. */
static void test_without_logs(void **state)
{
    (void)state;
    struct ranklogs none;
    ranklogs_init(&none);
    assert_int_equal(ranklogs_begin(&none, "", 1, NULL), 0);
    assert_int_equal(ranklogs_expect_errors(&none, 0, 1, NULL), 0);
    assert_null(leftovers_collect(&words, &none, 0));
    lastwords_take(&words, true, TEXT("bye"));
    Gpul__Evidence *e = leftovers_collect(&words, &none, 0);
    assert_string_equal(e->tail, "bye");
    gpul__evidence__free_unpacked(e, NULL);
    ranklogs_release(&none);
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing),      TEST(test_all),           TEST(test_long_tail),
        TEST(test_large_error),  TEST(test_no_plain_file), TEST(test_resumed),
        TEST(test_without_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
