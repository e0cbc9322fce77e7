/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runs of a sweep over counts of nodes have told, and the record that
 * follows from it: samples, bandwidths, efficiencies, fits, predictions. Pure.
 *
 * The throughput of a run comes from the first of these that there is, and of
 * all runs from the same: lines that --metric matches, lines to
 * GPULAUNCH_METRIC_FD, steps (of the slowest rank; with the same work for each
 * rank times the ranks), and with the same work in all the time that the
 * command took.
 */
#ifndef LAUNCHER_SCALEBOOK_H
#define LAUNCHER_SCALEBOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "launcher/dossier.h"
#include "launcher/metricline.h"
#include "launcher/scaleplan.h"

enum scalebook_source {
    SCALEBOOK_NONE = 0, /* no run has told anything yet */
    SCALEBOOK_METRIC = 1,
    SCALEBOOK_LINE = 2,
    SCALEBOOK_STEPS = 3,
    SCALEBOOK_TIME = 4,
};

/* What a rank has told of its work. */
struct scalebook_rank {
    uint32_t rank;
    const char *text; /* its line; "" or NULL: none */
    uint64_t steps;   /* behind its warm-up */
    double step_s;    /* all of these together; NAN: none */
};

/* What became of one run; borrowed. */
struct scalebook_outcome {
    int exit_code;
    const char *why;    /* it failed; NULL: not known */
    const char *job_id; /* NULL: it never had one */
    const char *backend;
    bool is_simulated;
    bool may_be_simulated;
    uint32_t rank_count; /* 0: it was never complete */
    double run_s;        /* of the command; NAN: not known */
    const struct scalebook_rank *ranks;
    size_t rank_told; /* how many of these */
    /* Lines that --metric matched, as metricline_settle takes them; they are
     * settled in place. */
    struct metricline_figure *figures;
    size_t figure_count;
    /* Its NODE and BANDWIDTH items. */
    const struct dossier *found;
};

struct scalebook_sample {
    struct scaleplan_run run;
    uint32_t ranks;
    int exit_code;
    double rate; /* NAN: none */
    double step_s;
    int64_t slowest;  /* DOSSIER_UNKNOWN */
    const char *note; /* NULL */
};

enum { SCALEBOOK_UNIT_BYTES = 32 };

/* `record` has the record once it is finished. */
struct scalebook {
    const struct scaleplan *plan;
    enum scalebook_source source;
    bool is_of_job; /* the figure of one rank; else of all */
    char unit[SCALEBOOK_UNIT_BYTES];
    struct scalebook_sample *samples;
    size_t count;
    struct dossier rows; /* bandwidths of each run */
    struct dossier record;
    struct dossier_run run; /* as far as runs tell it */
};

/* Borrows the plan. */
void scalebook_init(struct scalebook *b, const struct scaleplan *plan);
void scalebook_release(struct scalebook *b);

/* Enter one run. A run that failed, or told nothing though others did, is a
 * sample without a figure. Errors: GPUL_EINVAL when no further run would tell
 * more: nothing says how fast the command is, or whose the figures are; what
 * to do is in the text. GPUL_ENOMEM. */
int scalebook_take(struct scalebook *b, const struct scaleplan_run *run,
                   const struct scalebook_outcome *outcome,
                   struct gpul_error *err);

/* "the steps of the slowest rank, ...": what throughput is; "" for none. */
const char *scalebook_source_text(const struct scalebook *b);

struct scalebook_end {
    int exit_code;      /* 0: as the runs say */
    const char *reason; /* for another one */
    const char *message;
    int64_t started_unix_s;
    double duration_s;
    char *const *command;
    size_t command_count;
};

/* Complete the record, of however few runs. Returns the exit code: that which
 * was given; else that of the first run on a count of nodes that gave no figure
 * at all; else 0. */
int scalebook_finish(struct scalebook *b, const struct scalebook_end *end);

#endif
