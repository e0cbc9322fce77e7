/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "launcher/escapes.h"

enum { OUT_BYTES_MAX = 1 << 20 };

#define ESC "\x1b"

static const uint8_t *bytes_of(const char *text)
{
    return (const uint8_t *)text;
}

/* Cut in two at `cut`, then every byte by itself: the same comes out. */
static void check(const char *text, size_t cut, const char *expected)
{
    struct escapes e;
    struct gpul_buf out;
    size_t n = strlen(text);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    escapes_init(&e);
    assert_int_equal(escapes_feed(&e, &out, bytes_of(text), cut), 0);
    assert_int_equal(escapes_feed(&e, &out, bytes_of(text) + cut, n - cut), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_clear(&out);
    escapes_init(&e);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(escapes_feed(&e, &out, bytes_of(text) + i, 1), 0);
    }
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

static void test_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"plain\ttext\r\n", "plain\ttext\r\n"},
        /* colours stay */
        {ESC "[31mred" ESC "[0m", ESC "[31mred" ESC "[0m"},
        {ESC "[m" ESC "[38;5;196mx", ESC "[m" ESC "[38;5;196mx"},
        {ESC "[38:2::1:2:3mx", ESC "[38:2::1:2:3mx"},
        /* everything else goes */
        {"a" ESC "[2Kb" ESC "[1;1Hc" ESC "[2Jd", "abcd"},
        {"a" ESC "[Ab" ESC "[10Cc", "abc"},
        {ESC "[?1049hx" ESC "[?1049l" ESC "[?25l", "x"},
        {ESC "[>4;2mx" ESC "[?4m" ESC "[0 mx" ESC "[!p", "xx"},
        {ESC "]0;title\x07x", "x"},
        {ESC "]0;title" ESC "\\x", "x"},
        {ESC "]8;;http://h" ESC "\\link" ESC "]8;;" ESC "\\.", "link."},
        {ESC "]52;c;Zm9v\x07", ""},
        {ESC "Pq#0;2" ESC "\\x" ESC "_apc" ESC "\\y" ESC "^pm" ESC "\\z",
         "xyz"},
        {ESC "cx" ESC "(0y" ESC "7z" ESC "=" ESC "#8", "xyz"},
        {ESC ESC "[31mx", ESC "[31mx"},
        {ESC "[" ESC "[1mx", ESC "[1mx"},
        {ESC "]t" ESC "[31mx", ESC "[31mx"},
        /* control characters */
        {"a\x07"
         "b\x08"
         "c\x0b"
         "d\x0c"
         "e\x0e"
         "f\x0f"
         "g\x7f",
         "abcdefg"},
        {ESC "[3\x18"
             "1mx",
         "1mx"},
        {ESC "]0;t\x1ax", "x"},
        /* what is broken off does not swallow the next line */
        {ESC "]0;title\nline\n", "\nline\n"},
        {ESC "[31\nline\n", "\nline\n"},
        {ESC "\nline", "\nline"},
        {ESC "P\rx", "\rx"},
        /* C1, as UTF-8 and bare */
        {"a\xc2\x9b"
         "31mb",
         "a" ESC "[31mb"},
        {"a\xc2\x9b"
         "2Jb\xc2\x85"
         "c",
         "abc"},
        {"\xc2\x9d"
         "0;t\xc2\x9c"
         "x",
         "x"},
        {"\xc2\x90"
         "t\x07x",
         "x"},
        {"a\x9b"
         "2J",
         "a?2J"},
        /* UTF-8 that holds such bytes is text */
        {"\xc3\x9b \xe2\x9b\x84 \xf0\x9f\x9b\xb0 \xc2\xa9",
         "\xc3\x9b \xe2\x9b\x84 \xf0\x9f\x9b\xb0 \xc2\xa9"},
        {"\xff\xfe\xc2", "\xff\xfe"},
        {"\xc2\n\xc2\xc2\xa9", "\xc2\n\xc2\xc2\xa9"},
        {"\xe2\x9b" ESC "[31mx", "\xe2\x9b" ESC "[31mx"},
        {ESC "[3\xc3\xa9", "\xc3\xa9"},
        {ESC "]\xe2\x9c\x9ct\x07x", "x"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t cut = 0; cut <= strlen(cases[i].text); cut++) {
            check(cases[i].text, cut, cases[i].expected);
        }
    }
}

/* Parameters without end keep no memory and are no colour. */
static void test_long_parameters(void **state)
{
    (void)state;
    char text[512];
    memset(text, '1', sizeof(text));
    memcpy(text, ESC "[", 2);
    memcpy(text + sizeof(text) - 3, "mx", 3);
    check(text, 100, "x");
}

/* The worst that can be written: after any bytes, only colours are left of
 * what begins with ESC, and no control character but those three. */
static void check_harmless(const struct gpul_buf *out)
{
    for (size_t i = 0; i < out->used; i++) {
        uint8_t byte = out->data[i];
        if (byte == 0x1b) {
            assert_int_equal(out->data[++i], '[');
            while (out->data[++i] >= '0' && out->data[i] <= ';') {
                assert_true(i < out->used);
            }
            assert_int_equal(out->data[i], 'm');
        } else if (byte < ' ') {
            assert_true(byte == '\n' || byte == '\r' || byte == '\t');
        }
        assert_int_not_equal(byte, 0x7f);
        if (byte == 0xc2 && i + 1 < out->used) {
            assert_false(out->data[i + 1] >= 0x80 && out->data[i + 1] < 0xa0);
        }
    }
}

static void test_random_bytes(void **state)
{
    (void)state;
    static const uint8_t spicy[] = {0x1b, '[',  ']',  'm',  '3',  ';',
                                    '\n', '\r', 0x07, 0xc2, 0x9b, 0x9c,
                                    'P',  '\\', '?',  0xe2, 'x',  ' '};
    uint32_t seed = 1;
    struct gpul_buf out;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[300];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (seed >> 24) % 8 == 0
                           ? (uint8_t)(seed >> 8)
                           : spicy[(seed >> 10) % sizeof(spicy)];
        }
        struct escapes e;
        escapes_init(&e);
        gpul_buf_clear(&out);
        assert_int_equal(escapes_feed(&e, &out, bytes, sizeof(bytes)), 0);
        gpul_buf_append(&out, "", 1);
        out.used--;
        check_harmless(&out);
    }
    gpul_buf_release(&out);
}

static void test_no_room(void **state)
{
    (void)state;
    struct escapes e;
    struct gpul_buf out;
    escapes_init(&e);
    gpul_buf_init(&out, 4);
    assert_int_equal(escapes_feed(&e, &out, bytes_of("12345"), 5), GPUL_ELIMIT);
    gpul_buf_release(&out);
}

static void test_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
        size_t fits;
    } cases[] = {
        {"", 10, 0},
        {"abc", 10, 3},
        {"abc", 2, 2},
        {"abc", 0, 0},
        {"45%|\xe2\x96\x88\xe2\x96\x88|", 6, 10},
        {"\xe2\x96\x88", 0, 0},
        {ESC "[31mab" ESC "[0mc", 2, 11},
        {"\xe4\xb8\xad\xe6\x96\x87", 3, 3}, /* two wide characters */
        {"\xf0\x9f\x9a\x80x", 2, 4},
        {"\tx", 8, 1},
        {"\tx", 7, 0},
        {"\xff\xff\xff", 2, 2},
        {"\xe2\x96", 1, 2},
        {ESC "[3", 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;
        assert_int_equal(
            escapes_fit(bytes_of(text), strlen(text), cases[i].columns),
            cases[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_long_parameters),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
