/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Those that count to the front, sorted; how many. */
static size_t sort_finite(double *values, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i])) {
            double value = values[i];
            values[i] = values[kept];
            values[kept++] = value;
        }
    }
    if (kept > 1) {
        qsort(values, kept, sizeof(values[0]), compare);
    }
    return kept;
}

static double middle(const double *sorted, size_t count)
{
    double low = sorted[(count - 1) / 2];
    return low + (sorted[count / 2] - low) / 2;
}

bool gpul_median(double *out, double *values, size_t count)
{
    size_t kept = sort_finite(values, count);
    *out = kept > 0 ? middle(values, kept) : 0;
    return kept > 0;
}

bool gpul_quantile(double *out, const double *sorted, size_t count,
                   double share)
{
    *out = 0;
    if (count == 0 || !(share >= 0 && share <= 1)) {
        return false;
    }
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;
    *out =
        sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
    return true;
}

/* Of sorted values, without memory: the distances grow from the median to both
 * ends, so the smallest ones are merged until half of them are passed. */
static double median_distance(const double *sorted, size_t count, double median)
{
    size_t up = 0;
    while (up < count && sorted[up] < median) {
        up++;
    }
    size_t down = up;
    double last[2] = {0, 0};
    for (size_t taken = 0; taken <= count / 2; taken++) {
        bool takes_lower =
            up == count ||
            (down > 0 && median - sorted[down - 1] < sorted[up] - median);
        last[0] = last[1];
        last[1] = takes_lower ? median - sorted[--down] : sorted[up++] - median;
    }
    return count % 2 == 1 ? last[1] : last[0] + (last[1] - last[0]) / 2;
}

bool gpul_summarize(struct gpul_summary *out, double *values, size_t count)
{
    size_t n = sort_finite(values, count);
    *out = (struct gpul_summary){.count = n, .left_out = count - n};
    if (n == 0) {
        return false;
    }
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        out->mean += values[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        squares += (values[i] - out->mean) * (values[i] - out->mean);
    }
    out->min = values[0];
    out->max = values[n - 1];
    out->median = middle(values, n);
    out->mad = median_distance(values, n, out->median);
    out->deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    gpul_quantile(&out->p95, values, n, 0.95);
    gpul_quantile(&out->p99, values, n, 0.99);
    return true;
}

bool gpul_variation(double *out, const struct gpul_summary *s)
{
    bool is_known = s->count > 1 && s->mean > 0;
    *out = is_known ? s->deviation / s->mean : 0;
    return is_known;
}

double gpul_student_95(size_t freedom)
{
    static const double exact[] = {
        0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
        2.262, 2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
        2.101, 2.093,  2.086, 2.080, 2.074, 2.069, 2.064, 2.060,
    };
    if (freedom < sizeof(exact) / sizeof(exact[0])) {
        return exact[freedom];
    }
    /* The first terms of the series in 1/freedom (Cornish and Fisher, 1937). */
    return 1.95996 + 2.3723 / (double)freedom +
           2.8225 / ((double)freedom * (double)freedom);
}

void gpul_resample(double *sample, const double *values, size_t count,
                   struct gpul_rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        sample[i] = values[gpul_rng_below(rng, count)];
    }
}

bool gpul_median_interval(struct gpul_interval *out, const double *values,
                          size_t count, uint64_t seed)
{
    double kept[GPUL_BOOTSTRAP_VALUES_MAX];
    double sample[GPUL_BOOTSTRAP_VALUES_MAX];
    double medians[GPUL_BOOTSTRAP_DRAWS];
    struct gpul_rng rng;
    *out = (struct gpul_interval){0, 0};
    if (count > GPUL_BOOTSTRAP_VALUES_MAX) {
        count = GPUL_BOOTSTRAP_VALUES_MAX;
    }
    if (count == 0) {
        return false;
    }
    memcpy(kept, values, count * sizeof(kept[0]));
    size_t n = sort_finite(kept, count);
    if (n == 0) {
        return false;
    }
    gpul_rng_init(&rng, seed);
    for (size_t i = 0; i < GPUL_BOOTSTRAP_DRAWS; i++) {
        gpul_resample(sample, kept, n, &rng);
        gpul_median(&medians[i], sample, n);
    }
    gpul_middle_interval(out, medians, GPUL_BOOTSTRAP_DRAWS);
    return true;
}

bool gpul_middle_interval(struct gpul_interval *out, double *values,
                          size_t count)
{
    size_t n = sort_finite(values, count);
    gpul_quantile(&out->high, values, n, 0.975);
    return gpul_quantile(&out->low, values, n, 0.025);
}

bool gpul_peer_bounds(struct gpul_interval *out, double *values, size_t count)
{
    const double deviations = 3.5 * 1.4826;
    const double median_share = 0.05;
    struct gpul_summary s;
    *out = (struct gpul_interval){0, 0};
    gpul_summarize(&s, values, count);
    if (s.count < GPUL_PEERS_MIN) {
        return false;
    }
    double away = median_share * fabs(s.median);
    if (deviations * s.mad > away) {
        away = deviations * s.mad;
    }
    *out = (struct gpul_interval){s.median - away, s.median + away};
    return true;
}
