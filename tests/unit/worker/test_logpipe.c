/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/logpipe.h"

struct stage {
    char folder[64];
    struct ranklogs logs;
    struct logpipe pipe;
    int writer;
};

static void open_pipe(struct stage *s)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->writer = ends[1];
    logpipe_init(&s->pipe, &s->logs, 3, RANKLOG_OUT, ends[0]);
}

/* `has_logs`: they go into attempt-1. */
static void stage_open(struct stage *s, bool has_logs)
{
    snprintf(s->folder, sizeof(s->folder), "/tmp/gpul-logpipe-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    ranklogs_init(&s->logs);
    assert_int_equal(
        ranklogs_begin(&s->logs, has_logs ? s->folder : "", 1, NULL), 0);
    open_pipe(s);
}

static void stage_close(struct stage *s)
{
    char command[100];
    logpipe_release(&s->pipe);
    close(s->writer);
    ranklogs_release(&s->logs);
    snprintf(command, sizeof(command), "rm -rf '%s'", s->folder);
    assert_int_equal(system(command), 0);
}

static void rank_writes(struct stage *s, const char *text)
{
    assert_int_equal(write(s->writer, text, strlen(text)), strlen(text));
}

/* SOME: exactly this text. */
static void expect_taken(struct stage *s, size_t most, const char *text)
{
    char bytes[64];
    struct gpul_error trouble = {0};
    size_t n = most;
    assert_int_equal(logpipe_take(&s->pipe, bytes, &n, &trouble), LOGPIPE_SOME);
    assert_int_equal(trouble.status, 0);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(bytes, text, n);
}

static enum logpipe_progress take_nothing(struct stage *s)
{
    char bytes[64];
    struct gpul_error trouble = {0};
    size_t n = sizeof(bytes);
    return logpipe_take(&s->pipe, bytes, &n, &trouble);
}

static void log_path(const struct stage *s, char path[128])
{
    snprintf(path, 128, "%s/attempt-1/rank-3.out", s->folder);
}

static void expect_log(const struct stage *s, const char *text)
{
    char path[128];
    char bytes[64] = "";
    log_path(s, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes) - 1), strlen(text));
    close(fd);
    assert_string_equal(bytes, text);
}

/* Bytes come out as they went in, and are in the log; no more than asked. */
static void test_take(void **state)
{
    (void)state;
    struct stage s;
    char path[128];
    stage_open(&s, true);
    log_path(&s, path);
    assert_int_equal(take_nothing(&s), LOGPIPE_EMPTY);
    assert_int_equal(access(path, F_OK), -1); /* not for nothing */
    rank_writes(&s, "one two");
    expect_taken(&s, 3, "one");
    expect_taken(&s, 60, " two");
    rank_writes(&s, "three");
    expect_taken(&s, 60, "three");
    expect_log(&s, "one twothree");
    assert_int_equal(take_nothing(&s), LOGPIPE_EMPTY);
    close(s.writer);
    assert_int_equal(take_nothing(&s), LOGPIPE_END);
    stage_close(&s);
}

/* What nobody wants to see goes into the log all the same. */
static void test_unseen(void **state)
{
    (void)state;
    struct stage s;
    struct gpul_error trouble = {0};
    size_t n = 1000;
    stage_open(&s, true);
    rank_writes(&s, "unseen");
    assert_int_equal(logpipe_take(&s.pipe, NULL, &n, &trouble), LOGPIPE_SOME);
    assert_int_equal(n, 6);
    expect_log(&s, "unseen");
    stage_close(&s);
}

static void test_no_logs(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, false);
    rank_writes(&s, "text");
    expect_taken(&s, 60, "text");
    assert_int_equal(take_nothing(&s), LOGPIPE_EMPTY);
    close(s.writer);
    assert_int_equal(take_nothing(&s), LOGPIPE_END);
    stage_close(&s);
}

/* An agent dies with bytes in the pipe and in the file: the next one goes on
 * with both, and none is there twice or not at all. */
static void test_resumed(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, true);
    rank_writes(&s, "before, ");
    expect_taken(&s, 60, "before, ");
    rank_writes(&s, "between, ");
    int reader = fcntl(s.pipe.fd, F_DUPFD_CLOEXEC, 0);
    logpipe_release(&s.pipe);
    ranklogs_release(&s.logs);

    ranklogs_init(&s.logs);
    assert_int_equal(ranklogs_begin(&s.logs, s.folder, 1, NULL), 0);
    assert_int_equal(ranklogs_resume(&s.logs, "attempt-1", NULL), 0);
    logpipe_init(&s.pipe, &s.logs, 3, RANKLOG_OUT, reader);
    rank_writes(&s, "after");
    expect_taken(&s, 60, "between, after");
    expect_log(&s, "before, between, after");
    stage_close(&s);
}

/* Without a resumption a file that is there is nobody's log. */
static void test_foreign_file(void **state)
{
    (void)state;
    struct stage s;
    char path[128];
    char bytes[64];
    struct gpul_error trouble = {0};
    size_t n = sizeof(bytes);
    stage_open(&s, true);
    rank_writes(&s, "first");
    expect_taken(&s, 60, "first");
    logpipe_release(&s.pipe);
    close(s.writer);
    open_pipe(&s);
    rank_writes(&s, "second");
    assert_int_equal(logpipe_take(&s.pipe, bytes, &n, &trouble), LOGPIPE_SOME);
    assert_int_equal(n, 6);
    assert_int_equal(trouble.status, GPUL_ESYS);
    log_path(&s, path);
    assert_non_null(strstr(trouble.text, path));
    expect_log(&s, "first");
    rank_writes(&s, "third"); /* said once */
    expect_taken(&s, 60, "third");
    stage_close(&s);
}

/* A file that takes no more (here: for its size) is said once, with its path;
 * the bytes go on to whoever shows them. */
static void test_full(void **state)
{
    (void)state;
    struct stage s;
    char bytes[64];
    struct gpul_error trouble = {0};
    size_t n = sizeof(bytes);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit small = {4, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    stage_open(&s, true);
    rank_writes(&s, "four");
    expect_taken(&s, 60, "four");
    setrlimit(RLIMIT_FSIZE, &small);
    rank_writes(&s, "more");
    assert_int_equal(logpipe_take(&s.pipe, bytes, &n, &trouble), LOGPIPE_SOME);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(n, 4);
    assert_memory_equal(bytes, "more", 4);
    assert_non_null(strstr(trouble.text, "attempt-1/rank-3.out: write: "));
    rank_writes(&s, "and more");
    expect_taken(&s, 60, "and more");
    expect_log(&s, "four");
    stage_close(&s);
}

/* Where the kernel does not splice, the bytes pass through here. */
static void test_copies(void **state)
{
    (void)state;
    struct stage s;
    struct gpul_error err;
    stage_open(&s, true);
    assert_int_equal(logpipe_make_log(&s.pipe, &err), 0);
    fcntl(s.pipe.log, F_SETFL, O_APPEND); /* which splice refuses */
    rank_writes(&s, "one");
    expect_taken(&s, 60, "one");
    assert_true(s.pipe.copies);
    rank_writes(&s, " two");
    expect_taken(&s, 60, " two");
    expect_log(&s, "one two");
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),         cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_no_logs),      cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_foreign_file), cmocka_unit_test(test_full),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
