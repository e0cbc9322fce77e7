/* SPDX-License-Identifier: Apache-2.0
 *
 * What to think of a measured bandwidth: a share of what can be carried at
 * most, by the shares of common/ceiling.h. Pure.
 *
 * "low" is between good and slow. A small message says nothing of the links:
 * what it costs whatever its size must be a tenth of its time at most, or the
 * best that could be measured is below 90 %.
 */
#ifndef LAUNCHER_GRADE_H
#define LAUNCHER_GRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpulaunch.pb-c.h"

enum grade {
    GRADE_NONE = 0,  /* "-": a double measured; no ceiling counts */
    GRADE_SMALL = 1, /* the message is too small to tell */
    GRADE_GOOD = 2,
    GRADE_LOW = 3,
    GRADE_SLOW = 4,
    GRADE_UNKNOWN = 5, /* no ceiling is known, or no busbw: no pass either */
};

struct grade_scale {
    /* What any message costs, by scope: the time of the fastest row. Within
     * a node it is not more than among all ranks. */
    uint64_t latency_ns[GPUL__SCOPE__SCOPE_NODE + 1];
    bool is_simulated; /* no ceiling counts */
};

void grade_scale_init(struct grade_scale *scale, Gpul__SelfTestRow *const *rows,
                      size_t count, bool is_simulated);

enum grade grade_row(const struct grade_scale *scale,
                     const Gpul__SelfTestRow *row);

/* Of the ceiling; false where none is known, or none counts. */
bool grade_percent(double *percent, const struct grade_scale *scale,
                   const Gpul__SelfTestRow *row);

/* "good"; NULL for GRADE_NONE. */
const char *grade_name(enum grade grade);

/* Does busbw mean anything? Not where one rank has no peer: "n/a". */
bool grade_has_busbw(const Gpul__SelfTestRow *row);

#endif
