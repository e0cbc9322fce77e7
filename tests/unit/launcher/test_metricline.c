/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/metricline.h"

static void test_label(void **state)
{
    (void)state;
    uint32_t rank;
    const char *rest;
    assert_true(metricline_label(&rank, &rest, "[12] loss 3"));
    assert_int_equal(rank, 12);
    assert_string_equal(rest, "loss 3");
    assert_true(metricline_label(&rank, &rest, "[0]"));
    assert_string_equal(rest, "");
    assert_true(metricline_label(&rank, &rest, "[0]   x"));
    assert_string_equal(rest, "  x");
    static const char *const none[] = {
        "",        "gpulaunch: x", "[x] 3",         "[-1]",  "[1",
        "[1 2] x", "[]",           "[99999999999]", " [1] x"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(metricline_label(&rank, &rest, none[i]));
    }
}

static void test_number(void **state)
{
    (void)state;
    double value;
    const char *rest;
    assert_true(metricline_number(&value, &rest, " 12.5  images/s"));
    assert_true(value == 12.5);
    assert_string_equal(rest, "images/s");
    assert_true(metricline_number(&value, NULL, "1e3"));
    assert_true(value == 1000);
    assert_true(metricline_number(&value, NULL, ".5"));
    static const char *const none[] = {"",    "x",     "-1", "nan",
                                       "inf", "1e999", ".",  "images 3"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(metricline_number(&value, NULL, none[i]));
    }
}

/* Lines of ranks come mixed; the first of three or more is warm-up. */
static void test_settle(void **state)
{
    (void)state;
    struct metricline_figure figures[] = {
        {3, 900}, {1, 7}, {3, 10}, {3, 30}, {1, 9}, {3, 20},
    };
    assert_int_equal(metricline_settle(figures, 6), 2);
    assert_int_equal(figures[0].rank, 1);
    assert_true(figures[0].value == 8);
    assert_int_equal(figures[1].rank, 3);
    assert_true(figures[1].value == 20);
    assert_int_equal(metricline_settle(figures, 0), 0);
}

static void test_order_is_kept(void **state)
{
    (void)state;
    enum { EACH = 100 };
    struct metricline_figure figures[2 * EACH];
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        figures[i] = (struct metricline_figure){i % 2, i < 2 ? 1e9 : 5};
    }
    figures[2 * EACH - 1].value = 1e9;
    assert_int_equal(metricline_settle(figures, 2 * EACH), 2);
    assert_true(figures[0].value == 5 && figures[1].value == 5);
}

static void check_sum(const struct metricline_figure *figures, size_t count,
                      uint32_t ranks, enum scaleplan_figures whose,
                      double expected, bool is_job)
{
    struct metricline_total total;
    assert_int_equal(metricline_sum(&total, figures, count, ranks, whose, NULL),
                     0);
    assert_true(total.value == expected);
    assert_int_equal(total.is_job, is_job);
}

static void test_sum(void **state)
{
    (void)state;
    static const struct metricline_figure two[] = {{0, 5}, {2, 3}};
    static const struct metricline_figure none[] = {{0, 0}};
    struct metricline_total total;
    struct gpul_error err = {0};
    check_sum(two, 2, 2, SCALEPLAN_FIGURES_AUTO, 8, false);
    check_sum(two, 1, 4, SCALEPLAN_FIGURES_AUTO, 5, true);
    check_sum(two, 1, 1, SCALEPLAN_FIGURES_AUTO, 5, false);
    check_sum(two, 2, 4, SCALEPLAN_FIGURES_RANK, 8, false);
    check_sum(two, 2, 4, SCALEPLAN_FIGURES_JOB, 3, true);
    check_sum(none, 1, 1, SCALEPLAN_FIGURES_AUTO, 0, false);
    assert_int_equal(metricline_sum(&total, two, 2, 2, 0, NULL), 0);
    assert_int_equal(total.slowest, 2);
    assert_int_equal(metricline_sum(&total, two, 2, 4, 0, &err), GPUL_EINVAL);
    assert_string_equal(
        err.text, "2 of 4 ranks told a figure (0,2): is it their own, or that "
                  "of the whole job? --metric-of rank or --metric-of job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label),  cmocka_unit_test(test_number),
        cmocka_unit_test(test_settle), cmocka_unit_test(test_order_is_kept),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
