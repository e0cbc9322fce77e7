/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/stats.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance)) {
        fail_msg("%.9f is not within %.9f of %.9f", actual, tolerance,
                 expected);
    }
}

/* Computed by an independent implementation (numpy and its defaults). */
static void test_summary(void **state)
{
    (void)state;
    double values[] = {2.5, 9.75, -1.0, 4.0, 4.25, 100.0, 3.0, 5.5};
    struct gpul_summary s;
    double variation;
    assert_true(gpul_summarize(&s, values, COUNT(values)));
    assert_int_equal(s.count, 8);
    assert_int_equal(s.left_out, 0);
    assert_near(s.min, -1, 0);
    assert_near(s.max, 100, 0);
    assert_near(s.mean, 16, 1e-12);
    assert_near(s.median, 4.125, 0);
    assert_near(s.mad, 1.5, 1e-12);
    assert_near(s.deviation, 34.07476024441384, 1e-9);
    assert_near(s.p95, 68.4125, 1e-9);
    assert_near(s.p99, 93.6825, 1e-9);
    assert_true(gpul_variation(&variation, &s));
    assert_near(variation, 2.129672515275865, 1e-9);
}

/* What is no measurement is left out and counted, and of nothing comes
 * nothing. */
static void test_not_finite(void **state)
{
    (void)state;
    double values[] = {NAN, 3, INFINITY, 1, -INFINITY, 2, NAN};
    double nothing[] = {NAN, INFINITY};
    double median = 7;
    struct gpul_summary s;
    struct gpul_interval interval = {7, 7};
    assert_true(gpul_summarize(&s, values, COUNT(values)));
    assert_int_equal(s.count, 3);
    assert_int_equal(s.left_out, 4);
    assert_near(s.median, 2, 0);
    assert_near(s.max, 3, 0);
    assert_false(gpul_summarize(&s, nothing, COUNT(nothing)));
    assert_int_equal(s.left_out, 2);
    assert_near(s.median, 0, 0);
    assert_false(gpul_median(&median, nothing, COUNT(nothing)));
    assert_near(median, 0, 0);
    assert_false(gpul_median_interval(&interval, nothing, 2, 1));
    assert_near(interval.high, 0, 0);
    assert_false(gpul_median_interval(&interval, NULL, 0, 1));
    assert_false(gpul_summarize(&s, NULL, 0));
    assert_false(gpul_quantile(&median, values, 0, 0.5));
    assert_false(gpul_quantile(&median, values, 3, NAN));
    assert_false(gpul_quantile(&median, values, 3, 1.01));
}

static void test_variation_needs_two_and_a_mean(void **state)
{
    (void)state;
    double one[] = {5};
    double around_zero[] = {-1, 1};
    double variation = 7;
    struct gpul_summary s;
    gpul_summarize(&s, one, 1);
    assert_near(s.p99, 5, 0);
    assert_false(gpul_variation(&variation, &s));
    gpul_summarize(&s, around_zero, 2);
    assert_false(gpul_variation(&variation, &s));
    assert_near(variation, 0, 0);
}

static void test_edges_of_quantiles(void **state)
{
    (void)state;
    const double sorted[] = {1, 2, 4, 8};
    double value;
    assert_true(gpul_quantile(&value, sorted, 4, 0));
    assert_near(value, 1, 0);
    assert_true(gpul_quantile(&value, sorted, 4, 1));
    assert_near(value, 8, 0);
    assert_true(gpul_quantile(&value, sorted, 4, 0.5));
    assert_near(value, 3, 1e-12);
    assert_true(gpul_quantile(&value, sorted, 4, 0.25));
    assert_near(value, 1.75, 1e-12);
    double two[] = {1, 3};
    struct gpul_summary s;
    gpul_summarize(&s, two, 2);
    assert_near(s.deviation, sqrt(2), 1e-12);
}

