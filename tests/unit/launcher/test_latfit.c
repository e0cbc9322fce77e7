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
#define MIB (1024.0 * 1024)

enum { SIZES = 26 }; /* 8 B to 256 MiB */

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

/* Near to normal, of deviation 1. */
static double normal(struct gpul_rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += uniform(rng);
    }
    return sum;
}

static double factor_of(uint32_t ranks)
{
    double factor;
    gpul_busbw_factor(&factor, GPUL_ALL_REDUCE, ranks);
    return factor;
}

/* As published of 4 nodes with 8 GPUs each. */
static const struct {
    double mib;
    double busbw;
} published[] = {{1, 5.4},   {16, 64},    {128, 198},
                 {512, 327}, {1024, 362}, {16384, 381.8}};

static void published_points(struct latfit_point *points)
{
    for (size_t i = 0; i < COUNT(published); i++) {
        double bytes = published[i].mib * MIB;
        points[i] = (struct latfit_point){
            32, bytes, bytes * factor_of(32) / (published[i].busbw * 1e9)};
    }
}

/* Two points tell a tale that is wrong in between; the weighted fit through
 * all is less far off. */
static void test_published_by_lines(void **state)
{
    (void)state;
    struct latfit_point points[COUNT(published)];
    struct latfit_regime line;
    published_points(points);
    assert_int_equal(latfit_line(&line, points + 4, 2, NULL), 0);
    assert_near(line.a * 1e3, 0.318, 0.0005);
    assert_near(latfit_busbw_gbps(&line, factor_of(32)), 383, 0.5);
    assert_near(latfit_bytes_for(&line, 0.9) / 1e6, 566, 0.5);
    assert_near(latfit_bytes_for(&line, 0.5), line.a / line.b, 1);
    double at_128 = line.a + line.b * points[2].bytes;
    assert_near(at_128 / points[2].seconds - 1, -0.24, 0.005);

    assert_int_equal(latfit_line(&line, points, COUNT(points), NULL), 0);
    assert_near(line.a * 1e3, 0.398, 0.0005);
    assert_near(latfit_busbw_gbps(&line, factor_of(32)), 370, 0.5);
    assert_near(line.error_max, 0.16, 0.005);
}

/* Two regimes hold both halves within 3 %, and the last one says which size is
 * large enough. */
static void test_published_by_regimes(void **state)
{
    (void)state;
    struct latfit_point points[COUNT(published)];
    struct latfit fit;
    published_points(points);
    assert_int_equal(latfit_make(&fit, points, COUNT(points), NULL), 0);
    assert_int_equal(fit.regime_count, 2);
    assert_true(fit.error_max < 0.03);
    assert_true(fit.regimes[0].bytes_max == 128 * MIB);
    assert_true(latfit_large(&fit)->bytes_min == 512 * MIB);
    assert_near(latfit_busbw_gbps(latfit_large(&fit), factor_of(32)), 387, 0.5);
    assert_near(latfit_bytes_for(latfit_large(&fit), 0.9) / 1e6, 836, 1);
}

/* A doubling sweep of a line with relative noise. */
static void make_line(struct latfit_point *points, struct gpul_rng *rng,
                      double a, double b, double noise)
{
    for (size_t i = 0; i < SIZES; i++) {
        double bytes = pow(2, (double)i + 3);
        points[i] = (struct latfit_point){
            16, bytes, (a + b * bytes) * (1 + noise * normal(rng))};
    }
}

/* Known a and b come back within what the noise explains: over many draws the
 * errors are those that the covariance announces. */
static void test_returns_what_was_put_in(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct latfit_point points[SIZES];
    double squares[2] = {0, 0};
    const int rounds = 2000;
    gpul_rng_init(&rng, 4);
    for (int round = 0; round < rounds; round++) {
        double a = pow(10, -6 + 3 * uniform(&rng));
        double b = pow(10, -12 + 3 * uniform(&rng));
        double noise = pow(10, -4 + 2.7 * uniform(&rng));
        struct latfit_regime line;
        make_line(points, &rng, a, b, noise);
        assert_int_equal(latfit_line(&line, points, SIZES, NULL), 0);
        double off[2] = {line.a - a, line.b - b};
        for (int i = 0; i < 2; i++) {
            double deviation = sqrt(line.covariance[i][i]);
            assert_true(fabs(off[i]) < 8 * deviation);
            squares[i] += pow(off[i] / deviation, 2) / rounds;
        }
        assert_near(line.a / a, 1, 6 * noise);
    }
    /* Of Student's t with 24 degrees of freedom: 24 / 22. */
    assert_near(squares[0], 1.09, 0.15);
    assert_near(squares[1], 1.09, 0.15);
}

