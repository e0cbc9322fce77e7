/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sweep over counts of nodes is to measure, and in which order. Pure.
 */
#ifndef LAUNCHER_SCALEPLAN_H
#define LAUNCHER_SCALEPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
    SCALEPLAN_COUNTS_MAX = 64,
    SCALEPLAN_REPEATS = 3, /* the default */
    SCALEPLAN_REPEATS_MAX = 256,
};

/* Whose figures are those that ranks tell? */
enum scaleplan_figures {
    SCALEPLAN_FIGURES_AUTO = 0, /* of one rank: the job's; of all: their own */
    SCALEPLAN_FIGURES_JOB = 1,
    SCALEPLAN_FIGURES_RANK = 2,
};

/* Texts are borrowed. */
struct scaleplan {
    uint32_t counts[SCALEPLAN_COUNTS_MAX]; /* of nodes, rising */
    size_t count_count;
    uint32_t repeats;
    uint32_t reference; /* one of the counts; 0: the first with a figure */
    uint32_t predictions[SCALEPLAN_COUNTS_MAX]; /* rising */
    size_t prediction_count;
    bool is_strong;     /* the same work in all, not for each rank */
    const char *metric; /* regular expression; NULL: none */
    enum scaleplan_figures figures;
    const char *unit; /* NULL: by the source */
};

/* "1,2,4,8", in any order, into at most SCALEPLAN_COUNTS_MAX. Errors:
 * GPUL_EINVAL, naming what is none, is there twice or too much. */
int scaleplan_parse_counts(uint32_t *counts, size_t *count, const char *text,
                           struct gpul_error *err);

struct scaleplan_run {
    size_t place; /* of its count in `counts` */
    uint32_t nodes;
    uint32_t repeat; /* from 1 */
};

/* How many runs there are. */
size_t scaleplan_run_count(const struct scaleplan *plan);

/* The i-th: each repeat goes once over all counts, upwards and downwards by
 * turns, so that a machine which gets faster or slower meanwhile changes all
 * counts alike. */
struct scaleplan_run scaleplan_run_at(const struct scaleplan *plan, size_t i);

#endif
