/* SPDX-License-Identifier: Apache-2.0
 *
 * Each language's own characters. That real readers get the same back is
 * shown by tests/e2e/manifest.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "launcher/quoting.h"

enum { BYTES_MAX = 1 << 12 };

struct pair {
    const char *text;
    const char *quoted;
};

static void test_shell(void **state)
{
    (void)state;
    static const struct pair pairs[] = {
        {"", "''"},
        {"plain/./a-b_c@d%e:f,g=h", "plain/./a-b_c@d%e:f,g=h"},
        {"=a", "'=a'"},
        {"~", "'~'"},
        {"a b", "'a b'"},
        {"$(id)`", "'$(id)`'"},
        {"it's", "'it'\\''s'"},
        {"a\nb", "$'a\\012b'"},
        {"'\\\t", "$'\\'\\\\\\011'"},
        {"\xff\x31", "$'\\3771'"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct gpul_buf out;
        gpul_buf_init(&out, BYTES_MAX);
        assert_int_equal(quoting_shell(&out, pairs[i].text), 0);
        assert_string_equal(gpul_buf_text(&out), pairs[i].quoted);
        gpul_buf_release(&out);
    }
}

/* The shells' own reading is in tests/e2e/sshusers.sh. */
static void test_any_shell(void **state)
{
    (void)state;
    static const struct pair pairs[] = {
        {"", "''"},
        {"plain/$a b`c`\"~*", "'plain/$a b`c`\"~*'"},
        {"it's", "'it'\\''s'"},
        {"a!\\!", "'a'\\!\\\\\\!"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct gpul_buf out;
        gpul_buf_init(&out, BYTES_MAX);
        assert_int_equal(quoting_any_shell(&out, pairs[i].text), 0);
        assert_string_equal(gpul_buf_text(&out), pairs[i].quoted);
        gpul_buf_release(&out);
    }
}

static void check_yaml(const struct pair *pair, enum quoting_dollar dollar)
{
    struct gpul_buf out;
    gpul_buf_init(&out, BYTES_MAX);
    assert_int_equal(quoting_yaml(&out, pair->text, dollar, NULL), 0);
    assert_string_equal(gpul_buf_text(&out), pair->quoted);
    gpul_buf_release(&out);
}

static void test_yaml(void **state)
{
    (void)state;
    static const struct pair pairs[] = {
        {"", "\"\""},
        {"no", "\"no\""},
        {"a\"\\b", "\"a\\\"\\\\b\""},
        {"\n\t\r\x7f", "\"\\n\\t\\x0D\\x7F\""},
        {"\xc3\xa9", "\"\xc3\xa9\""},
        {"\xc2\x85", "\"\\x85\""},
        {"\xe2\x80\xa8", "\"\\u2028\""},
        {"\xef\xbb\xbf", "\"\\uFEFF\""},
        {"\xf0\x9f\x98\x80", "\"\\U0001F600\""},
        {"$(A) $$ $B $", "\"$(A) $$ $B $\""},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        check_yaml(&pairs[i], QUOTING_DOLLAR_PLAIN);
    }
    static const struct pair kubernetes = {"$(A) $$(B) $$ $C ${D} $",
                                           "\"$$(A) $$$$(B) $$$ $C ${D} $\""};
    static const struct pair compose = {"$(A) $$ $C $",
                                        "\"$$(A) $$$$ $$C $$\""};
    check_yaml(&kubernetes, QUOTING_DOLLAR_KUBERNETES);
    check_yaml(&compose, QUOTING_DOLLAR_COMPOSE);
}

/* What is no UTF-8 is refused, with its place. */
static void test_yaml_refuses(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "ab\xff",     "ab\xc3",         "ab\xc3(",
        "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80",
        "ab\xe2\x80", "ab\x80",         "ab\xf8\x88\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gpul_buf out;
        struct gpul_error err = {0};
        gpul_buf_init(&out, BYTES_MAX);
        assert_int_equal(
            quoting_yaml(&out, texts[i], QUOTING_DOLLAR_PLAIN, &err),
            GPUL_EINVAL);
        assert_non_null(strstr(err.text, "byte 3 of"));
        gpul_buf_release(&out);
    }
}

static void test_hcl(void **state)
{
    (void)state;
    static const struct pair pairs[] = {
        {"", "\"\""},
        {"a\"\\b", "\"a\\\"\\\\b\""},
        {"${x} %{y} $z $", "\"$${x} %%{y} $z $\""},
        {"\n\x01", "\"\\u000A\\u0001\""},
    };
    struct gpul_buf out;
    struct gpul_error err = {0};
    gpul_buf_init(&out, BYTES_MAX);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        gpul_buf_clear(&out);
        assert_int_equal(quoting_hcl(&out, pairs[i].text, NULL), 0);
        assert_string_equal(gpul_buf_text(&out), pairs[i].quoted);
    }
    assert_int_equal(quoting_hcl(&out, "e\xcc\x81", &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, "byte 2 of"));
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shell), cmocka_unit_test(test_any_shell),
        cmocka_unit_test(test_yaml),  cmocka_unit_test(test_yaml_refuses),
        cmocka_unit_test(test_hcl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
