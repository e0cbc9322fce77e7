/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/logview.h"

enum { RANKS = 12, OUT_BYTES_MAX = 1 << 20 };

#define ESC "\x1b"
#define RESET ESC "[0m"

static const struct logview_options piped = {
    .has_labels = true,
    .rank_count_max = RANKS,
    .voices = RANKS,
    .way_of = {0, 1},
};

static const struct logview_options on_terminal = {
    .has_labels = true,
    .rank_count_max = RANKS,
    .voices = RANKS,
    .ways[0] = {.is_terminal = true, .can_redraw = true},
};

static struct logview *make(const struct logview_options *options)
{
    struct logview *v = NULL;
    assert_int_equal(logview_create(&v, options), 0);
    return v;
}

static void say(struct logview *v, uint32_t rank, uint8_t stream, uint64_t ms,
                const char *text)
{
    struct logview_moment now = {.ms = ms};
    assert_int_equal(logview_feed(v, rank, stream, (const uint8_t *)text,
                                  strlen(text), &now),
                     0);
}

/* All ticks that are due up to this moment, at their times. */
static void tick(struct logview *v, uint64_t ms)
{
    while (logview_deadline_ms(v) <= ms) {
        struct logview_moment now = {.ms = logview_deadline_ms(v)};
        assert_int_equal(logview_tick(v, &now), 0);
    }
}

static void finish(struct logview *v, uint8_t way, uint64_t ms)
{
    struct logview_moment now = {.ms = ms};
    assert_int_equal(logview_finish(v, way, &now), 0);
}

static void expect(struct logview *v, uint8_t way, const char *expected)
{
    assert_string_equal(gpul_buf_text(logview_text(v, way)), expected);
    gpul_buf_clear(logview_text(v, way));
}

