/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "launcher/latfit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance)) {
        fail_msg("%.9g is not within %.3g of %.9g", actual, tolerance,
                 expected);
    }
}

static double uniform(struct gpul_rng *rng)
{
    return (double)(gpul_rng_next(rng) >> 11) / 9007199254740992.0;
}

struct truth {
    double c0;
    double c1;
    double per_byte;
    enum latfit_growth growth;
};

static double time_of(const struct truth *t, uint32_t ranks, double bytes)
{
    double factor;
    double growth = t->growth == LATFIT_LOG ? log2(ranks) : ranks - 1.0;
    gpul_busbw_factor(&factor, GPUL_ALL_REDUCE, ranks);
    return t->c0 + t->c1 * growth + t->per_byte * factor * bytes;
}

enum { POINTS = 4 * 6 };

/* 3, 4, 6 and 8 ranks with 64 KiB to 64 MiB each, and even noise. */
static void make_points(struct latfit_point *points, const struct truth *t,
                        double noise, struct gpul_rng *rng)
{
    static const uint32_t ranks[] = {3, 4, 6, 8};
    for (size_t i = 0; i < POINTS; i++) {
        uint32_t n = ranks[i / 6];
        double bytes = 65536 * pow(4, (double)(i % 6));
        points[i] = (struct latfit_point){
            n, bytes,
            time_of(t, n, bytes) * (1 + noise * (2 * uniform(rng) - 1))};
    }
}

/* The model that made the points is chosen and its constants come back; what
 * it says of four times the ranks is right. */
static void test_returns_what_was_put_in(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 1);
    for (int round = 0; round < 500; round++) {
        struct truth t = {pow(10, -5 + uniform(&rng)),
                          pow(10, -5 + uniform(&rng)),
                          pow(10, -11 + 2 * uniform(&rng)),
                          (enum latfit_growth)gpul_rng_below(&rng, 2)};
        struct latfit_point points[POINTS];
        struct latfit_nodes fit;
        struct gpul_estimate estimate;
        make_points(points, &t, 0, &rng);
        assert_int_equal(
            latfit_nodes_make(&fit, points, POINTS, GPUL_ALL_REDUCE, NULL), 0);
        assert_int_equal(fit.chosen, t.growth);
        const struct latfit_model *m = &fit.models[fit.chosen];
        assert_near(m->c0 / t.c0, 1, 1e-6);
        assert_near(m->c1 / t.c1, 1, 1e-6);
        assert_near(m->per_byte / t.per_byte, 1, 1e-6);
        assert_int_equal(latfit_nodes_predict(&estimate, &fit, 32, 1e9, NULL),
                         0);
        assert_near(estimate.value / time_of(&t, 32, 1e9), 1, 1e-6);
        assert_near(estimate.extrapolation, 1e9 / (65536 * 1024), 1e-6);
    }
}

/* With noise, whichever model was taken: what was not measured lies in the
 * interval, since it has both. */
static void test_interval_has_the_truth(void **state)
{
    (void)state;
    struct gpul_rng rng;
    int inside = 0;
    int wider = 0;
    const int rounds = 1000;
    gpul_rng_init(&rng, 2);
    for (int round = 0; round < rounds; round++) {
        struct truth t = {2e-5, 2e-5, 1e-10,
                          (enum latfit_growth)gpul_rng_below(&rng, 2)};
        struct latfit_point points[POINTS];
        struct latfit_nodes fit;
        struct gpul_estimate near;
        struct gpul_estimate far;
        make_points(points, &t, 0.05, &rng);
        assert_int_equal(
            latfit_nodes_make(&fit, points, POINTS, GPUL_ALL_REDUCE, NULL), 0);
        assert_int_equal(latfit_nodes_predict(&near, &fit, 8, 1 << 20, NULL),
                         0);
        assert_int_equal(latfit_nodes_predict(&far, &fit, 64, 1 << 20, NULL),
                         0);
        double truth = time_of(&t, 64, 1 << 20);
        inside += far.interval.low <= truth && truth <= far.interval.high;
        wider += far.interval.high / far.interval.low >
                 near.interval.high / near.interval.low;
        assert_near(far.extrapolation, 8, 1e-9);
        assert_near(near.extrapolation, 1, 1e-9);
    }
    assert_true(inside > 0.97 * rounds);
    assert_int_equal(wider, rounds);
}

static void assert_refused(int status, struct gpul_error *err, const char *part)
{
    assert_int_equal(status, GPUL_EINVAL);
    if (strstr(err->text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
    }
    *err = (struct gpul_error){0};
}

static void test_refusals(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct gpul_estimate estimate;
    struct latfit_nodes fit;
    struct latfit_point points[] = {
        {4, 1e4, 1e-5}, {4, 1e6, 1e-4}, {4, 1e7, 1e-3}, {4, 1e8, 1e-2}};
    assert_refused(latfit_nodes_make(&fit, points, 3, GPUL_ALL_REDUCE, &err),
                   &err, "3 points");
    assert_refused(latfit_nodes_make(&fit, points, 4, GPUL_ALL_REDUCE, &err),
                   &err, "two counts");
    points[3].ranks = 8;
    assert_refused(
        latfit_nodes_make(&fit, points, 4, (enum gpul_collective)99, &err),
        &err, "has no busbw");
    points[2].seconds = -1;
    assert_refused(latfit_nodes_make(&fit, points, 4, GPUL_ALL_REDUCE, &err),
                   &err, "point 2");
    points[2].seconds = 1;
    points[2].ranks = 8;
    assert_int_equal(latfit_nodes_make(&fit, points, 4, GPUL_ALL_REDUCE, &err),
                     0);
    assert_refused(latfit_nodes_predict(&estimate, &fit, 16, 1e6, &err), &err,
                   "no prediction: the fit is up to");
    assert_refused(latfit_nodes_predict(&estimate, &fit, 1, 1e6, &err), &err,
                   "1 rank)");
    assert_true(estimate.value == 0);
    assert_string_equal(latfit_growth_name(LATFIT_LOG), "log2 n");
    assert_string_equal(latfit_growth_name(LATFIT_RANKS), "n - 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns_what_was_put_in),
        cmocka_unit_test(test_interval_has_the_truth),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
