/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "common/units.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Durations in every unit, with fractions, exact to the millisecond. */
static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t ms;
    } rows[] = {
        {"0", 0},
        {"90", 90000},
        {"90s", 90000},
        {"1500ms", 1500},
        {"5m", 300000},
        {"2h", 7200000},
        {"1.5h", 5400000},
        {"0.25", 250},
        {"1.0005s", 1000},
        {"2H", 7200000},
        {"4294967295ms", UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t ms = 1;
        struct gpul_error err = {0};
        assert_int_equal(gpul_parse_duration_ms(&ms, rows[i].text, &err), 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

/* What is no duration is refused with the forms, what is too long with the
 * bound. */
static void test_bad_durations(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",   "s",   "-1",     "+1",
                                        " 1", "1 s", "1.",     ".5",
                                        "1d", "1e3", "1.2.3s", "1.0000000001s"};
    static const char *const too_long[] = {"4294967296ms", "1194h",
                                           "99999999999999999999h"};
    struct gpul_error err;
    char expected[128];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        uint32_t ms = 1;
        err = (struct gpul_error){0};
        assert_int_equal(gpul_parse_duration_ms(&ms, wrong[i], &err),
                         GPUL_EINVAL);
        assert_int_equal(ms, 0);
        snprintf(expected, sizeof(expected),
                 "\"%s\" is not a duration; write 90, 90s, 1500ms, 5m or 1.5h",
                 wrong[i]);
        assert_string_equal(err.text, expected);
    }
    for (size_t i = 0; i < COUNT(too_long); i++) {
        uint32_t ms = 1;
        err = (struct gpul_error){0};
        assert_int_equal(gpul_parse_duration_ms(&ms, too_long[i], &err),
                         GPUL_EINVAL);
        snprintf(expected, sizeof(expected),
                 "\"%s\" is too long; at most 1193h (49 days)", too_long[i]);
        assert_string_equal(err.text, expected);
    }
}

/* Sizes are binary, whatever the spelling. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes; /* 0 with `fault` */
        const char *fault;
    } rows[] = {
        {"65536", 65536, NULL},
        {"8B", 8, NULL},
        {"64K", 65536, NULL},
        {"64k", 65536, NULL},
        {"64KiB", 65536, NULL},
        {"8M", 8u << 20, NULL},
        {"1GiB", 1u << 30, NULL},
        {"2T", 2ull << 40, NULL},
        {"1KB", 0,
         "\"1KB\" is not a size; write 65536, 64K, 64KiB, 8M or 1GiB"},
        {"1.5G", 0,
         "\"1.5G\" is not a size; write 65536, 64K, 64KiB, 8M or 1GiB"},
        {"", 0, "\"\" is not a size; write 65536, 64K, 64KiB, 8M or 1GiB"},
        {"99999999T", 0, "\"99999999T\" is too large a size"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 1;
        struct gpul_error err = {0};
        int rc = gpul_parse_size(&bytes, rows[i].text, &err);
        assert_int_equal(rc, rows[i].fault == NULL ? 0 : GPUL_EINVAL);
        assert_true(bytes == rows[i].bytes);
        assert_string_equal(err.text,
                            rows[i].fault == NULL ? "" : rows[i].fault);
    }
}

/* A count is a whole number within its bounds, and nothing else. */
static void test_counts(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "0", "5", "-1", "+2", "2 ", "", "2x", "two", "18446744073709551618"};
    uint32_t n = 9;
    assert_int_equal(gpul_parse_count(&n, "1", 1, 4, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(gpul_parse_count(&n, "4", 1, 4, NULL), 0);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct gpul_error err = {0};
        char expected[128];
        n = 9;
        assert_int_equal(gpul_parse_count(&n, wrong[i], 1, 4, &err),
                         GPUL_EINVAL);
        assert_int_equal(n, 0);
        snprintf(expected, sizeof(expected),
                 "\"%s\" is not a whole number from 1 to 4", wrong[i]);
        assert_string_equal(err.text, expected);
    }
}

/* Durations for people: two units at most, cut and never rounded up. */
static void test_format_duration(void **state)
{
    (void)state;
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "0 ms"},
        {850, "850 ms"},
        {1000, "1 s"},
        {12345, "12.3 s"},
        {59999, "59.9 s"},
        {60000, "1 min"},
        {90999, "1 min 30 s"},
        {300000, "5 min"},
        {3600000, "1 h"},
        {7800000, "2 h 10 min"},
        {UINT64_MAX, "5124095576030 h 25 min"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[32];
        gpul_format_duration(text, rows[i].ms);
        assert_string_equal(text, rows[i].text);
    }
}

/* Sizes for people, in the largest unit that is not below one. */
static void test_format_size(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {8, "8 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {256u << 20, "256 MiB"},
        {UINT64_MAX, "15.9 EiB"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[32];
        gpul_format_size(text, rows[i].bytes);
        assert_string_equal(text, rows[i].text);
    }
}

/* One of a thing is no plural; none of it is. */
static void test_plural(void **state)
{
    (void)state;
    assert_string_equal(gpul_plural(0), "s");
    assert_string_equal(gpul_plural(1), "");
    assert_string_equal(gpul_plural(2), "s");
    assert_string_equal(gpul_plural(UINT64_C(1) << 32 | 1), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_bad_durations),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_format_duration),
        cmocka_unit_test(test_format_size),
        cmocka_unit_test(test_plural),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
