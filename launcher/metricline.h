/* SPDX-License-Identifier: Apache-2.0
 *
 * From what ranks tell of their work to one figure of the job. Pure.
 */
#ifndef LAUNCHER_METRICLINE_H
#define LAUNCHER_METRICLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "launcher/scaleplan.h"

/* From so many figures of a rank on, the first is its warm-up. */
enum { METRICLINE_WARM_MIN = 3 };

/* "[3] text", as --label writes it: the rank, and what is behind the label.
 * False: no label. */
bool metricline_label(uint32_t *rank, const char **rest, const char *line);

/* A number at the start of a text, behind blanks: finite, not negative.
 * *rest, unless NULL: what is behind it and blanks. False: there is none. */
bool metricline_number(double *value, const char **rest, const char *text);

struct metricline_figure {
    uint32_t rank;
    double value;
};

/* One figure for each rank that told any, in place, by rising rank: the median
 * without the warm-up. In the order in which a rank told them. Returns how many
 * ranks these are; GPUL_ENOMEM, negative. */
int metricline_settle(struct metricline_figure *figures, size_t count);

struct metricline_total {
    double value;
    bool is_job;      /* one told the job's figure; else the sum over ranks */
    uint32_t slowest; /* rank with the least figure */
};

/* The job's figure, from one of each rank. Of one rank alone it is the job's;
 * of all ranks each is its own and they are summed. Anything between may be
 * either: GPUL_EINVAL, who told and what to do, unless `figures` says it. Of
 * several that tell the job's the least counts. `figures` may not be empty. */
int metricline_sum(struct metricline_total *total,
                   const struct metricline_figure *figures, size_t count,
                   uint32_t ranks, enum scaleplan_figures whose,
                   struct gpul_error *err);

#endif
