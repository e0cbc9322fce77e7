/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/metric.h"

static int ends[2];

static int set_up(void **state)
{
    (void)state;
    return metric_open(ends);
}

static int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void put(const char *text)
{
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
}

static void expect(const char *expected)
{
    char text[GPUL_METRIC_BYTES_MAX + 1];
    metric_read(text, ends[0]);
    assert_string_equal(text, expected);
}

static void test_the_last_line_counts(void **state)
{
    (void)state;
    expect("");
    put("\n");
    expect("");
    put("1 images/s\n");
    expect("1 images/s");
    put("2 images/s\r\n\n");
    expect("2 images/s");
    put("3");
    expect("3");
}

static void test_what_it_says_is_harmless(void **state)
{
    (void)state;
    put("7\x1b[2J\xff images/s\n");
    expect("7?[2J? images/s");
}

static void test_a_long_line_is_cut(void **state)
{
    (void)state;
    char text[GPUL_METRIC_BYTES_MAX + 100];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    put(text);
    text[GPUL_METRIC_BYTES_MAX] = '\0';
    expect(text);
}

static void test_it_takes_so_much_and_no_more(void **state)
{
    (void)state;
    static const char line[] = "0123456789abcde\n"; /* 16 bytes */
    size_t lines = 0;
    while (write(ends[1], line, 16) == 16) {
        lines++;
    }
    assert_int_equal(errno, EPERM);
    assert_int_equal(lines, (64 << 10) / 16);
    expect("0123456789abcde");
}

static void test_both_are_closed_by_an_exec(void **state)
{
    (void)state;
    assert_true((fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(ends[1], F_GETFD) & FD_CLOEXEC) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_last_line_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_what_it_says_is_harmless, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_line_is_cut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_it_takes_so_much_and_no_more,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_both_are_closed_by_an_exec, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
