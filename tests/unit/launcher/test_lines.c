/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "launcher/lines.h"

enum { OUT_BYTES_MAX = 1 << 20 };

/* Feeds `text` in pieces of `step` bytes and compares all that comes out. */
static void check_split(const char *text, size_t step, const char *expected)
{
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += step) {
        size_t piece = n - at < step ? n - at : step;
        assert_int_equal(
            lines_feed(&l, &out, "[3] ", (const uint8_t *)text + at, piece), 0);
    }
    assert_int_equal(lines_finish(&l, &out, "[3] "), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
    lines_release(&l);
}

/* However the bytes arrive, the same lines come out. */
static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"a\n", "[3] a\n"},
        {"a\nb\n", "[3] a\n[3] b\n"},
        {"\n", "[3] \n"},
        {"\n\n", "[3] \n[3] \n"},
        {"no end", "[3] no end\n"},
        {"a\r\nb\r\n", "[3] a\n[3] b\n"},
        {"\r\n", "[3] \n"},
        {"10%\r20%\r30%\n", "[3] 10%\n[3] 20%\n[3] 30%\n"},
        {"\r10%\r20%", "[3] 10%\n[3] 20%\n"},
        {"a\r\r\nb", "[3] a\n[3] \n[3] b\n"},
        {"a\rb\n", "[3] a\n[3] b\n"},
        {"a\r\n\nb", "[3] a\n[3] \n[3] b\n"},
        {"\xff\xfe\n", "[3] \xff\xfe\n"},
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
    assert_int_equal(lines_feed(&l, &out, "[0] ", (const uint8_t *)"half", 4),
                     0);
    assert_int_equal(out.used, 0);
    assert_int_equal(lines_feed(&l, &out, "[0] ", (const uint8_t *)"!\nx", 3),
                     0);
    assert_string_equal(gpul_buf_text(&out), "[0] half!\n");
    lines_release(&l);
    gpul_buf_release(&out);
}

/* A line over 64 KiB is cut into lines, and no byte of it is lost. */
static void test_long_line(void **state)
{
    (void)state;
    size_t n = 2 * LINES_HELD_BYTES_MAX + 10;
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 'x', n);
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(lines_feed(&l, &out, "", bytes, n), 0);
    assert_int_equal(lines_finish(&l, &out, ""), 0);
    assert_int_equal(out.used, n + 3);
    assert_int_equal(out.data[LINES_HELD_BYTES_MAX], '\n');
    assert_int_equal(out.data[2 * LINES_HELD_BYTES_MAX + 1], '\n');
    assert_int_equal(out.data[n + 2], '\n');
    lines_release(&l);
    gpul_buf_release(&out);
    free(bytes);
}

/* When the output has no room, that is reported. */
static void test_no_room(void **state)
{
    (void)state;
    struct lines l;
    struct gpul_buf out;
    lines_init(&l);
    gpul_buf_init(&out, 4);
    assert_int_equal(lines_feed(&l, &out, "[0] ", (const uint8_t *)"abc\n", 4),
                     GPUL_ELIMIT);
    lines_release(&l);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
