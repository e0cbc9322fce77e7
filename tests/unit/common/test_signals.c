/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/signals.h"

/* Number and name; the number alone for real-time signals and for what is no
 * signal at all. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        uint32_t number;
        const char *expected;
    } rows[] = {
        {1, "signal 1 (SIGHUP)"},
        {9, "signal 9 (SIGKILL)"},
        {11, "signal 11 (SIGSEGV)"},
        {25, "signal 25 (SIGXFSZ)"},
        {40, "signal 40"},
        {0, "signal 0"},
        {UINT32_MAX, "signal 4294967295"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[GPUL_SIGNAL_TEXT_BYTES];
        assert_string_equal(gpul_format_signal(text, rows[i].number),
                            rows[i].expected);
    }
}

/* As users write them. */
static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t number; /* 0: refused */
    } rows[] = {
        {"10", 10},      {"USR1", 10},       {"SIGUSR1", 10}, {"usr1", 10},
        {"sigterm", 15}, {"CHLD", 17},       {"1", 1},        {"64", 64},
        {"34", 34},      {"RTMIN", 34},      {"RTMIN+3", 37}, {"rtmin+30", 64},
        {"RTMAX", 64},   {"SIGRTMAX-1", 63}, {"0", 0},        {"65", 0},
        {"32", 0},       {"33", 0},          {"-1", 0},       {"", 0},
        {"SIG", 0},      {"USR", 0},         {"USR1 ", 0},    {"RTMIN-1", 0},
        {"RTMIN+31", 0}, {"RTMAX+1", 0},     {"RTMIN+", 0},   {"SIG10", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpul_error err = {0};
        uint32_t number = 0;
        int rc = gpul_parse_signal(&number, rows[i].text, &err);
        assert_int_equal(rc == 0, rows[i].number != 0);
        assert_int_equal(number, rows[i].number);
    }
    struct gpul_error err = {0};
    uint32_t number;
    gpul_parse_signal(&number, "USR3", &err);
    assert_string_equal(err.text, "\"USR3\" is no signal; use a name or "
                                  "number such as USR1 or 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