/* One line is left one, in 95 of 100 cases at least; the order of the points is
 * no matter. */
static void test_one_line_is_one_regime(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct latfit_point points[SIZES];
    struct latfit fit;
    int torn = 0;
    gpul_rng_init(&rng, 5);
    for (int round = 0; round < 200; round++) {
        make_line(points, &rng, 2e-5, 1e-10, 0.05 * uniform(&rng));
        assert_int_equal(latfit_make(&fit, points, SIZES, NULL), 0);
        torn += fit.regime_count > 1;
    }
    if (torn > 10) {
        fail_msg("%d of 200 lines were torn", torn);
    }
    make_line(points, &rng, 2e-5, 1e-10, 0);
    for (size_t i = 0; i < SIZES; i += 2) {
        struct latfit_point swapped = points[i];
        points[i] = points[SIZES - 1 - i];
        points[SIZES - 1 - i] = swapped;
    }
    assert_int_equal(latfit_make(&fit, points, SIZES, NULL), 0);
    assert_int_equal(fit.regime_count, 1);
    assert_near(fit.regimes[0].a, 2e-5, 1e-11);
    assert_true(fit.regimes[0].bytes_min == 8);
}

/* Two and three protocols, each with its own line: the breaks are found, and
 * the constants of each. */
static void test_finds_regimes(void **state)
{
    (void)state;
    static const double a[] = {8e-6, 3e-5, 4e-4};
    static const double b[] = {1e-9, 1.5e-10, 2.6e-11};
    struct gpul_rng rng;
    gpul_rng_init(&rng, 6);
    for (int round = 0; round < 100; round++) {
        size_t regimes = 2 + gpul_rng_below(&rng, 2);
        struct latfit_point points[SIZES];
        struct latfit fit;
        size_t from[] = {0, SIZES, SIZES};
        from[1] = 11 + gpul_rng_below(&rng, 3);
        from[2] = regimes == 3 ? 19 : SIZES;
        for (size_t i = 0; i < SIZES; i++) {
            size_t r = i < from[1] ? 0 : i < from[2] ? 1 : 2;
            double bytes = pow(2, (double)i + 3);
            points[i] = (struct latfit_point){
                16, bytes, (a[r] + b[r] * bytes) * (1 + 0.01 * normal(&rng))};
        }
        assert_int_equal(latfit_make(&fit, points, SIZES, NULL), 0);
        assert_int_equal(fit.regime_count, regimes);
        for (size_t r = 0; r < regimes; r++) {
            double begins = points[from[r]].bytes;
            assert_near(log2(fit.regimes[r].bytes_min / begins), 0, 1.01);
            assert_near(fit.regimes[r].a / a[r], 1, 0.15);
            assert_true(fit.regimes[r].points >= LATFIT_REGIME_POINTS_MIN);
        }
        assert_near(latfit_large(&fit)->b / b[regimes - 1], 1, 0.1);
    }
}

/* In 95 of 100 cases one more measurement lies in the interval, within the
 * sizes and beyond. */
static void test_prediction_interval(void **state)
{
    (void)state;
    static const double sizes[] = {64, 8192, 1 << 20, 1 << 28, 4294967296.0};
    struct gpul_rng rng;
    struct latfit_point points[SIZES];
    struct latfit fit;
    struct gpul_estimate estimate;
    int inside = 0;
    int all = 0;
    gpul_rng_init(&rng, 7);
    for (int round = 0; round < 400; round++) {
        make_line(points, &rng, 2e-5, 1e-10, 0.02);
        assert_int_equal(latfit_make(&fit, points, SIZES, NULL), 0);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            double truth =
                (2e-5 + 1e-10 * sizes[i]) * (1 + 0.02 * normal(&rng));
            assert_int_equal(latfit_predict(&estimate, &fit, sizes[i], NULL),
                             0);
            assert_true(estimate.interval.low <= estimate.value &&
                        estimate.value <= estimate.interval.high);
            assert_near(estimate.extrapolation, i < 4 ? 1 : 16, 1e-9);
            inside += estimate.interval.low <= truth &&
                      truth <= estimate.interval.high;
            all++;
        }
    }
    assert_near((double)inside / all, 0.95, 0.03);
}

/* Computed by an independent implementation (numpy): the interval has what the
 * constants vary, together, and what one measurement does by itself. */
