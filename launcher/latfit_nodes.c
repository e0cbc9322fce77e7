/* SPDX-License-Identifier: Apache-2.0
 *
 * The latency-bandwidth model over several counts of ranks.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "launcher/latfit.h"
#include "launcher/latfit_inside.h"
#include "launcher/leastsq.h"

enum { CONSTANTS = 3, POINTS_MIN = CONSTANTS + 1 };

const char *latfit_growth_name(enum latfit_growth growth)
{
    return growth == LATFIT_RANKS ? "n - 1" : "log2 n";
}

static double steps(enum latfit_growth growth, uint32_t ranks)
{
    return growth == LATFIT_RANKS ? (double)ranks - 1 : log2(ranks);
}

/* What c0, c1 and 1/B stand beside. */
static struct leastsq_row row_of(enum latfit_growth growth,
                                 enum gpul_collective collective,
                                 const struct latfit_point *point)
{
    double factor;
    gpul_busbw_factor(&factor, collective, point->ranks);
    return (struct leastsq_row){
        {1, steps(growth, point->ranks), factor * point->bytes},
        point->seconds};
}

static bool fit_model(struct latfit_model *out, enum latfit_growth growth,
                      enum gpul_collective collective,
                      const struct latfit_point *points, size_t count)
{
    struct leastsq_row rows[LATFIT_POINTS_MAX];
    struct leastsq fit;
    for (size_t i = 0; i < count; i++) {
        rows[i] = row_of(growth, collective, &points[i]);
    }
    bool is_fitted = leastsq_fit(&fit, rows, count, CONSTANTS);
    *out = (struct latfit_model){
        .c0 = fit.constants[0],
        .c1 = fit.constants[1],
        .per_byte = fit.constants[2],
        .error_max = fit.error_max,
        .error_rms = fit.error_rms,
    };
    for (size_t i = 0; i < CONSTANTS; i++) {
        for (size_t j = 0; j < CONSTANTS; j++) {
            out->covariance[i][j] = fit.covariance[i][j];
        }
    }
    return is_fitted;
}

/* Ranges of the points, into the fit. */
static void measure_ranges(struct latfit_nodes *out,
                           const struct latfit_point *points, size_t count)
{
    out->points = count;
    out->ranks_min = out->ranks_max = points[0].ranks;
    out->bytes_min = out->bytes_max = points[0].bytes;
    for (size_t i = 1; i < count; i++) {
        const struct latfit_point *p = &points[i];
        out->ranks_min = p->ranks < out->ranks_min ? p->ranks : out->ranks_min;
        out->ranks_max = p->ranks > out->ranks_max ? p->ranks : out->ranks_max;
        out->bytes_min = fmin(out->bytes_min, p->bytes);
        out->bytes_max = fmax(out->bytes_max, p->bytes);
    }
}

int latfit_nodes_make(struct latfit_nodes *out,
                      const struct latfit_point *points, size_t count,
                      enum gpul_collective collective, struct gpul_error *err)
{
    double factor;
    bool is_fitted = true;
    *out = (struct latfit_nodes){.collective = collective};
    int status = latfit_check(points, count, POINTS_MIN, err);
    if (status != 0) {
        return status;
    }
    if (!gpul_busbw_factor(&factor, collective, points[0].ranks)) {
        return gpul_fail(err, GPUL_EINVAL, "%s has no busbw",
                         gpul_collective_name(collective));
    }
    measure_ranges(out, points, count);
    for (int g = 0; g < LATFIT_GROWTHS; g++) {
        is_fitted = fit_model(&out->models[g], (enum latfit_growth)g,
                              collective, points, count) &&
                    is_fitted;
    }
    if (!is_fitted || out->ranks_min == out->ranks_max) {
        return gpul_fail(err, GPUL_EINVAL,
                         "a fit over counts of ranks needs several sizes at "
                         "two counts or more");
    }
    if (out->models[LATFIT_LOG].error_rms <
        out->models[LATFIT_RANKS].error_rms) {
        out->chosen = LATFIT_LOG;
    }
    return 0;
}

static int predict_by(struct gpul_estimate *out, const struct latfit_nodes *fit,
                      enum latfit_growth growth, const struct latfit_point *at,
                      struct gpul_error *err)
{
    const struct latfit_model *m = &fit->models[growth];
    int status = latfit_refuse(m->error_max, fit->points, CONSTANTS, err);
    if (status != 0) {
        return status;
    }
    struct leastsq_row row = row_of(growth, fit->collective, at);
    double variance = 0;
    for (size_t i = 0; i < CONSTANTS; i++) {
        for (size_t j = 0; j < CONSTANTS; j++) {
            variance += row.terms[i] * m->covariance[i][j] * row.terms[j];
        }
    }
    out->value = m->c0 * row.terms[0] + m->c1 * row.terms[1] +
                 m->per_byte * row.terms[2];
    out->interval = latfit_interval(out->value, variance, m->error_rms,
                                    fit->points, CONSTANTS);
    return 0;
}

int latfit_nodes_predict(struct gpul_estimate *out,
                         const struct latfit_nodes *fit, uint32_t ranks,
                         double bytes, struct gpul_error *err)
{
    struct gpul_estimate other;
    struct latfit_point at = {ranks, bytes, 1};
    *out = (struct gpul_estimate){0};
    int status = latfit_check(&at, 1, 1, err);
    if (status == 0) {
        status = predict_by(out, fit, fit->chosen, &at, err);
    }
    if (status != 0) {
        return status;
    }
    out->extrapolation =
        fmax(latfit_beyond(ranks, fit->ranks_min, fit->ranks_max),
             latfit_beyond(bytes, fit->bytes_min, fit->bytes_max));
    if (predict_by(&other, fit,
                   fit->chosen == LATFIT_LOG ? LATFIT_RANKS : LATFIT_LOG, &at,
                   NULL) == 0) {
        out->interval.low = fmin(out->interval.low, other.interval.low);
        out->interval.high = fmax(out->interval.high, other.interval.high);
    }
    return 0;
}
