/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/lines.h"

enum { OUT_BYTES_MAX = 1 << 20 };

static void put(struct gpul_buf *out, const struct line *line)
{
    gpul_buf_append(out, line->text, line->n);
    gpul_buf_append(out, "|", 1);
}

static void feed(struct lines *l, struct gpul_buf *out, const char *text,
                 size_t n)
{
    struct lines_input input;
    struct line line;
    int rc = 0;
    lines_input_init(&input, (const uint8_t *)text, n);
    while (lines_next(l, &input, &line, &rc)) {
        put(out, &line);
    }
    assert_int_equal(rc, 0);
}

static void finish(struct lines *l, struct gpul_buf *out)
{
    struct line line;
    if (lines_finish(l, &line)) {
        put(out, &line);
    }
}

/* Feeds `text` in pieces of `step` bytes and compares all that comes out. */
static void check_split(const char *text, size_t step, const char *expected)
{
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += step) {
        feed(&l, &out, text + at, n - at < step ? n - at : step);
    }
    finish(&l, &out);
    finish(&l, &out);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
    lines_release(&l);
}

/* However the bytes arrive, the same lines come out: what a terminal would
 * show at the end of each. */
static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"a\n", "a|"},
        {"a\nb\n", "a|b|"},
        {"\n", "|"},
        {"\n\n", "||"},
        {"no end", "no end|"},
        {"a\r\nb\r\n", "a|b|"},
        {"\r\n", "|"},
        {"10%\r20%\r30%\n", "30%|"},
        {"\r10%\r20%", "20%|"},
        {"\r10%\r20%\r", "20%|"},
        {"\r10%\r20%\r\n", "20%|"},
        {"a\r\r\nb", "a|b|"},
        {"a\rb\n", "b|"},
        {"a\r\n\nb", "a||b|"},
        {"10%\r   \rwords\n\r20%", "words|20%|"},
        {"10%\r   \r", ""},
        {"\xff\xfe\n", "\xff\xfe|"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t step = 1; step <= 4; step++) {
            check_split(cases[i].text, step, cases[i].expected);
        }
        check_split(cases[i].text, 1000, cases[i].expected);
    }
}

/* A line without an end is held back until the stream ends. */
static void test_held(void **state)
{
    (void)state;
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    feed(&l, &out, "half", 4);
    assert_int_equal(out.used, 0);
    feed(&l, &out, "!\nx", 3);
    assert_string_equal(gpul_buf_text(&out), "half!|");
    lines_release(&l);
    gpul_buf_release(&out);
}

/* A line over 64 KiB is cut into lines, and no byte of it is lost. */
static void test_long_line(void **state)
{
    (void)state;
    size_t n = 2 * LINES_HELD_BYTES_MAX + 10;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'x', n);
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    feed(&l, &out, text, n);
    finish(&l, &out);
    assert_int_equal(out.used, n + 3);
    assert_int_equal(out.data[LINES_HELD_BYTES_MAX], '|');
    assert_int_equal(out.data[2 * LINES_HELD_BYTES_MAX + 1], '|');
    assert_int_equal(out.data[n + 2], '|');
    lines_release(&l);
    gpul_buf_release(&out);
    free(text);
}

/* The first line of `torn` behind so many x that byte `before` of it is the
 * first that is over 64 KiB, however the bytes arrive. */
static void check_cut(const char *torn, size_t before, size_t expected,
                      size_t step)
{
    size_t n = LINES_HELD_BYTES_MAX - before + strlen(torn);
    char *text = malloc(n + 1);
    struct lines l;
    struct gpul_buf out;
    assert_non_null(text);
    memset(text, 'x', n);
    memcpy(text + n - strlen(torn), torn, strlen(torn) + 1);
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    for (size_t at = 0; at < n; at += step) {
        feed(&l, &out, text + at, n - at < step ? n - at : step);
    }
    finish(&l, &out);
    assert_int_equal(out.data[LINES_HELD_BYTES_MAX - before + expected], '|');
    assert_int_equal(out.used, n + 2);
    lines_release(&l);
    gpul_buf_release(&out);
    free(text);
}

/* It is not cut within a character or a colour. */
static void test_torn(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t before;
        size_t expected;
    } cuts[] = {
        {"plain text", 4, 4},        {"a\xe2\x82\xac and", 2, 4},
        {"a\xe2\x82\xac and", 3, 4}, {"a\xe2\x82\xac and", 1, 1},
        {"a\x1b[1;31mred", 2, 8},    {"a\x1b[1;31mred", 3, 8},
        {"a\x1b[1;31mred", 7, 8},    {"a\x1b[1;31mred", 8, 8},
        {"a\x1b[1;31mred", 1, 1},    {"[1;31 is no colour", 4, 4},
    };
    static const size_t steps[] = {1, 7, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            check_cut(cuts[i].text, cuts[i].before, cuts[i].expected, steps[k]);
        }
    }
}

static void check_bar(const struct lines *l, const char *text, bool is_shown)
{
    struct line bar;
    if (text == NULL) {
        assert_false(lines_bar(l, &bar));
        return;
    }
    assert_true(lines_bar(l, &bar));
    assert_int_equal(bar.n, strlen(text));
    assert_memory_equal(bar.text, text, bar.n);
    assert_int_equal(bar.is_shown, is_shown);
}

/* The newest update, and whether it has been shown. */
static void test_bar(void **state)
{
    (void)state;
    struct lines l;
    struct line line;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    check_bar(&l, NULL, false);
    feed(&l, &out, "10", 2);
    check_bar(&l, NULL, false);
    feed(&l, &out, "%\r", 2);
    check_bar(&l, "10%", false);
    lines_mark_shown(&l);
    check_bar(&l, "10%", true);
    feed(&l, &out, "\r\r", 2);
    check_bar(&l, "10%", true);
    feed(&l, &out, "20%", 3);
    check_bar(&l, "20%", false);
    feed(&l, &out, "\r    ", 5);
    check_bar(&l, NULL, false);
    feed(&l, &out, "\r30%\r", 5);
    lines_mark_shown(&l);
    struct lines_input input;
    int rc = 0;
    lines_input_init(&input, (const uint8_t *)"\n", 1);
    assert_true(lines_next(&l, &input, &line, &rc));
    assert_true(line.is_shown);
    assert_int_equal(line.n, 3);
    check_bar(&l, NULL, false);
    feed(&l, &out, "\r40%", 4);
    lines_mark_shown(&l);
    assert_false(lines_finish(&l, &line));
    assert_int_equal(out.used, 0);
    lines_release(&l);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_held),
        cmocka_unit_test(test_long_line), cmocka_unit_test(test_torn),
        cmocka_unit_test(test_bar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