static void test_prediction_by_numbers(void **state)
{
    (void)state;
    static const struct latfit_point points[] = {{8, 1e3, 1.1e-5},
                                                 {8, 1e4, 1.15e-5},
                                                 {8, 1e5, 2.1e-5},
                                                 {8, 1e6, 1.05e-4},
                                                 {8, 1e7, 1.1e-3}};
    static const struct {
        double bytes, value, low, high;
    } expected[] = {{1e3, 1.07901e-5, 8.36887e-6, 1.32114e-5},
                    {1e5, 2.08311e-5, 1.66403e-5, 2.50219e-5},
                    {1e8, 1.01531e-2, 7.85697e-3, 1.24492e-2}};
    struct latfit fit;
    struct gpul_estimate e;
    assert_int_equal(latfit_make(&fit, points, COUNT(points), NULL), 0);
    assert_near(fit.error_max, 0.068248, 1e-6);
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(latfit_predict(&e, &fit, expected[i].bytes, NULL), 0);
        assert_near(e.value / expected[i].value, 1, 1e-5);
        assert_near(e.interval.low / expected[i].low, 1, 1e-4);
        assert_near(e.interval.high / expected[i].high, 1, 1e-4);
    }
}

/* Without noise the breaks are exact, and a size between two regimes belongs
 * to the one that is nearer by factor. */
static void test_exact_regimes(void **state)
{
    (void)state;
    static const double a[] = {8e-6, 3e-5, 4e-4};
    static const double b[] = {1e-9, 1.5e-10, 2.6e-11};
    struct latfit_point points[SIZES];
    struct latfit fit;
    struct gpul_estimate e;
    for (size_t i = 0; i < SIZES; i++) {
        size_t r = i < 12 ? 0 : i < 19 ? 1 : 2;
        double bytes = pow(2, (double)i + 3);
        points[i] = (struct latfit_point){16, bytes, a[r] + b[r] * bytes};
    }
    assert_int_equal(latfit_make(&fit, points, SIZES, NULL), 0);
    assert_int_equal(fit.regime_count, 3);
    for (size_t r = 0; r < 3; r++) {
        assert_near(fit.regimes[r].a / a[r], 1, 1e-6);
        assert_near(fit.regimes[r].b / b[r], 1, 1e-6);
    }
    assert_true(fit.regimes[1].bytes_min == 32768);
    assert_true(fit.regimes[1].bytes_max == 2097152);
    const double below = 16384 * 1.4; /* the middle is 16384 sqrt 2 */
    const double above = 16384 * 1.43;
    assert_int_equal(latfit_predict(&e, &fit, below, NULL), 0);
    assert_near(e.value / (a[0] + b[0] * below), 1, 1e-6);
    assert_int_equal(latfit_predict(&e, &fit, above, NULL), 0);
    assert_near(e.value / (a[1] + b[1] * above), 1, 1e-6);
}

/* Sum of the squares of the errors of one line. */
static double squares_of(const struct latfit_point *points, size_t count)
{
    struct latfit_regime line;
    assert_int_equal(latfit_line(&line, points, count, NULL), 0);
    return line.error_rms * line.error_rms * (double)count;
}

/* Whatever the points: of all places for one break the best was taken. */
static void test_best_break(void **state)
{
    (void)state;
    struct gpul_rng rng;
    int broken = 0;
    gpul_rng_init(&rng, 8);
    for (int round = 0; round < 500; round++) {
        struct latfit_point points[8]; /* of three regimes too few */
        struct latfit fit;
        size_t at = 3 + gpul_rng_below(&rng, 3);
        for (size_t i = 0; i < COUNT(points); i++) {
            double bytes = pow(4, (double)i + 5);
            double time = i < at ? 1e-5 + 1e-9 * bytes : 3e-5 + 2e-10 * bytes;
            points[i] = (struct latfit_point){
                8, bytes, time * (1 + 0.8 * (uniform(&rng) - 0.5))};
        }
        assert_int_equal(latfit_make(&fit, points, COUNT(points), NULL), 0);
        if (fit.regime_count != 2) {
            continue;
        }
        size_t taken = fit.regimes[0].points;
        double best = squares_of(points, taken) +
                      squares_of(points + taken, COUNT(points) - taken);
        for (size_t i = 3; i <= COUNT(points) - 3; i++) {
            assert_true(squares_of(points, i) +
                            squares_of(points + i, COUNT(points) - i) >=
                        best * (1 - 1e-9));
        }
        broken++;
    }
    assert_true(broken > 50);
}

