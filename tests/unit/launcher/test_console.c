/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/console.h"

enum { NODE_COUNT = 4, TEXT_BYTES = 4096, FLOOD_BYTES = 32 << 10 };

/* A console whose two streams are pipes that the test reads. */
struct fixture {
    uv_loop_t loop;
    struct console *console;
    int out[2];
    int err[2];
    uint64_t credits[NODE_COUNT];
    char text[TEXT_BYTES];
};

static void on_credit(void *arg, uint32_t node_rank, uint64_t bytes)
{
    struct fixture *f = arg;
    assert_true(node_rank < NODE_COUNT);
    f->credits[node_rank] += bytes;
}

static void on_progress(void *arg)
{
    (void)arg;
}

static void set_up(struct fixture *f, const struct console_options *options)
{
    static const struct console_handlers handlers = {on_credit, on_progress};
    memset(f, 0, sizeof(*f));
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(pipe2(f->out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(f->err, O_CLOEXEC), 0);
    assert_int_equal(fcntl(f->out[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(f->err[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(console_create(&f->console, &f->loop, f->out[1], f->err[1],
                                    &handlers, f, NULL),
                     0);
    console_configure(f->console, options);
}

static void tear_down(struct fixture *f)
{
    console_close(f->console);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    console_destroy(f->console);
    for (size_t i = 0; i < 2; i++) {
        close(f->out[i]);
        close(f->err[i]);
    }
}

static const char *read_text(struct fixture *f, int fd)
{
    ssize_t n = read(fd, f->text, sizeof(f->text) - 1);
    f->text[n > 0 ? n : 0] = '\0';
    return f->text;
}

static void output(struct fixture *f, uint32_t rank, bool is_stderr,
                   const char *text, size_t n)
{
    union {
        const char *text;
        uint8_t *bytes;
    } u = {text};
    Gpul__Output o = GPUL__OUTPUT__INIT;
    o.rank = rank;
    o.node_rank = rank % NODE_COUNT;
    o.stream =
        is_stderr ? GPUL__OUTPUT__STREAM__STDERR : GPUL__OUTPUT__STREAM__STDOUT;
    o.data = (ProtobufCBinaryData){n, u.bytes};
    console_output(f->console, &o);
}

static void say(struct fixture *f, uint32_t rank, bool is_stderr,
                const char *text)
{
    output(f, rank, is_stderr, text, strlen(text));
}

/* Without labels the bytes of each stream pass as they are. */
static void test_exact(void **state)
{
    (void)state;
    struct console_options options = {.rank_count_max = 1};
    struct fixture f;
    set_up(&f, &options);
    output(&f, 0, false, "a\0b\r", 4);
    say(&f, 0, true, "oops");
    ssize_t n = read(f.out[0], f.text, sizeof(f.text));
    assert_int_equal(n, 4);
    assert_memory_equal(f.text, "a\0b\r", 4);
    assert_string_equal(read_text(&f, f.err[0]), "oops");
    assert_int_equal(f.credits[0], 8);
    tear_down(&f);
}

/* With labels whole lines come out, each stream of each rank by itself. */
static void test_labels(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_ALWAYS,
                                      .rank_count_max = 12};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 0, false, "hal");
    say(&f, 11, false, "eleven\n");
    say(&f, 0, true, "err\n");
    say(&f, 0, false, "ves\nend");
    assert_string_equal(read_text(&f, f.out[0]), "[11] eleven\n[0] halves\n");
    assert_string_equal(read_text(&f, f.err[0]), "[0] err\n");
    console_finish_lines(f.console);
    assert_string_equal(read_text(&f, f.out[0]), "[0] end\n");
    tear_down(&f);
}

/* Bytes that are held back as half a line are credited: a rank must be able
 * to finish its line. */
static void test_credit_of_half_line(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_ALWAYS,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 2, false, "half");
    assert_int_equal(f.credits[2], 4);
    tear_down(&f);
}

/* Credit waits for the reader, and comes in full once it has read. */
static void test_credit_waits(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_NEVER,
                                      .rank_count_max = 4};
    struct fixture f;
    char *bytes = calloc(1, FLOOD_BYTES);
    assert_non_null(bytes);
    set_up(&f, &options);
    for (int i = 0; i < 8; i++) {
        output(&f, 1, false, bytes, FLOOD_BYTES);
    }
    assert_true(f.credits[1] < 8 * FLOOD_BYTES);
    assert_false(console_is_drained(f.console));
    while (!console_is_drained(f.console)) {
        read_text(&f, f.out[0]);
        uv_run(&f.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(f.credits[1], 8 * FLOOD_BYTES);
    tear_down(&f);
    free(bytes);
}

/* When standard output has gone the bytes are dropped, and still credited. */
static void test_reader_gone(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_NEVER,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    close(f.out[0]);
    f.out[0] = -1;
    say(&f, 0, false, "x");
    assert_int_equal(console_stdout_error(f.console), EPIPE);
    assert_int_equal(f.credits[0], 1);
    assert_true(console_is_drained(f.console));
    tear_down(&f);
}

/* For --json standard output is kept for the data. */
static void test_json(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_NEVER,
                                      .sends_stdout_to_stderr = true,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 0, false, "rank\n");
    console_data(f.console, "{}\n", 3);
    assert_string_equal(read_text(&f, f.out[0]), "{}\n");
    assert_string_equal(read_text(&f, f.err[0]), "rank\n");
    tear_down(&f);
}

/* A rank that the job does not have gets no memory. */
static void test_foreign_rank(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_ALWAYS,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 4000000000u, false, "x\n");
    assert_string_equal(read_text(&f, f.out[0]), "");
    tear_down(&f);
}

static const struct gpul_rankset *ranks(struct gpul_rankset *s,
                                        const char *list)
{
    gpul_rankset_init(s);
    assert_int_equal(gpul_rankset_parse(s, list, NULL), 0);
    return s;
}

/* Ranks that are not shown are credited; a single one that is needs no
 * label. */
static void test_shown(void **state)
{
    (void)state;
    struct gpul_rankset shown;
    struct console_options options = {.rank_count_max = 4,
                                      .shown = ranks(&shown, "1,3")};
    struct fixture f;
    set_up(&f, &options);
    for (uint32_t rank = 0; rank < 4; rank++) {
        say(&f, rank, false, "word\n");
        assert_int_equal(f.credits[rank], 5);
    }
    assert_string_equal(read_text(&f, f.out[0]), "[1] word\n[3] word\n");
    tear_down(&f);
    gpul_rankset_release(&shown);
    options.shown = ranks(&shown, "2,17");
    set_up(&f, &options);
    say(&f, 1, false, "word\n");
    say(&f, 2, false, "wo\rrd");
    assert_string_equal(read_text(&f, f.out[0]), "wo\rrd");
    tear_down(&f);
    gpul_rankset_release(&shown);
}

/* Equal lines wait for each other, but not longer than our own words do. */
static void test_fold(void **state)
{
    (void)state;
    struct console_options options = {.folding = CONSOLE_ALWAYS,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 0, true, "word\n");
    say(&f, 2, true, "word\n");
    assert_string_equal(read_text(&f, f.err[0]), "");
    assert_int_equal(f.credits[2], 5);
    console_say(f.console, "ours\n", 5);
    assert_string_equal(read_text(&f, f.err[0]), "[0,2] word\nours\n");
    say(&f, 1, true, "alone\n");
    while (read_text(&f, f.err[0])[0] == '\0') {
        uv_run(&f.loop, UV_RUN_ONCE);
    }
    assert_string_equal(f.text, "[1] alone\n");
    tear_down(&f);
}

/* The time is that of the world, in UTC. */
static void test_stamps(void **state)
{
    (void)state;
    struct console_options options = {.has_stamps = true, .rank_count_max = 1};
    struct fixture f;
    set_up(&f, &options);
    say(&f, 0, false, "word\n");
    read_text(&f, f.out[0]);
    assert_int_equal(strlen(f.text), strlen("2026-01-02T03:04:05.678Z word\n"));
    assert_string_equal(f.text + 23, "Z word\n");
    assert_int_equal(f.text[10], 'T');
    assert_int_equal(f.text[19], '.');
    tear_down(&f);
}

/* What a full reader does not take waits as it came: all of it arrives, with
 * our own words and the last line in their places. */
static void test_backlog(void **state)
{
    (void)state;
    enum { FRAMES = 40 };
    struct console_options options = {.labels = CONSOLE_ALWAYS,
                                      .rank_count_max = 4};
    struct fixture f;
    char *lines = malloc(FLOOD_BYTES);
    assert_non_null(lines);
    memset(lines, '\n', FLOOD_BYTES);
    set_up(&f, &options);
    for (int i = 0; i < FRAMES; i++) {
        output(&f, 1, true, lines, FLOOD_BYTES);
    }
    say(&f, 1, true, "half");
    console_finish_lines(f.console);
    console_say(f.console, "ours\n", 5);
    size_t got = 0;
    char last[TEXT_BYTES] = "";
    while (!console_is_drained(f.console) || read_text(&f, f.err[0])[0] != 0) {
        if (f.text[0] != '\0') {
            got += strlen(f.text);
            memcpy(last, f.text, sizeof(last));
            f.text[0] = '\0';
        }
        uv_run(&f.loop, UV_RUN_NOWAIT);
        if (!console_is_drained(f.console)) {
            read_text(&f, f.err[0]);
        }
    }
    assert_int_equal(got, (size_t)FRAMES * FLOOD_BYTES * 5 + 9 + 5);
    assert_string_equal(last + strlen(last) - 14, "[1] half\nours\n");
    assert_int_equal(f.credits[1], FRAMES * FLOOD_BYTES + 4);
    tear_down(&f);
    free(lines);
}

/* A reader that takes nothing can be given up: all that waited and all that
 * comes later counts as written, and its credit is given. */
static void test_give_up(void **state)
{
    (void)state;
    static char flood[FLOOD_BYTES];
    struct console_options options = {.labels = CONSOLE_NEVER,
                                      .rank_count_max = 4};
    struct fixture f;
    uint64_t sent = 0;
    set_up(&f, &options);
    memset(flood, 'x', sizeof(flood));
    for (int i = 0; i < 64; i++) {
        output(&f, 1, false, flood, sizeof(flood));
        sent += sizeof(flood);
    }
    uint64_t waits = console_waiting_bytes(f.console, CONSOLE_STDOUT);
    assert_true(waits > 0);
    assert_int_equal(waits + console_written(f.console, CONSOLE_STDOUT), sent);
    assert_int_equal(console_waiting_bytes(f.console, CONSOLE_STDERR), 0);
    assert_int_equal(console_give_up(f.console, CONSOLE_STDOUT), waits);
    assert_true(console_is_drained(f.console));
    assert_int_equal(console_stdout_error(f.console), ETIMEDOUT);
    assert_int_equal(f.credits[1], sent);
    output(&f, 1, false, flood, sizeof(flood));
    assert_int_equal(f.credits[1], sent + sizeof(flood));
    assert_true(console_is_drained(f.console));
    tear_down(&f);
}

/* No live line without a terminal. */
static void test_no_terminal(void **state)
{
    (void)state;
    struct console_options options = {.labels = CONSOLE_NEVER,
                                      .rank_count_max = 4};
    struct fixture f;
    set_up(&f, &options);
    assert_false(console_has_terminal(f.console));
    assert_int_equal(console_width(f.console), 80);
    console_live(f.console, "live", 4);
    assert_string_equal(read_text(&f, f.err[0]), "");
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_credit_of_half_line),
        cmocka_unit_test(test_credit_waits),
        cmocka_unit_test(test_reader_gone),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_foreign_rank),
        cmocka_unit_test(test_no_terminal),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_give_up),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