/* Computed by an independent implementation (scipy). */
static void test_student(void **state)
{
    (void)state;
    static const struct {
        size_t freedom;
        double expected;
    } rows[] = {{1, 12.7062}, {2, 4.3027},  {10, 2.2281},  {25, 2.0595},
                {26, 2.0555}, {30, 2.0423}, {120, 1.9799}, {1000, 1.9623}};
    assert_near(gpul_student_95(0), 0, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_near(gpul_student_95(rows[i].freedom), rows[i].expected, 6e-4);
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The MAD that is merged from two ends is that of the definition, with and
 * without values that are the same. */
static void test_mad_by_definition(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 11);
    for (int round = 0; round < 5000; round++) {
        double values[40];
        double distances[40];
        size_t n = 1 + gpul_rng_below(&rng, COUNT(values));
        uint64_t different = 1 + gpul_rng_below(&rng, 60);
        for (size_t i = 0; i < n; i++) {
            values[i] = (double)gpul_rng_below(&rng, different) - 20;
        }
        struct gpul_summary s;
        gpul_summarize(&s, values, n);
        for (size_t i = 0; i < n; i++) {
            distances[i] = fabs(values[i] - s.median);
        }
        qsort(distances, n, sizeof(double), compare);
        assert_near(s.mad, (distances[(n - 1) / 2] + distances[n / 2]) / 2,
                    1e-12);
    }
}

/* The same seed, the same interval; within the values; about as wide as
 * theory has it (1.2533 sigma / sqrt n for the median). */
static void test_median_interval(void **state)
{
    (void)state;
    double values[200];
    struct gpul_rng rng;
    struct gpul_interval first;
    struct gpul_interval again;
    gpul_rng_init(&rng, 3);
    for (size_t i = 0; i < COUNT(values); i++) {
        values[i] = 0;
        for (int k = 0; k < 12; k++) {
            values[i] += (double)gpul_rng_below(&rng, 1000001) / 1e6;
        }
    }
    assert_true(gpul_median_interval(&first, values, COUNT(values), 5));
    assert_true(gpul_median_interval(&again, values, COUNT(values), 5));
    assert_memory_equal(&first, &again, sizeof first);
    assert_true(first.low <= 6 && first.high >= 6);
    assert_near(first.high - first.low, 2 * 1.96 * 1.2533 / sqrt(200), 0.12);

    double three[] = {10, 30, 20};
    assert_true(gpul_median_interval(&first, three, 3, 5));
    assert_near(first.low, 10, 0);
    assert_near(first.high, 30, 0);
    assert_near(three[1], 30, 0);
    assert_true(gpul_median_interval(&first, three, 1, 5));
    assert_near(first.high - first.low, 0, 0);
}

/* The rule of one node among its peers. */
static void test_peer_bounds(void **state)
{
    (void)state;
    struct gpul_interval bounds = {7, 7};
    double three[] = {100, 100, 50};
    assert_false(gpul_peer_bounds(&bounds, three, 3));
    assert_near(bounds.low, 0, 0);

    /* MAD 0: five percent of the median. */
    double alike[] = {100, 94.9, 100, 100, 100};
    assert_true(gpul_peer_bounds(&bounds, alike, COUNT(alike)));
    assert_near(bounds.low, 95, 1e-12);
    assert_near(bounds.high, 105, 1e-12);

    /* MAD 10 of median 100: 3.5 * 1.4826 * 10. */
    double spread[] = {80, 90, 100, 110, 120};
    assert_true(gpul_peer_bounds(&bounds, spread, COUNT(spread)));
    assert_near(bounds.low, 100 - 51.891, 1e-9);
    assert_near(bounds.high, 100 + 51.891, 1e-9);

    /* A value that is not there is no peer. */
    double gone[] = {100, NAN, 100, 100};
    assert_false(gpul_peer_bounds(&bounds, gone, COUNT(gone)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_variation_needs_two_and_a_mean),
        cmocka_unit_test(test_edges_of_quantiles),
        cmocka_unit_test(test_student),
        cmocka_unit_test(test_mad_by_definition),
        cmocka_unit_test(test_median_interval),
        cmocka_unit_test(test_peer_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
