/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rng.h"
#include "launcher/leastsq.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance)) {
        fail_msg("%.12g is not within %.3g of %.12g", actual, tolerance,
                 expected);
    }
}

static double uniform(struct gpul_rng *rng)
{
    return (double)(gpul_rng_next(rng) >> 11) / 9007199254740992.0;
}

/* Without noise the constants come back, over many orders of magnitude and
 * with zeroes among them. */
static void test_exact(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 1);
    for (int round = 0; round < 3000; round++) {
        double truth[3];
        struct leastsq_row rows[8];
        struct leastsq fit;
        for (size_t i = 0; i < 3; i++) {
            truth[i] = gpul_rng_below(&rng, 4) == 0
                           ? 0
                           : pow(10, 12 * uniform(&rng) - 6);
        }
        truth[0] += 1e-6;
        for (size_t r = 0; r < COUNT(rows); r++) {
            double n = (double)r + 1;
            rows[r] = (struct leastsq_row){{1, n - 1, n * n * (n - 1)}, 0};
            for (size_t i = 0; i < 3; i++) {
                rows[r].value += truth[i] * rows[r].terms[i];
            }
        }
        assert_true(leastsq_fit(&fit, rows, COUNT(rows), 3));
        assert_true(fit.error_max < 1e-6);
        for (size_t i = 0; i < 3; i++) {
            assert_true(fit.constants[i] >= 0);
        }
    }
}

/* A constant that would have to be negative is 0, and then the others are the
 * best that they can be: nearby ones are no better. */
static void test_bound_holds(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 2);
    for (int round = 0; round < 2000; round++) {
        struct leastsq_row rows[6];
        struct leastsq fit;
        for (size_t r = 0; r < COUNT(rows); r++) {
            rows[r] = (struct leastsq_row){{1, (double)r, 10 * uniform(&rng)},
                                           0.1 + uniform(&rng)};
        }
        assert_true(leastsq_fit(&fit, rows, COUNT(rows), 3));
        double best = fit.error_rms;
        for (int tries = 0; tries < 20; tries++) {
            double squares = 0;
            double other[3];
            for (size_t i = 0; i < 3; i++) {
                other[i] =
                    fmax(0, fit.constants[i] + 0.05 * (uniform(&rng) - 0.5));
            }
            for (size_t r = 0; r < COUNT(rows); r++) {
                double value = 0;
                for (size_t i = 0; i < 3; i++) {
                    value += other[i] * rows[r].terms[i];
                }
                squares += pow(value / rows[r].value - 1, 2);
            }
            assert_true(sqrt(squares / COUNT(rows)) >= best - 1e-12);
        }
    }
}

/* T = 2 + 3 x with relative errors of 10 % in turn; the covariance is that of
 * weighted regression, computed by an independent implementation. */
static void test_covariance(void **state)
{
    (void)state;
    struct leastsq_row rows[5];
    struct leastsq fit;
    for (size_t r = 0; r < COUNT(rows); r++) {
        double x = (double)r + 1;
        rows[r] = (struct leastsq_row){{1, x},
                                       (2 + 3 * x) * (r % 2 == 0 ? 1.1 : 0.9)};
    }
    assert_true(leastsq_fit(&fit, rows, COUNT(rows), 2));
    assert_near(fit.constants[0], 2.31775937553, 1e-9);
    assert_near(fit.constants[1], 2.87037504715, 1e-9);
    assert_near(fit.covariance[0][0], 0.883870397299, 1e-9);
    assert_near(fit.covariance[0][1], -0.33822557904, 1e-9);
    assert_near(fit.covariance[1][0], -0.33822557904, 1e-9);
    assert_near(fit.covariance[1][1], 0.175602567517, 1e-9);
}

static void test_not_determined(void **state)
{
    (void)state;
    struct leastsq fit;
    struct leastsq_row alike[] = {
        {{1, 2}, 3}, {{1, 2}, 4}, {{2, 4}, 9}, {{1, 2}, 3}};
    assert_false(leastsq_fit(&fit, alike, COUNT(alike), 2));
    assert_true(fit.constants[0] == 0 && fit.error_max == 0);
    assert_true(leastsq_fit(&fit, alike, COUNT(alike), 1));
    assert_false(leastsq_fit(&fit, alike, 1, 2));
    struct leastsq_row nothing[] = {{{1, 0}, 3}, {{1, 0}, 4}};
    assert_false(leastsq_fit(&fit, nothing, 2, 2));
    struct leastsq_row broken[] = {{{1, NAN}, 3}, {{1, 1}, NAN}};
    assert_false(leastsq_fit(&fit, broken, 2, 2));
    assert_false(leastsq_fit(&fit, broken, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_bound_holds),
        cmocka_unit_test(test_covariance),
        cmocka_unit_test(test_not_determined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
