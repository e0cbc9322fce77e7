/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "launcher/scalefit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { REPEATS = 3, COUNTS_MAX = 6 };

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

/* How overheads grow: those that are fitted, and others. */
static double step(double n)
{
    return n > 1;
}
static double ring(double n)
{
    return 1 - 1 / n;
}
static double linear(double n)
{
    return n - 1;
}
static double n_log_n(double n)
{
    return n * log2(n);
}
static double quadratic(double n)
{
    return n * (n - 1);
}
static double root(double n)
{
    return sqrt(n) - 1;
}
static double power(double n)
{
    return pow(n - 1, 0.7);
}
static double ring_and_linear(double n)
{
    return 7 * ring(n) + linear(n);
}
static double step_and_log(double n)
{
    return 3 * step(n) + log2(n);
}
static double log_and_quadratic(double n)
{
    return 56 * log2(n) + 3 * quadratic(n);
}

/* A job that does 5 units of work a second on one node, and on 8 nodes 80 % of
 * 8 times that. */
struct job {
    double (*growth)(double nodes);
    double rates[COUNTS_MAX][REPEATS];
    struct efficiency_point points[COUNTS_MAX];
};

static double efficiency_of(const struct job *job, double nodes)
{
    double scale = (1 / 0.8 - 1) / job->growth(8);
    return 1 / (1 + scale * job->growth(nodes));
}

/* Measured on 1, 2, 4, ... nodes. */
static void measure(struct job *job, size_t counts, double noise,
                    struct gpul_rng *rng)
{
    for (size_t i = 0; i < counts; i++) {
        uint32_t nodes = 1u << i;
        for (size_t k = 0; k < REPEATS; k++) {
            job->rates[i][k] = 5 * nodes * efficiency_of(job, nodes) *
                               (1 + noise * normal(rng));
        }
        job->points[i] =
            (struct efficiency_point){nodes, 2 * nodes, job->rates[i], REPEATS};
    }
}

/* Fit, predict; is the truth in both intervals? */
static bool predicts(struct scalefit_prediction *out, struct job *job,
                     size_t counts, uint32_t nodes)
{
    struct scalefit fit;
    double truth = efficiency_of(job, nodes);
    if (scalefit_make(&fit, job->points, counts, 0, NULL) != 0) {
        return false;
    }
    assert_int_equal(scalefit_predict(out, &fit, nodes, 1, NULL), 0);
    const struct gpul_interval *e = &out->efficiency.interval;
    const struct gpul_interval *x = &out->rate.interval;
    assert_true(e->low <= e->high && e->low >= 0 && e->high <= 1);
    assert_true(e->low <= out->efficiency.value &&
                out->efficiency.value <= e->high);
    assert_true(x->low <= out->rate.value && out->rate.value <= x->high);
    return e->low <= truth && truth <= e->high && x->low <= 5 * nodes * truth &&
           5 * nodes * truth <= x->high;
}

static double (*const fitted[])(double) = {step,   ring,    log2,
                                           linear, n_log_n, quadratic};
static double (*const other[])(double) = {root, power, ring_and_linear,
                                          step_and_log, log_and_quadratic};

/* Without noise each shape is known for what it is, and 80 % on 8 nodes is
 * predicted from 1, 2 and 4 to the digit. */
static void test_exact_shapes(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 1);
    for (size_t i = 0; i < COUNT(fitted); i++) {
        struct job job = {.growth = fitted[i]};
        struct scalefit fit;
        struct scalefit_prediction p;
        measure(&job, 3, 0, &rng);
        assert_int_equal(scalefit_make(&fit, job.points, 3, 0, NULL), 0);
        assert_int_equal(fit.best, i);
        assert_false(fit.models[i].is_refuted);
        assert_false(fit.models[SCALEFIT_UNIVERSAL].is_fitted);
        assert_true(predicts(&p, &job, 3, 8));
        assert_near(p.efficiency.value, 0.8, 1e-6);
        assert_near(p.rate.value, 5 * 8 * 0.8, 1e-4);
        assert_near(p.efficiency.extrapolation, 2, 0);
        assert_true(p.efficiency.interval.high - p.efficiency.interval.low <
                    0.15);
    }
}

/* The promise: what is predicted lies in the interval, whether the job follows
 * a shape that is known here or not, near and far, for any noise. */
static void test_truth_is_in_the_interval(void **state)
{
    (void)state;
    static const double noises[] = {0, 0.005, 0.02};
    struct gpul_rng rng;
    int inside = 0;
    int all = 0;
    gpul_rng_init(&rng, 2);
    for (size_t i = 0; i < COUNT(fitted) + COUNT(other); i++) {
        struct job job = {
            .growth = i < COUNT(fitted) ? fitted[i] : other[i - COUNT(fitted)]};
        for (size_t k = 0; k < COUNT(noises); k++) {
            for (int round = 0; round < 4; round++) {
                struct scalefit_prediction p;
                measure(&job, 3, noises[k], &rng);
                inside += predicts(&p, &job, 3, 8);
                measure(&job, 5, noises[k], &rng);
                inside += predicts(&p, &job, 5, 64);
                all += 2;
            }
        }
    }
    if (inside < 0.97 * all) {
        fail_msg("%d of %d predictions hold", inside, all);
    }
}

/* The universal law from four counts on: its constants come back, and where
 * more nodes are slower. */
