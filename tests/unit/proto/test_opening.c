/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "proto/limits.h"
#include "proto/opening.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int judge(enum gpul_stranger *kind, const char *bytes, size_t n)
{
    return gpul_opening_judge(kind, (const uint8_t *)bytes, n);
}

/* Nothing is judged by fewer bytes than tell it apart. */
static void test_too_few(void **state)
{
    (void)state;
    enum gpul_stranger kind;
    for (size_t n = 0; n < GPUL_OPENING_BYTES; n++) {
        assert_int_equal(judge(&kind, "GET / HTTP/1.1", n), 0);
        assert_int_equal(kind, GPUL_STRANGER_NONE);
    }
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        char bytes[10];
        enum gpul_stranger kind;
    } rows[] = {
        {"GET / HTT", GPUL_STRANGER_HTTP},
        {"POST /x H", GPUL_STRANGER_HTTP},
        {"PRI * HTT", GPUL_STRANGER_HTTP},
        {"OPTIONS /", GPUL_STRANGER_HTTP},
        {"SSH-2.0-O", GPUL_STRANGER_SSH},
        {"\0\0\1\0\x0a\1\2\3\4", GPUL_STRANGER_FRAMES},
        {"\0\0\1\0\x12\1\2\3\4", GPUL_STRANGER_GARBAGE},
        {"GETTING..", GPUL_STRANGER_GARBAGE},
        {"\r\n\r\n\r\n\r\n", GPUL_STRANGER_GARBAGE},
        {"\x16\3\5\1\0\1\0\0\xfc", GPUL_STRANGER_GARBAGE},
        {"\x16\2\1\1\0\1\0\0\xfc", GPUL_STRANGER_GARBAGE},
        {"\x17\3\3\1\0\1\0\0\xfc", GPUL_STRANGER_GARBAGE},
        {"\x15\3\1\0\2\2\x28\0", GPUL_STRANGER_GARBAGE},
        /* no handshake fits, or it is not of the record's size */
        {"\x16\3\1\0\3\1\0\0\0", GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\1\0\2\0\0\xfc", GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\1\0\1\0\0\xfb", GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\1\0\1\0\0\xfd", GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\1\0\1\1\0\xfc", GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\3\xfc\1\0\3\xf8", GPUL_STRANGER_LARGE},
        {"\x16\3\1\xff\xff\1\0\xff\xfb", GPUL_STRANGER_LARGE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum gpul_stranger kind;
        assert_int_equal(judge(&kind, rows[i].bytes, 9), -1);
        assert_int_equal(kind, rows[i].kind);
    }
}

/* A ClientHello in a record of its own, up to the bound; its size is known
 * from the header alone. */
static void test_hello(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int size;
    } rows[] = {
        {"\x16\3\1\1\0\1\0\0\xfc", 261},
        {"\x16\3\3\0\4\1\0\0\0", 9},
        {"\x16\3\1\3\xfb\1\0\3\xf7", 1024},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t n = GPUL_OPENING_BYTES; n <= 9; n++) {
            enum gpul_stranger kind;
            assert_int_equal(judge(&kind, rows[i].bytes, n), rows[i].size);
            assert_int_equal(kind, GPUL_STRANGER_NONE);
        }
    }
    assert_int_equal(GPUL_FIRST_RECORD_BYTES_MAX, 1024);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(gpul_stranger_words(GPUL_STRANGER_HTTP), "HTTP");
    assert_string_equal(gpul_stranger_words(GPUL_STRANGER_CLOSED),
                        "closed before it was known");
    assert_null(gpul_stranger_words(GPUL_STRANGER_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