static void assert_refused(int status, struct gpul_error *err, const char *part)
{
    assert_int_equal(status, GPUL_EINVAL);
    if (strstr(err->text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
    }
    *err = (struct gpul_error){0};
}

static void test_refuses_to_predict(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct gpul_estimate estimate = {7, {7, 7}, 7};
    struct latfit fit;
    /* A time that jumps to and fro is on no line. */
    struct latfit_point points[] = {
        {8, 1e3, 1e-5}, {8, 1e4, 4e-5}, {8, 1e5, 1e-5}, {8, 1e6, 5e-5}};
    assert_int_equal(latfit_make(&fit, points, COUNT(points), &err), 0);
    assert_refused(latfit_predict(&estimate, &fit, 1e5, &err), &err,
                   "no prediction: the fit is up to");
    assert_true(estimate.value == 0 && estimate.extrapolation == 0);
    assert_refused(latfit_predict(&estimate, &fit, 0, &err), &err,
                   "no message");
    assert_refused(latfit_predict(&estimate, &fit, NAN, &err), &err,
                   "no message");
    /* Two points have no error, and prove nothing. */
    fit = (struct latfit){.regime_count = 1};
    assert_int_equal(latfit_line(&fit.regimes[0], points, 2, &err), 0);
    assert_true(fit.regimes[0].error_max < 1e-9);
    assert_refused(latfit_predict(&estimate, &fit, 1e5, &err), &err,
                   "leave none that an error could show in");
}

static void test_bad_points(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct latfit fit;
    struct latfit_regime line;
    struct latfit_point many[LATFIT_POINTS_MAX + 1] = {{0}};
    struct latfit_point points[] = {
        {8, 1e3, 1e-5}, {8, 1e4, 2e-5}, {8, 1e5, 3e-5}};
    assert_refused(latfit_make(&fit, points, 2, &err), &err, "2 points");
    assert_refused(latfit_make(&fit, many, COUNT(many), &err), &err,
                   "257 points");
    points[1].seconds = NAN;
    assert_refused(latfit_make(&fit, points, 3, &err), &err, "point 1 of a");
    points[1].seconds = 0;
    assert_refused(latfit_make(&fit, points, 3, &err), &err, "point 1 of a");
    points[1] = (struct latfit_point){16, 1e4, 2e-5};
    assert_refused(latfit_make(&fit, points, 3, &err), &err,
                   "points of 8 and of 16 ranks");
    points[1] = (struct latfit_point){8, 1e3, 2e-5};
    assert_refused(latfit_make(&fit, points, 3, &err), &err,
                   "fewer than 3 sizes");
    assert_refused(latfit_line(&line, points, 2, &err), &err, "of one size");
    points[0].ranks = points[1].ranks = points[2].ranks = 1;
    assert_refused(latfit_line(&line, points, 3, &err), &err, "1 rank)");
}

/* Nothing but latency, or nothing but bytes: no asymptote, no size from which
 * on; or all sizes. */
static void test_degenerate_lines(void **state)
{
    (void)state;
    struct latfit_regime line;
    struct latfit_point flat[] = {
        {8, 1e3, 3e-5}, {8, 1e4, 2e-5}, {8, 1e5, 1e-5}};
    assert_int_equal(latfit_line(&line, flat, 3, NULL), 0);
    assert_true(line.b == 0 && line.a > 0);
    assert_true(latfit_busbw_gbps(&line, 1) == 0);
    assert_true(latfit_bytes_for(&line, 0.9) == 0);
    assert_true(latfit_bytes_for(&line, 1) == 0);
    struct latfit_point steep[] = {
        {8, 1e3, 1e-7}, {8, 1e4, 2e-6}, {8, 1e5, 3e-5}};
    assert_int_equal(latfit_line(&line, steep, 3, NULL), 0);
    assert_true(line.a == 0 && line.b > 0);
    assert_true(latfit_bytes_for(&line, 0.9) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_by_lines),
        cmocka_unit_test(test_published_by_regimes),
        cmocka_unit_test(test_returns_what_was_put_in),
        cmocka_unit_test(test_one_line_is_one_regime),
        cmocka_unit_test(test_finds_regimes),
        cmocka_unit_test(test_prediction_interval),
        cmocka_unit_test(test_prediction_by_numbers),
        cmocka_unit_test(test_exact_regimes),
        cmocka_unit_test(test_best_break),
        cmocka_unit_test(test_refuses_to_predict),
        cmocka_unit_test(test_bad_points),
        cmocka_unit_test(test_degenerate_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
