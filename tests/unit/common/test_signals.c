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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
