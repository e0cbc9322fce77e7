/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaling efficiency: how much of what N times the machines should do they
 * do. Pure.
 *
 *     weak        (X_N / N) / (X_ref / N_ref)    fixed work for each rank
 *     strong      T_ref N_ref / (T_N N)          fixed work in all; the same,
 *                                                since X is work over T
 *     collective  busbw_N / busbw_ref            the network alone
 *
 * X is the work of the whole job in a second, N its ranks. A number is honest
 * when it says against which count it stands, comes from three repeats or more
 * without warm-up, is the median with its spread, and of the slowest rank.
 */
#ifndef LAUNCHER_EFFICIENCY_H
#define LAUNCHER_EFFICIENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/stats.h"

enum efficiency_kind {
    EFFICIENCY_WEAK = 0,
    EFFICIENCY_STRONG = 1,
    EFFICIENCY_COLLECTIVE = 2,
};

/* "weak", "strong", "collective". */
const char *efficiency_kind_name(enum efficiency_kind kind);

enum {
    EFFICIENCY_COUNTS_MAX = 64,
    EFFICIENCY_REPEATS_MIN = 3,
    EFFICIENCY_REPEATS_MAX = GPUL_BOOTSTRAP_VALUES_MAX,
};

/* What was measured at one count of nodes. */
struct efficiency_point {
    uint32_t nodes;
    uint32_t ranks;
    /* Of each repeat the X of above, or busbw; what is not positive and
     * finite counts as a repeat that gave nothing. Borrowed. */
    const double *rates;
    size_t repeats;
};

/* The step of a job takes as long as that of its slowest rank. False, and 0,
 * when there is no rank or any has not told a positive time: the slowest may
 * be the one that is missing. */
bool efficiency_slowest(double *seconds, const double *rank_seconds,
                        size_t ranks);

/* X of steps that each take so many seconds: with weak scaling a step does the
 * work of `ranks`, with strong scaling always the same. 0 for no time. */
double efficiency_step_rate(enum efficiency_kind kind, double step_seconds,
                            uint32_t ranks);

/* The repeats of a point that gave a figure, into EFFICIENCY_REPEATS_MAX; how
 * many. */
size_t efficiency_figures(double *figures,
                          const struct efficiency_point *point);

/* Are points and reference within the bounds? Errors as efficiency_make. */
int efficiency_check(const struct efficiency_point *points, size_t count,
                     size_t reference, struct gpul_error *err);

/* What is to be said beside a number. */
enum efficiency_remark {
    EFFICIENCY_REFERENCE = 1 << 0,   /* the others stand against this one */
    EFFICIENCY_NO_FIGURE = 1 << 1,   /* no repeat gave one */
    EFFICIENCY_FEW_REPEATS = 1 << 2, /* fewer than EFFICIENCY_REPEATS_MIN */
    EFFICIENCY_NOISY = 1 << 3,       /* varies more than 10 % */
    /* The reference is one node: what the network costs is in all others. */
    EFFICIENCY_ONE_NODE = 1 << 4,
    /* busbw of one or two nodes: a tree crosses the network half as often as
     * that of more, or not at all. */
    EFFICIENCY_NOT_COMPARABLE = 1 << 5,
    /* Over 105 %: something else has changed, such as what fits a cache. */
    EFFICIENCY_ABOVE_LINEAR = 1 << 6,
};

struct efficiency_row {
    uint32_t nodes;
    uint32_t ranks;
    size_t failed; /* repeats that gave nothing */
    struct gpul_summary rates;
    double efficiency;             /* of the medians; 0: no figure */
    struct gpul_interval interval; /* 95 %, bootstrap over both counts */
    unsigned int remarks;          /* of enum efficiency_remark */
};

/* A row for each point, against points[reference]. The same for the same seed.
 * Errors: GPUL_EINVAL for a count of 0 ranks or a reference that is not there
 * or has no figure, GPUL_ELIMIT over the bounds above. */
int efficiency_make(struct efficiency_row *rows,
                    const struct efficiency_point *points, size_t count,
                    size_t reference, enum efficiency_kind kind, uint64_t seed,
                    struct gpul_error *err);

/* One remark as a sentence without its full stop; "" for none known. */
const char *efficiency_remark_text(enum efficiency_remark remark);

/* The remarks of a row, joined by "; ". Returns 0 or GPUL_ENOMEM. */
int efficiency_remarks_text(struct gpul_buf *out,
                            const struct efficiency_row *row);

#endif
