/* SPDX-License-Identifier: Apache-2.0
 *
 * What several measurements of one thing say together. Pure.
 *
 * A NaN or an infinity is no measurement: it is left out, and counted.
 * Of no measurement at all nothing is known: a function that returns bool
 * then returns false and leaves zeroes.
 */
#ifndef GPUL_COMMON_STATS_H
#define GPUL_COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/rng.h"

/* In the unit of the values. */
struct gpul_summary {
    size_t count;    /* of the values that count; 0: all below are 0 */
    size_t left_out; /* NaN and infinities */
    double min;
    double max;
    double mean;
    double median;    /* of an even number: the mean of the middle two */
    double mad;       /* median of the distances to the median, not scaled */
    double deviation; /* standard deviation, of n - 1; 0 for one value */
    double p95;
    double p99;
};

/* Sorts the values in place, those that are left out last. */
bool gpul_summarize(struct gpul_summary *out, double *values, size_t count);

/* Sorts likewise. */
bool gpul_median(double *out, double *values, size_t count);

/* The value below which lies this share (0 .. 1) of `count` sorted values,
 * all finite; between two of them by the straight line. Source: R. Hyndman
 * and Y. Fan, "Sample quantiles in statistical packages", 1996, type 7. */
bool gpul_quantile(double *out, const double *sorted, size_t count,
                   double share);

/* Coefficient of variation: deviation over mean. False for fewer than two
 * values, or a mean that is not positive. */
bool gpul_variation(double *out, const struct gpul_summary *summary);

/* More than this of messages that are large is a finding of its own, "noisy",
 * apart from "slow". */
#define GPUL_NOISY_VARIATION 0.10

struct gpul_interval {
    double low;
    double high;
};

/* A figure that was not measured. */
struct gpul_estimate {
    double value;
    struct gpul_interval interval; /* of 95 %, what that means says the maker */
    double extrapolation; /* how many times beyond what was measured; 1: within
                           */
};

/* Student's t: so many standard errors to both sides hold 95 % with this many
 * degrees of freedom, 1 at least; 0 for none. Exact to three digits. */
double gpul_student_95(size_t freedom);

/* `count` draws with replacement from `count` values, as the bootstrap wants
 * them. Source: B. Efron, "Bootstrap methods: another look at the jackknife",
 * 1979. */
void gpul_resample(double *sample, const double *values, size_t count,
                   struct gpul_rng *rng);

/* From the 2.5th to the 97.5th percentile of what the draws gave; sorts in
 * place. */
bool gpul_middle_interval(struct gpul_interval *out, double *values,
                          size_t count);

enum { GPUL_BOOTSTRAP_DRAWS = 1000, GPUL_BOOTSTRAP_VALUES_MAX = 256 };

/* The middle 95 % of the medians of GPUL_BOOTSTRAP_DRAWS resamples: the same
 * for the same values and seed. Of few values it is about their range, and of
 * one that value: it tells nothing then. Of more values than
 * GPUL_BOOTSTRAP_VALUES_MAX the first ones are taken. */
bool gpul_median_interval(struct gpul_interval *out, const double *values,
                          size_t count, uint64_t seed);

enum { GPUL_PEERS_MIN = 4 };

/* Where a value among its like begins to stand out:
 *
 *     median -+ max(5 % of the median, 3.5 * 1.4826 * MAD)
 *
 * A bandwidth below `low`, a time above `high`. 1.4826 MAD is what the
 * standard deviation is of normal values, and 3.5 of them the usual cut. False
 * for fewer than GPUL_PEERS_MIN values: among three nobody is the odd one.
 * Sorts in place. Source: B. Iglewicz and D. Hoaglin, "How to detect and
 * handle outliers", 1993. */
bool gpul_peer_bounds(struct gpul_interval *out, double *values, size_t count);

#endif
