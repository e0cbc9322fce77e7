/* SPDX-License-Identifier: Apache-2.0
 *
 * What a probe writes: a pipe in, a file and the last line out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/probelog.h"

/* One probe's pipe, read by a loop of its own. */
struct bench {
    uv_loop_t loop;
    char folder[32];
    struct ranklogs logs;
    int writer;
    struct probelog *log;
};

static void bench_open(struct bench *b, const char *name)
{
    int fds[2];
    snprintf(b->folder, sizeof(b->folder), "/tmp/gpul-test-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    assert_int_equal(uv_loop_init(&b->loop), 0);
    ranklogs_init(&b->logs);
    assert_int_equal(ranklogs_begin_folder(&b->logs, b->folder, "test", NULL),
                     0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    b->writer = fds[1];
    assert_int_equal(
        probelog_open(&b->log, &b->loop, fds[0], &b->logs, name, NULL), 0);
}

static void bench_write(struct bench *b, const char *text)
{
    assert_int_equal(write(b->writer, text, strlen(text)),
                     (ssize_t)strlen(text));
}

/* The last line must be this one. */
static void bench_close(struct bench *b, const char *expected)
{
    char line[PROBELOG_LINE_BYTES];
    char command[64];
    probelog_finish(b->log, line);
    assert_string_equal(line, expected);
    probelog_close(b->log);
    close(b->writer);
    assert_int_equal(uv_run(&b->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    ranklogs_release(&b->logs);
    snprintf(command, sizeof(command), "rm -rf '%s'", b->folder);
    assert_int_equal(system(command), 0);
}

static void assert_file(const struct bench *b, const char *expected)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "%s/test/a.log", b->folder);
    FILE *f = fopen(path, "r");
    if (expected == NULL) {
        assert_null(f);
        return;
    }
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    assert_string_equal(text, expected);
}

/* The last line that is not empty, whole or not, is what counts. */
static void test_last_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *line;
    } table[] = {
        {"", ""},
        {"one", "one"},
        {"one\n", "one"},
        {"one\ntwo", "two"},
        {"one\ntwo \r\n\n \t\n", "two"},
        {"\n\n", ""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct bench b;
        bench_open(&b, "a.log");
        bench_write(&b, table[i].text);
        bench_close(&b, table[i].line);
    }
}

/* A line longer than is kept loses its beginning. */
static void test_long_line(void **state)
{
    (void)state;
    struct bench b;
    char text[1001], expected[PROBELOG_LINE_BYTES];
    for (size_t i = 0; i < 1000; i++) {
        text[i] = (char)('a' + i % 26);
    }
    text[1000] = 0;
    memcpy(expected, text + 1001 - sizeof(expected), sizeof(expected));
    bench_open(&b, "a.log");
    for (int i = 0; i < 3; i++) {
        bench_write(&b, "short\n");
    }
    bench_write(&b, text);
    bench_close(&b, expected);
}

/* The file has all of it, from the loop's turns and from the end. */
static void test_file(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "a.log");
    assert_file(&b, NULL);
    bench_write(&b, "first\n");
    uv_run(&b.loop, UV_RUN_NOWAIT);
    assert_file(&b, "first\n");
    bench_write(&b, "last\n");
    char line[PROBELOG_LINE_BYTES];
    probelog_finish(b.log, line);
    assert_file(&b, "first\nlast\n");
    bench_close(&b, "last");
}

/* Without a name there is no file, and still a last line. */
static void test_no_file(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, NULL);
    bench_write(&b, "words\n");
    uv_run(&b.loop, UV_RUN_NOWAIT);
    assert_file(&b, NULL);
    bench_close(&b, "words");
}

/* A name that is taken already is left alone. */
static void test_taken(void **state)
{
    (void)state;
    struct bench b;
    int fd;
    bench_open(&b, "a.log");
    assert_int_equal(ranklogs_create(&b.logs, &fd, "a.log", NULL), 0);
    close(fd);
    bench_write(&b, "words\n");
    uv_run(&b.loop, UV_RUN_NOWAIT);
    assert_file(&b, "");
    bench_close(&b, "words");
}

/* What is beyond the bound is read and thrown away: nobody waits. */
static void test_bound(void **state)
{
    (void)state;
    struct bench b;
    char path[64], block[4096];
    struct stat st;
    memset(block, '.', sizeof(block));
    bench_open(&b, "a.log");
    for (size_t i = 0; i < PROBELOG_FILE_BYTES_MAX / sizeof(block) + 8; i++) {
        assert_int_equal(write(b.writer, block, sizeof(block)), sizeof(block));
        uv_run(&b.loop, UV_RUN_NOWAIT);
    }
    bench_write(&b, "\nend");
    snprintf(path, sizeof(path), "%s/test/a.log", b.folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, PROBELOG_FILE_BYTES_MAX);
    bench_close(&b, "end");
}

/* The end of the pipe ends the reading, and the loop with it. */
static void test_end_of_pipe(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "a.log");
    bench_write(&b, "bye");
    close(b.writer);
    b.writer = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(uv_run(&b.loop, UV_RUN_DEFAULT), 0);
    bench_close(&b, "bye");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_line),   cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_taken),       cmocka_unit_test(test_bound),
        cmocka_unit_test(test_end_of_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
