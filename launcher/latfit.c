/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/latfit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/latfit_inside.h"
#include "launcher/leastsq.h"

double latfit_busbw_gbps(const struct latfit_regime *r, double factor)
{
    return r->b > 0 ? factor / r->b / 1e9 : 0;
}

double latfit_bytes_for(const struct latfit_regime *r, double share)
{
    bool is_share = share >= 0 && share < 1;
    return r->b > 0 && is_share ? share / (1 - share) * r->a / r->b : 0;
}

int latfit_check(const struct latfit_point *points, size_t count, size_t least,
                 struct gpul_error *err)
{
    if (count < least || count > LATFIT_POINTS_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%zu point%s; a fit needs %zu to %d of them", count,
                         gpul_plural(count), least, LATFIT_POINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const struct latfit_point *p = &points[i];
        if (p->ranks < 2 || !(p->bytes > 0) || !(p->seconds > 0) ||
            !isfinite(p->bytes) || !isfinite(p->seconds)) {
            return gpul_fail(err, GPUL_EINVAL,
                             "point %zu of a fit (%g bytes in %g s, %u "
                             "rank%s) is no measurement; leave it out",
                             i, p->bytes, p->seconds, (unsigned int)p->ranks,
                             gpul_plural(p->ranks));
        }
    }
    return 0;
}

bool latfit_fit_line(struct latfit_regime *out,
                     const struct latfit_point *points, size_t count)
{
    struct leastsq_row rows[LATFIT_POINTS_MAX];
    struct leastsq fit;
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct leastsq_row){{1, points[i].bytes}, points[i].seconds};
    }
    bool is_fitted = leastsq_fit(&fit, rows, count, 2);
    *out = (struct latfit_regime){
        .bytes_min = points[0].bytes,
        .bytes_max = points[count - 1].bytes,
        .points = count,
        .a = fit.constants[0],
        .b = fit.constants[1],
        .error_max = fit.error_max,
        .error_rms = fit.error_rms,
        .covariance = {{fit.covariance[0][0], fit.covariance[0][1]},
                       {fit.covariance[1][0], fit.covariance[1][1]}},
    };
    return is_fitted;
}

static int compare_sizes(const void *left, const void *right)
{
    const struct latfit_point *a = left;
    const struct latfit_point *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

struct latfit_point *latfit_sorted(const struct latfit_point *points,
                                   size_t count, size_t least, int *status,
                                   struct gpul_error *err)
{
    *status = latfit_check(points, count, least, err);
    for (size_t i = 1; *status == 0 && i < count; i++) {
        if (points[i].ranks != points[0].ranks) {
            *status = gpul_fail(err, GPUL_EINVAL,
                                "points of %u and of %u ranks in one line; fit "
                                "each count of ranks alone",
                                (unsigned int)points[0].ranks,
                                (unsigned int)points[i].ranks);
        }
    }
    if (*status != 0) {
        return NULL;
    }
    struct latfit_point *copy = malloc(count * sizeof(*copy));
    if (copy == NULL) {
        *status = gpul_fail(err, GPUL_ENOMEM, "no memory for a fit");
        return NULL;
    }
    memcpy(copy, points, count * sizeof(*copy));
    qsort(copy, count, sizeof(*copy), compare_sizes);
    return copy;
}

int latfit_line(struct latfit_regime *out, const struct latfit_point *points,
                size_t count, struct gpul_error *err)
{
    int status;
    *out = (struct latfit_regime){0};
    struct latfit_point *copy = latfit_sorted(points, count, 2, &status, err);
    if (copy == NULL) {
        return status;
    }
    if (!latfit_fit_line(out, copy, count)) {
        status = gpul_fail(err, GPUL_EINVAL,
                           "all points of a line are of one size; measure "
                           "several sizes");
    }
    free(copy);
    return status;
}

const struct latfit_regime *latfit_large(const struct latfit *fit)
{
    return &fit->regimes[fit->regime_count - 1];
}

/* Between two regimes each has the sizes that are nearer to it by factor. */
static const struct latfit_regime *regime_of(const struct latfit *fit,
                                             double bytes)
{
    size_t i = 0;
    while (i + 1 < fit->regime_count &&
           bytes * bytes >
               fit->regimes[i].bytes_max * fit->regimes[i + 1].bytes_min) {
        i++;
    }
    return &fit->regimes[i];
}

double latfit_beyond(double value, double min, double max)
{
    return value > max ? value / max : value < min ? min / value : 1;
}

int latfit_refuse(double error_max, size_t points, size_t constants,
                  struct gpul_error *err)
{
    if (points <= constants) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: %zu points fix %zu constants and "
                         "leave none that an error could show in; measure more "
                         "sizes",
                         points, constants);
    }
    if (!(error_max <= LATFIT_ERROR_MAX)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: the fit is up to %.0f %% off what was "
                         "measured, %.0f %% are allowed; measure more sizes, "
                         "near those that matter",
                         100 * error_max, 100 * LATFIT_ERROR_MAX);
    }
    return 0;
}

struct gpul_interval latfit_interval(double value, double variance,
                                     double error_rms, size_t points,
                                     size_t constants)
{
    double spare = (double)(points - constants);
    double own = error_rms * error_rms * (double)points / spare * value * value;
    double away =
        gpul_student_95(points - constants) * sqrt(fmax(variance, 0) + own);
    return (struct gpul_interval){fmax(value - away, 0), value + away};
}

int latfit_predict(struct gpul_estimate *out, const struct latfit *fit,
                   double bytes, struct gpul_error *err)
{
    *out = (struct gpul_estimate){0};
    if (!(bytes > 0) || !isfinite(bytes)) {
        return gpul_fail(err, GPUL_EINVAL, "%g bytes are no message", bytes);
    }
    const struct latfit_regime *r = regime_of(fit, bytes);
    int status = latfit_refuse(r->error_max, r->points, 2, err);
    if (status != 0) {
        return status;
    }
    double variance = r->covariance[0][0] + 2 * bytes * r->covariance[0][1] +
                      bytes * bytes * r->covariance[1][1];
    out->value = r->a + r->b * bytes;
    out->interval =
        latfit_interval(out->value, variance, r->error_rms, r->points, 2);
    out->extrapolation = latfit_beyond(bytes, fit->regimes[0].bytes_min,
                                       latfit_large(fit)->bytes_max);
    return 0;
}