static void expect_bars(struct logview *v, size_t columns, const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(logview_bars(v, 0, columns, &out), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

static void test_labels(void **state)
{
    (void)state;
    struct logview *v = make(&piped);
    say(v, 0, 0, 1, "hal");
    say(v, 11, 0, 1, "eleven\n");
    say(v, 0, 1, 1, "err\n");
    say(v, 0, 0, 1, "ves\nend");
    expect(v, 0, "[11] eleven\n[0] halves\n");
    expect(v, 1, "[0] err\n");
    finish(v, 1, 1);
    expect(v, 0, "");
    finish(v, 0, 1);
    expect(v, 0, "[0] end\n");
    assert_int_equal(logview_deadline_ms(v), UINT64_MAX);
    logview_destroy(v);
}

/* Stamps, with and without labels. */
static void test_stamps(void **state)
{
    (void)state;
    struct logview_options options = piped;
    struct logview_moment now = {.ms = 5, .text = "12:00"};
    struct logview *v = make(&options);
    logview_feed(v, 3, 0, (const uint8_t *)"a\nb\n", 4, &now);
    expect(v, 0, "[3] 12:00 a\n[3] 12:00 b\n");
    logview_destroy(v);
    options.has_labels = false;
    v = make(&options);
    logview_feed(v, 3, 0, (const uint8_t *)"a\n", 2, &now);
    expect(v, 0, "12:00 a\n");
    logview_destroy(v);
}

/* Bytes that are no UTF-8, and escape sequences, pass into a pipe. */
static void test_bytes_in_pipe(void **state)
{
    (void)state;
    struct logview *v = make(&piped);
    say(v, 1, 0, 1, "\xff\x9b" ESC "[2J\xc2\n");
    expect(v, 0, "[1] \xff\x9b" ESC "[2J\xc2\n");
    logview_destroy(v);
}

/* On a terminal colours end with their line, the rest of what could harm
 * other ranks' lines is gone. */
static void test_terminal(void **state)
{
    (void)state;
    struct logview *v = make(&on_terminal);
    say(v, 1, 0, 1, ESC "[31mred\n" ESC "[2Jplain" ESC "[");
    say(v, 1, 1, 1, "other\n");
    say(v, 1, 0, 1, "H\n");
    expect(v, 0, "[1] " ESC "[31mred" RESET "\n[1] other\n[1] plain\n");
    logview_destroy(v);
}

static void test_fold(void **state)
{
    (void)state;
    struct logview_options options = piped;
    options.ways[0].is_folding = true;
    options.voices = 3;
    struct logview *v = make(&options);
    say(v, 0, 0, 1000, "epoch 1\n");
    say(v, 1, 0, 1010, "epoch 1\n");
    say(v, 0, 1, 1010, "epoch 1\n");
    expect(v, 0, "");
    expect(v, 1, "[0] epoch 1\n");
    tick(v, 1099);
    expect(v, 0, "");
    tick(v, 1100);
    expect(v, 0, "[0-1] epoch 1\n");
    for (uint32_t rank = 0; rank < 3; rank++) {
        say(v, rank, 0, 2000, "epoch 2\n");
    }
    expect(v, 0, "[0-2] epoch 2\n");
    say(v, 0, 0, 3000, "last\nhalf");
    struct logview_moment now = {.ms = 3001};
    logview_hurry(v, &now);
    expect(v, 0, "[0] last\n");
    say(v, 2, 0, 3001, "half");
    finish(v, 0, 3002);
    expect(v, 0, "[0,2] half\n");
    logview_destroy(v);
}

/* Into a pipe: the first update soon, one a second, and the last. */
static void test_bars_in_pipe(void **state)
{
    (void)state;
    struct logview *v = make(&piped);
    char text[16];
    for (int i = 0; i <= 3000; i += 10) {
        snprintf(text, sizeof(text), "\r%d ms", i);
        tick(v, 10000 + (uint64_t)i);
        say(v, 0, 0, 10000 + (uint64_t)i, text);
    }
    expect(v, 0, "[0] 190 ms\n[0] 1190 ms\n[0] 2190 ms\n");
    /* silence shows what is newest, once */
    tick(v, 20000);
    expect(v, 0, "[0] 3000 ms\n");
    /* an end that has been shown is not said again */
    say(v, 0, 0, 20000, "\nnext\n");
    expect(v, 0, "[0] next\n");
    tick(v, 30000);
    assert_int_equal(logview_deadline_ms(v), UINT64_MAX);
    logview_destroy(v);
}

static void test_bars_end_in_pipe(void **state)
{
    (void)state;
    struct logview *v = make(&piped);
    say(v, 0, 0, 10000, "\r10%\r20%\r30%\n");
    say(v, 1, 0, 10000, "\r10%\r20%");
    expect(v, 0, "[0] 30%\n");
    finish(v, 0, 10001);
    expect(v, 0, "[1] 20%\n");
    say(v, 2, 0, 20000, "\r10%\r20%");
    tick(v, 20500);
    finish(v, 0, 20501);
    expect(v, 0, "[2] 20%\n");
    logview_destroy(v);
}

/* On a terminal: no line before the end, one line for all bars. */
static void test_bars_on_terminal(void **state)
{
    (void)state;
    struct logview *v = make(&on_terminal);
    expect_bars(v, 80, "");
    say(v, 3, 1, 1000, "\r30%");
    say(v, 1, 1, 1000, "\r10%\r" ESC "[K11%");
    expect_bars(v, 80, "[1] 11%" RESET "  +1 more");
    expect_bars(v, 6, "[1] 11" RESET);
    say(v, 3, 1, 1001, "\r11%");
    expect_bars(v, 80, "[1,3] 11%" RESET);
    tick(v, 5000);
    expect(v, 0, "");
    say(v, 1, 1, 5000, "\r100%\n");
    expect(v, 0, "[1] 100%\n");
    expect_bars(v, 80, "[3] 11%" RESET);
    finish(v, 0, 5001);
    expect(v, 0, "[3] 11%\n");
    expect_bars(v, 80, "");
    tick(v, 9000);
    assert_int_equal(logview_deadline_ms(v), UINT64_MAX);
    logview_destroy(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_bytes_in_pipe),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_bars_in_pipe),
        cmocka_unit_test(test_bars_end_in_pipe),
        cmocka_unit_test(test_bars_on_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