static void test_universal(void **state)
{
    (void)state;
    const double l = 3;
    const double s = 0.04;
    const double q = 0.002;
    double rates[COUNTS_MAX][REPEATS];
    struct efficiency_point points[COUNTS_MAX];
    struct scalefit fit;
    struct scalefit_prediction p;
    for (uint32_t i = 0; i < COUNTS_MAX; i++) {
        double n = 1u << i;
        for (size_t k = 0; k < REPEATS; k++) {
            rates[i][k] = l * n / (1 + s * (n - 1) + q * n * (n - 1));
        }
        points[i] =
            (struct efficiency_point){1u << i, 1u << i, rates[i], REPEATS};
    }
    assert_int_equal(scalefit_make(&fit, points, 4, 1, NULL), 0);
    const struct scalefit_model *m = &fit.models[SCALEFIT_UNIVERSAL];
    assert_int_equal(fit.best, SCALEFIT_UNIVERSAL);
    assert_near(1 / m->c, l, 1e-9);
    assert_near(m->d / m->c, s, 1e-9);
    assert_near(m->e / m->c, q, 1e-9);
    assert_near(scalefit_peak_nodes(&fit), sqrt((1 - s) / q), 1e-6);
    assert_int_equal(scalefit_predict(&p, &fit, 32, 1, NULL), 0);
    assert_near(p.rate.value, rates[5][0], 1e-6);
    /* Against 2 nodes, as asked. */
    assert_near(p.efficiency.value, rates[5][0] / 32 / (rates[1][0] / 2), 1e-6);
    /* Too few counts for it, or a straight line: no peak. */
    assert_int_equal(scalefit_make(&fit, points, 3, 0, NULL), 0);
    assert_near(scalefit_peak_nodes(&fit), 0, 0);
    for (uint32_t i = 0; i < 4; i++) {
        double n = 1u << i;
        for (size_t k = 0; k < REPEATS; k++) {
            rates[i][k] = l * n / (1 + s * log2(n));
        }
    }
    assert_int_equal(scalefit_make(&fit, points, 4, 0, NULL), 0);
    assert_true(fit.models[SCALEFIT_UNIVERSAL].is_fitted);
    assert_near(fit.models[SCALEFIT_UNIVERSAL].e, 0, 0);
    assert_near(scalefit_peak_nodes(&fit), 0, 0);
}

/* Within what was measured there is nothing to extrapolate, and the interval
 * is that of the noise. */
static void test_within(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct job job = {.growth = linear};
    struct scalefit_prediction p;
    struct scalefit_prediction again;
    gpul_rng_init(&rng, 3);
    measure(&job, 4, 0.002, &rng);
    assert_true(predicts(&p, &job, 4, 3));
    assert_near(p.efficiency.extrapolation, 1, 0);
    assert_true(p.efficiency.interval.high - p.efficiency.interval.low < 0.06);
    assert_true(predicts(&again, &job, 4, 1));
    assert_near(again.efficiency.value, 1, 0.01);
    assert_true(predicts(&again, &job, 4, 3));
    assert_memory_equal(&p, &again, sizeof p);
}

static void assert_refused(struct job *job, size_t counts, const char *part)
{
    struct gpul_error err = {0};
    struct scalefit fit;
    assert_int_equal(scalefit_make(&fit, job->points, counts, 0, &err),
                     GPUL_EINVAL);
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct gpul_error err = {0};
    struct job job = {.growth = linear};
    struct scalefit fit;
    struct scalefit_prediction p;
    gpul_rng_init(&rng, 4);
    measure(&job, 3, 0, &rng);
    assert_refused(&job, 2, "2 different counts of nodes; 3");
    job.points[2].nodes = 2;
    assert_refused(&job, 3, "2 different counts of nodes; 3");
    measure(&job, 3, 0, &rng);
    job.rates[1][1] = NAN;
    assert_refused(&job, 3, "2 figures on 2 nodes; 3 repeats");
    measure(&job, 3, 0, &rng);
    job.points[2].ranks = 7;
    assert_refused(&job, 3, "2 ranks on 1 node and 7 on 4");
    job.points[2].ranks = 0;
    assert_refused(&job, 3, "0 ranks");
    /* To and fro: no shape is that. */
    measure(&job, 4, 0, &rng);
    for (size_t k = 0; k < REPEATS; k++) {
        job.rates[1][k] *= 0.6;
    }
    assert_refused(&job, 4, "no prediction: the best shape");
    /* More than linear. */
    measure(&job, 4, 0, &rng);
    for (size_t k = 0; k < REPEATS; k++) {
        job.rates[3][k] = 5 * 8 * 1.2;
    }
    assert_refused(&job, 4,
                   "one of 8 nodes does 120 % of the work of one of "
                   "1");
    measure(&job, 3, 0, &rng);
    assert_int_equal(scalefit_make(&fit, job.points, 3, 0, NULL), 0);
    assert_int_equal(scalefit_predict(&p, &fit, 0, 1, &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, "the smallest count that was measured"));
    assert_near(p.rate.value, 0, 0);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(scalefit_shape_name(SCALEFIT_N_LOG_N), "n log n");
    assert_string_equal(scalefit_shape_name(SCALEFIT_UNIVERSAL), "universal");
    assert_string_equal(scalefit_shape_name((enum scalefit_shape)99),
                        "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_shapes),
        cmocka_unit_test(test_truth_is_in_the_interval),
        cmocka_unit_test(test_universal),
        cmocka_unit_test(test_within),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
