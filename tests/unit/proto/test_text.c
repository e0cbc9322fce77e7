/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Which kinds allow a text: bits 1, 2, 4 for NAME, LINE, LINES. */
static void test_kinds(void **state)
{
    (void)state;
    const struct {
        const char *text;
        unsigned kinds;
    } cases[] = {
        {"", 7},
        {"node-7.example:1%eth0", 7},
        {"~!", 7},
        {"two words", 6},
        {"a\tb\nc", 4},
        {"a\rb", 0},
        {"\x1b[31m", 0},
        {"\x7f", 0},
        {"\x01", 0},
        {"\xc3\xb6", 6},         /* o with two dots */
        {"\xe2\x82\xac", 6},     /* euro sign */
        {"\xf0\x9f\x9a\x80", 6}, /* four bytes */
        {"\xc2\x9b", 0},         /* CSI, a control character of 8 bits */
        {"\xc2\xa0", 6},         /* the first behind those */
        {"\x80", 0},             /* a continuation alone */
        {"\xc3", 0},             /* cut off */
        {"\xe2\x82", 0},         /* cut off */
        {"\xf0\x9f\x9a", 0},     /* cut off */
        {"\xc0\xaf", 0},         /* a slash in two bytes */
        {"\xc1\xbf", 0},         /* never begins a character */
        {"\xe0\x80\xaf", 0},     /* a slash in three */
        {"\xe0\xa0\x80", 6},     /* the lowest of three */
        {"\xed\x9f\xbf", 6},     /* the last before the surrogates */
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xee\x80\x80", 6},     /* the first behind them */
        {"\xf0\x8f\xbf\xbf", 0}, /* three bytes' worth in four */
        {"\xf4\x8f\xbf\xbf", 6}, /* U+10FFFF */
        {"\xf4\x90\x80\x80", 0}, /* one more */
        {"\xf5\x80\x80\x80", 0}, /* never begins a character */
        {"\xe2\x28\xa1", 0},     /* the second byte is none */
        {"\xe2\x82\x28", 0},     /* nor the third */
        {"\xf0\x9f\x9a\x28", 0}, /* nor the fourth */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const enum gpul_text_kind kinds[] = {GPUL_TEXT_NAME, GPUL_TEXT_LINE,
                                             GPUL_TEXT_LINES};
        unsigned got = 0;
        for (unsigned k = 0; k < 3; k++) {
            got |= gpul_text_is_valid(cases[i].text, kinds[k]) ? 1u << k : 0;
        }
        if (got != cases[i].kinds) {
            fail_msg("case %zu: kinds %u, not %u", i, got, cases[i].kinds);
        }
    }
}

/* Cleaning leaves good text alone, replaces what may not stand byte by byte,
 * and never cuts a character. */
static void test_clean(void **state)
{
    (void)state;
    const struct {
        const char *in;
        size_t bytes_max;
        const char *out;
    } cases[] = {
        {"/bin/tr\xe4n: No such file", 100, "/bin/tr?n: No such file"},
        {"a\x1b[2J\r\n\tb", 100, "a?[2J?\n\tb"},
        {"\xe2\x82\xac", 100, "\xe2\x82\xac"},
        {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
        {"\xe2\x82\xac", 2, ""},
        {"ab\xe2\x82\xac", 4, "ab"},
        {"\xe2\x82", 100, "??"},
        {"abc", 3, "abc"},
        {"abcd", 3, "abc"},
        {"abc", 0, ""},
        {"", 0, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        strcpy(text, cases[i].in);
        gpul_text_clean(text, cases[i].bytes_max);
        assert_string_equal(text, cases[i].out);
        assert_true(gpul_text_is_valid(text, GPUL_TEXT_LINES));
    }
}

/* On one line nothing moves to the next, or to the next column. */
static void test_clean_line(void **state)
{
    (void)state;
    char text[] = "a\nb\tc \xc3\xb6\x1b[2J";
    gpul_text_clean_line(text, sizeof(text));
    assert_string_equal(text, "a?b?c \xc3\xb6?[2J");
    gpul_text_clean_line(text, 3);
    assert_string_equal(text, "a?b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_clean_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
