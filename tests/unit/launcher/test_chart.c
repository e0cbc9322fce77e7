/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/chart.h"

enum { BYTES_MAX = 64 << 10 };

static struct gpul_buf out;

static int set_up(void **state)
{
    (void)state;
    gpul_buf_init(&out, BYTES_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gpul_buf_release(&out);
    return 0;
}

static void expect_figure(double figure, enum chart_unit unit, const char *text)
{
    gpul_buf_clear(&out);
    chart_figure(&out, figure, unit);
    assert_string_equal(gpul_buf_text(&out), text);
}

static void test_figures(void **state)
{
    (void)state;
    expect_figure(12.5e9, CHART_RATE, "12.5 GB/s");
    expect_figure(400e9, CHART_RATE, "400 GB/s");
    expect_figure(1.234e9, CHART_RATE, "1.23 GB/s");
    expect_figure(12.34e6, CHART_RATE, "0.0123 GB/s");
    expect_figure(0, CHART_RATE, "0 GB/s");
    expect_figure(0.803, CHART_PERCENT, "80 %");
    expect_figure(0.0123, CHART_PERCENT, "1.2 %");
    expect_figure(1048576, CHART_BYTES, "1 MiB");
    expect_figure(8, CHART_COUNT, "8");
    expect_figure(8.25, CHART_COUNT, "8.25");
    expect_figure((double)NAN, CHART_RATE, "unknown");
    expect_figure((double)INFINITY, CHART_COUNT, "unknown");
}

static void test_text_is_escaped(void **state)
{
    (void)state;
    chart_text(&out, "<b a=\"1\">&\x01\n");
    chart_text(&out, NULL);
    assert_string_equal(gpul_buf_text(&out),
                        "&lt;b a=&quot;1&quot;&gt;&amp;\xef\xbf\xbd\n");
}

static void draw(const double *x, const double *y, size_t count)
{
    struct chart_series series = {
        .label = "a<b", .x = x, .y = y, .count = count};
    struct chart chart = {
        .title = "t",
        .x_label = "nodes",
        .x_unit = CHART_COUNT,
        .y_unit = CHART_PERCENT,
        .series = &series,
        .series_count = 1,
    };
    gpul_buf_clear(&out);
    chart_draw(&out, &chart);
}

static size_t count_of(const char *part)
{
    size_t count = 0;
    const char *at = gpul_buf_text(&out);
    while ((at = strstr(at, part)) != NULL) {
        count++;
        at++;
    }
    return count;
}

static void test_points_are_where_they_belong(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4}, y[] = {1, 0.5, (double)NAN};
    draw(x, y, 3);
    /* from 76 to 680 by the logarithm, from 272 up to 16; the third is left
     * out, and the axis ends with the second */
    assert_int_equal(count_of("<circle"), 2);
    assert_int_equal(count_of("points=\"76.0,16.0 680.0,144.0 \""), 1);
    assert_int_equal(count_of("a&lt;b: 1, 100 %"), 1);
    assert_int_equal(count_of("a<b"), 0);
}

static void test_nothing_to_draw_is_said(void **state)
{
    (void)state;
    const double x[] = {1, 0}, y[] = {(double)NAN, 1};
    draw(x, y, 2);
    assert_int_equal(count_of("<svg"), 0);
    assert_int_equal(count_of("nothing was measured"), 1);
}

static void test_odd_figures_end(void **state)
{
    (void)state;
    const double x[] = {1e-300, 1e300, 3}, y[] = {0, 1e308, 1e-308};
    draw(x, y, 3);
    assert_int_equal(count_of("<circle"), 3);
    draw(x + 2, y, 1);
    assert_int_equal(count_of("<circle"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_figures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_text_is_escaped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_points_are_where_they_belong,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_to_draw_is_said, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_odd_figures_end, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
