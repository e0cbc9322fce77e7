/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job goes on scaling, from how it has scaled so far. Pure.
 *
 * Looked at is what one unit of work costs in seconds times ranks, u(N) = N /
 * X(N): it stays the same where scaling is perfect, and the efficiency at N is
 * u(N_ref) / u(N), weak or strong. Each shape says how it grows, with c > 0
 * and d, e >= 0:
 *
 *     step        c + d [N > 1]          the first hop costs, no other does
 *     ring        c + d (1 - 1/N)        bytes of a ring
 *     log         c + d log2 N           hops of a tree
 *     linear      c + d (N - 1)          hops of a ring; a serial part (Amdahl)
 *     n log n     c + d N log2 N         hops of a tree, fixed work in all
 *     quadratic   c + d N (N - 1)        everybody waits for everybody
 *     universal   c (1 + s (N - 1) + q N (N - 1))   from four counts on
 *
 * "universal" is the universal scalability law X(N) = l N / (1 + s (N-1) +
 * q N (N-1)), l = 1/c; linear and quadratic are its parts. N counts nodes.
 * Written so, all are linear in their constants, and least squares on relative
 * errors with constants that are not negative has one answer.
 *
 * Few points seldom tell these shapes apart, and far out they differ most. So
 * the best one gives the value, and the interval spans all that the points do
 * not refute; and, beyond the last count, how it goes on from the last two
 * counts if from there on it grows as the next slower shape or the next faster
 * one, since jobs follow no shape for ever. A limit that is first met beyond
 * the last count, such as a full uplink, no interval of this kind knows.
 *
 * Sources: N. Gunther, "Guerrilla Capacity Planning", 2007 (the universal
 * law); G. Amdahl, "Validity of the single processor approach", 1967;
 * J. Gustafson, "Reevaluating Amdahl's law", 1988; B. Efron, 1979 (bootstrap).
 */
#ifndef LAUNCHER_SCALEFIT_H
#define LAUNCHER_SCALEFIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/stats.h"
#include "launcher/efficiency.h"

enum scalefit_shape {
    SCALEFIT_STEP = 0,
    SCALEFIT_RING = 1,
    SCALEFIT_LOG = 2,
    SCALEFIT_LINEAR = 3,
    SCALEFIT_N_LOG_N = 4,
    SCALEFIT_QUADRATIC = 5,
    SCALEFIT_UNIVERSAL = 6,
    SCALEFIT_SHAPES = 7,
};

/* "step", ..., "universal". */
const char *scalefit_shape_name(enum scalefit_shape shape);

/* A best shape that is further off than this share of any point predicts
 * nothing. */
#define SCALEFIT_ERROR_MAX 0.10

enum {
    SCALEFIT_COUNTS_MIN = 3,
    SCALEFIT_UNIVERSAL_COUNTS_MIN = 4,
};

struct scalefit_model {
    bool is_fitted;   /* enough counts, and they tell its constants apart */
    bool is_refuted;  /* off by more than noise and the best shape explain */
    double c;         /* of u; seconds times nodes for a unit of work */
    double d;         /* c s of "universal" */
    double e;         /* c q of "universal", else 0 */
    double error_max; /* the largest |fit - u| / u */
    double error;     /* root of their squares over the points to spare */
};

/* Borrows the points, and their rates. */
struct scalefit {
    const struct efficiency_point *points;
    size_t count;
    size_t reference;
    double costs[EFFICIENCY_COUNTS_MAX]; /* u of each point's median */
    struct scalefit_model models[SCALEFIT_SHAPES];
    enum scalefit_shape best; /* the least error */
    double noise;             /* relative standard error of one median */
    uint32_t nodes_min;
    uint32_t nodes_max;
};

/* Fit every shape to the medians; efficiencies stand against
 * points[reference]. A shape is refuted when its error is above 2.5 times the
 * noise and one percent, and above 1.5 times the least. Errors: GPUL_EINVAL
 * and why where nothing can be said: fewer than SCALEFIT_COUNTS_MIN different
 * counts of nodes, fewer than EFFICIENCY_REPEATS_MIN figures at one of them,
 * ranks a node that differ, more work done by one node of many than by one of
 * few, the best shape off by more than SCALEFIT_ERROR_MAX. GPUL_ELIMIT as
 * efficiency_make. */
int scalefit_make(struct scalefit *out, const struct efficiency_point *points,
                  size_t count, size_t reference, struct gpul_error *err);

/* u of one shape at so many nodes; 0 if it is not fitted. */
double scalefit_cost(const struct scalefit *fit, enum scalefit_shape shape,
                     uint32_t nodes);

struct scalefit_prediction {
    struct gpul_estimate rate;       /* X, work of the whole job in a second */
    struct gpul_estimate efficiency; /* within 0 .. 1 */
};

/* At so many nodes; the same for the same seed. The interval is that of one
 * more median of as many repeats: over the shapes that are not refuted, the
 * middle 95 % of GPUL_BOOTSTRAP_DRAWS fits to resampled repeats, and one
 * percent more to both sides. Resampled are the deviations of all counts from
 * their means in one pool, since of three repeats alone there are not many
 * medians. Errors: GPUL_EINVAL for a count below the smallest that was
 * measured; GPUL_ENOMEM. */
int scalefit_predict(struct scalefit_prediction *out,
                     const struct scalefit *fit, uint32_t nodes, uint64_t seed,
                     struct gpul_error *err);

/* Where the universal law has its most work in a second: sqrt((1 - s) / q)
 * nodes; more of them are slower. 0: nowhere, or it was not fitted. */
double scalefit_peak_nodes(const struct scalefit *fit);

#endif
