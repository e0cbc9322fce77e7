/* SPDX-License-Identifier: Apache-2.0
 *
 * The latency-bandwidth model of a collective: what a message costs whatever
 * its size, and what each byte costs. Pure. Seconds, bytes.
 *
 *     one count of ranks       T(S)    = a + b S
 *     several counts           T(S, n) = c0 + c1 L(n) + f(n) S / B
 *
 * with f the busbw factor of common/bandwidth.h, B the busbw that large
 * messages approach, and L(n) = n - 1 (a ring) or log2 n (a tree). None of the
 * constants is negative. Both are fitted by least squares with weights 1/T^2,
 * that is on relative errors: without weights the largest message alone
 * decides. Sources: R. Hockney, "The communication challenge for MPP", 1994,
 * for T(S) and the sizes that follow from it; R. Thakur, R. Rabenseifner and
 * W. Gropp, "Optimization of collective communication operations in MPICH",
 * 2005, for L(n) and f(n).
 *
 * Libraries change algorithm and protocol with the size, so one line seldom
 * holds for all: see latfit_make.
 */
#ifndef LAUNCHER_LATFIT_H
#define LAUNCHER_LATFIT_H

#include <stddef.h>
#include <stdint.h>

#include "common/bandwidth.h"
#include "common/error.h"
#include "common/stats.h"

enum {
    LATFIT_POINTS_MAX = 256,
    LATFIT_REGIMES_MAX = 3,
    LATFIT_REGIME_POINTS_MIN = 3,
};

/* A fit that is further off than this share of any time that it was made from
 * predicts nothing. */
#define LATFIT_ERROR_MAX 0.20

/* The time is the median over the repeats, of the slowest rank, without
 * warm-up. One size may come several times. */
struct latfit_point {
    uint32_t ranks; /* at least 2 */
    double bytes;   /* > 0, as nccl-tests counts "size" */
    double seconds; /* > 0 */
};

/* The points from one size to another, both included. */
struct latfit_regime {
    double bytes_min;
    double bytes_max;
    size_t points;
    double a;                /* seconds, >= 0 */
    double b;                /* seconds a byte, >= 0 */
    double error_max;        /* the largest |fit - T| / T */
    double error_rms;        /* root of the mean of their squares */
    double covariance[2][2]; /* of a and b */
};

/* 1e9 bytes a second of busbw that large messages approach, `factor` / b; 0:
 * none is in sight (b is 0). */
double latfit_busbw_gbps(const struct latfit_regime *regime, double factor);

/* Bytes of which this share (below 1) of the asymptote is reached: share /
 * (1 - share) * a / b. 0.5 gives S_1/2, 0.9 gives S_90. 0: none in sight. */
double latfit_bytes_for(const struct latfit_regime *regime, double share);

/* One line through all points of one count of ranks, two at least. Errors:
 * GPUL_EINVAL for too few points, or one that is not positive. */
int latfit_line(struct latfit_regime *out, const struct latfit_point *points,
                size_t count, struct gpul_error *err);

struct latfit {
    size_t regime_count;
    struct latfit_regime regimes[LATFIT_REGIMES_MAX]; /* by rising size */
    double error_max;                                 /* of all */
};

/* As many regimes as the points give cause for, each a line of its own through
 * LATFIT_REGIME_POINTS_MIN sizes or more. Breaks are put where the squares of
 * the relative errors become least; one more regime must lower them by more
 * than four constants cost in the criterion of G. Schwarz, "Estimating
 * the dimension of a model", 1978. The time for
 * it grows with the cube of the points. Errors as latfit_line; GPUL_ENOMEM. */
int latfit_make(struct latfit *out, const struct latfit_point *points,
                size_t count, struct gpul_error *err);

/* The last regime: that of the largest messages. */
const struct latfit_regime *latfit_large(const struct latfit *fit);

/* The time of a message of this size on the same ranks, with the interval in
 * which one more measurement lies in 95 of 100 cases, were the errors normal.
 * Errors: GPUL_EINVAL and why where the regime is off by more than
 * LATFIT_ERROR_MAX, or has no point to spare that errors could show in. */
int latfit_predict(struct gpul_estimate *out, const struct latfit *fit,
                   double bytes, struct gpul_error *err);

enum latfit_growth {
    LATFIT_RANKS = 0, /* L = n - 1 */
    LATFIT_LOG = 1,   /* L = log2 n */
    LATFIT_GROWTHS = 2,
};

/* "n - 1", "log2 n". */
const char *latfit_growth_name(enum latfit_growth growth);

struct latfit_model {
    double c0;        /* seconds */
    double c1;        /* seconds for each of L */
    double per_byte;  /* 1 / B, seconds a byte */
    double error_max; /* as above */
    double error_rms;
    double covariance[3][3];
};

struct latfit_nodes {
    struct latfit_model models[LATFIT_GROWTHS];
    enum latfit_growth chosen; /* the lower error_rms */
    enum gpul_collective collective;
    size_t points;
    uint32_t ranks_min;
    uint32_t ranks_max;
    double bytes_min;
    double bytes_max;
};

/* Both models from points of two counts of ranks or more. Use only sizes of
 * one regime, and counts between which nothing but their number changes: from
 * 3 nodes on, or with a ring forced, since of two nodes the network carries
 * half as much. Errors: GPUL_EINVAL for one count of ranks, fewer than four
 * points, a collective without a factor, or a point that is not positive. */
int latfit_nodes_make(struct latfit_nodes *out,
                      const struct latfit_point *points, size_t count,
                      enum gpul_collective collective, struct gpul_error *err);

/* The time on so many ranks. The interval spans those of both models as far as
 * these are not refused: which of them holds is not known beyond the points.
 * The extrapolation is the larger of that in ranks and that in bytes. Errors
 * as latfit_predict. */
int latfit_nodes_predict(struct gpul_estimate *out,
                         const struct latfit_nodes *fit, uint32_t ranks,
                         double bytes, struct gpul_error *err);

#endif
