/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli_scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/cli.h"
#include "launcher/cli_handon.h"
#include "launcher/cli_report.h"
#include "launcher/cli_value.h"

#define SWEEP "The sweep"
#define FIGURE "How fast the command is"
#define OUTCOME "What comes out"

enum own {
    OWN_NODES,
    OWN_STRONG,
    OWN_REPEATS,
    OWN_REFERENCE,
    OWN_PREDICT,
    OWN_METRIC,
    OWN_METRIC_OF,
    OWN_UNIT,
    OWN_RECORD,
    OWN_JSON,
    OWN_QUIET,
    OWN_COUNT,
};

static const struct gpul_option own_table[OWN_COUNT] = {
    [OWN_NODES] = {.name = "nodes",
                   .aliases = "nnodes",
                   .letter = 'N',
                   .value = "N,N,...",
                   .group = SWEEP,
                   .help = "The counts of nodes, as in 1,2,4,8."},
    [OWN_STRONG] = {.name = "strong",
                    .group = SWEEP,
                    .help = "The command does the same work in all, on any "
                            "count of nodes. Default: the same work for each "
                            "rank."},
    [OWN_REPEATS] = {.name = "repeats",
                     .value = "R",
                     .group = SWEEP,
                     .help = "Runs on each count. Default 3; fewer tell no "
                             "spread."},
    [OWN_REFERENCE] = {.name = "reference",
                       .value = "N",
                       .group = SWEEP,
                       .help = "The count that efficiencies stand against. "
                               "Default: the smallest with a figure."},
    [OWN_PREDICT] = {.name = "predict",
                     .value = "N,N,...",
                     .group = SWEEP,
                     .help = "Counts to predict the efficiency of, with an "
                             "interval."},
    [OWN_METRIC] = {.name = "metric",
                    .value = "REGEX",
                    .group = FIGURE,
                    .help = "Take the throughput from lines of the ranks: an "
                            "extended regular expression with one group, "
                            "around the number. The first of three or more is "
                            "warm-up; of the others the median counts."},
    [OWN_METRIC_OF] = {.name = "metric-of",
                       .value = "WHOSE",
                       .group = FIGURE,
                       .help = "Whose throughput ranks tell: rank (the sum "
                               "counts) or job (the least counts). Default: "
                               "one rank tells the job's, all ranks each its "
                               "own."},
    [OWN_UNIT] = {.name = "unit",
                  .value = "TEXT",
                  .group = FIGURE,
                  .help = "What it is called, as in images/s."},
    [OWN_RECORD] = {.name = "record",
                    .value = "FILE",
                    .group = OUTCOME,
                    .help = "Lines of JSON with all that was measured "
                            "(docs/record.md)."},
    [OWN_JSON] = {.name = "json",
                  .group = OUTCOME,
                  .help = "The same as one object on standard output, in the "
                          "place of the table."},
    [OWN_QUIET] = {.name = "quiet",
                   .letter = 'q',
                   .group = OUTCOME,
                   .help = "Do not pass on what the ranks write, nor what is "
                           "under way."},
};

/* Options of run that are for scale itself to say, or mean nothing here. */
static const struct {
    enum option option;
    const char *why;
} refused[] = {
    {OPTION_JOB, "each run gets its own"},
    {OPTION_STDIN, "nothing can be read again for each run"},
    {OPTION_LABEL, "the runs are labelled"},
    {OPTION_NO_LABEL, "by its label it is known whose a line is"},
    {OPTION_TIMESTAMPS, "the lines are searched for figures"},
    {OPTION_RANKS, "figures may come from any of them"},
    {OPTION_FOLD, "each rank's figure counts"},
    {OPTION_COLOR, "the lines are searched for figures"},
    {OPTION_VERBOSE, "it is for gpulaunch run"},
    {OPTION_RESULT, "--record has what each run told"},
    {OPTION_METRICS, "they are always told"},
    {OPTION_DRY_RUN, "it is for gpulaunch run"},
    {OPTION_RANK, "it is for gpulaunch env"},
    {OPTION_EXPLAIN, "it is for gpulaunch run"},
    {OPTION_NODES, ""},
    {OPTION_JSON, ""},
    {OPTION_QUIET, ""},
};

enum { REFUSED_COUNT = sizeof(refused) / sizeof(refused[0]) };

struct parse {
    struct plan *plan;
    size_t drawings; /* options of report behind our own */
};

const struct gpul_option *cli_scale_options(size_t *count)
{
    *count = OWN_COUNT;
    return own_table;
}

bool cli_scale_owns(enum option option)
{
    for (size_t i = 0; i < REFUSED_COUNT; i++) {
        if (refused[i].option == option) {
            return true;
        }
    }
    return false;
}

/* ---- values -------------------------------------------------------------- */

static int set_counts(uint32_t *counts, size_t *count, const char *value,
                      const char *spelling, struct gpul_error *err)
{
    int rc = scaleplan_parse_counts(counts, count, value, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_count(uint32_t *out, const char *value, uint32_t most,
                     const char *spelling, struct gpul_error *err)
{
    int rc = gpul_parse_count(out, value, 1, most, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_text(const char **out, const char *value, const char *spelling,
                    struct gpul_error *err)
{
    if (value[0] == '\0') {
        return gpul_fail(err, GPUL_EINVAL, "%s: its value is empty", spelling);
    }
    *out = value;
    return 0;
}

static int set_whose(struct scaleplan *scale, const char *value,
                     const char *spelling, struct gpul_error *err)
{
    bool is_job = strcmp(value, "job") == 0;
    if (!is_job && strcmp(value, "rank") != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is neither rank nor job", spelling,
                         value);
    }
    scale->figures = is_job ? SCALEPLAN_FIGURES_JOB : SCALEPLAN_FIGURES_RANK;
    return 0;
}

static int set_own(struct plan *plan, enum own option, const char *value,
                   const char *spelling, struct gpul_error *err)
{
    struct scaleplan *scale = &plan->scale;
    switch (option) {
    case OWN_NODES:
        return set_counts(scale->counts, &scale->count_count, value, spelling,
                          err);
    case OWN_STRONG:
        scale->is_strong = true;
        return 0;
    case OWN_REPEATS:
        return set_count(&scale->repeats, value, SCALEPLAN_REPEATS_MAX,
                         spelling, err);
    case OWN_REFERENCE:
        return set_count(&scale->reference, value, GPUL_NODES_MAX, spelling,
                         err);
    case OWN_PREDICT:
        return set_counts(scale->predictions, &scale->prediction_count, value,
                          spelling, err);
    case OWN_METRIC:
        return set_text(&scale->metric, value, spelling, err);
    case OWN_METRIC_OF:
        return set_whose(scale, value, spelling, err);
    case OWN_UNIT:
        return set_text(&scale->unit, value, spelling, err);
    case OWN_RECORD:
        return set_text(&plan->drawings.record, value, spelling, err);
    case OWN_JSON:
        plan->is_json = true;
        return 0;
    default:
        plan->is_quiet = true;
        return 0;
    }
}

static int set_run(struct plan *plan, enum option option, const char *value,
                   const char *spelling, struct gpul_error *err)
{
    size_t count;
    for (size_t i = 0; i < REFUSED_COUNT; i++) {
        if (refused[i].option == option) {
            return gpul_fail(err, GPUL_EINVAL, "scale has no option %s: %s",
                             spelling, refused[i].why);
        }
    }
    return cli_hand_on(plan, option_table(&count)[option].name, value, err);
}

static int on_value(void *arg, size_t index, const char *value,
                    const char *spelling, enum gpul_option_source source,
                    struct gpul_error *err)
{
    struct parse *p = arg;
    size_t count;
    (void)source;
    if (index < OWN_COUNT) {
        return set_own(p->plan, (enum own)index, value, spelling, err);
    }
    index -= OWN_COUNT;
    if (index < p->drawings) {
        return cli_report_set(p->plan, index, value, spelling, err);
    }
    index -= p->drawings;
    if (index >= OPTION_COUNT) {
        return gpul_fail(err, GPUL_EINVAL, "%s: %s", spelling,
                         option_table(&count)[index].help);
    }
    return set_run(p->plan, (enum option)index, value, spelling, err);
}

/* ---- what run will say of it --------------------------------------------- */

struct caller {
    gpul_getenv_fn getenv;
    void *arg;
};

/* What the runs will see of the environment. */
static const char *get_handed_on(void *arg, const char *name)
{
    const struct caller *caller = arg;
    size_t count;
    const struct gpul_option *table = option_table(&count);
    for (size_t i = 0; i < REFUSED_COUNT; i++) {
        const char *owned = table[refused[i].option].environment;
        if (owned != NULL && strcmp(owned, name) == 0) {
            return NULL;
        }
    }
    return caller->getenv != NULL ? caller->getenv(caller->arg, name) : NULL;
}

/* The command line of each run, as far as the user has a say in it. */
static int try_count(const struct plan *plan, uint32_t nodes,
                     struct caller *caller, struct gpul_error *err)
{
    enum { OTHERS = 4, NODES_BYTES = 32 };
    char run[] = "run", dashes[] = "--", number[NODES_BYTES];
    size_t words = 0;
    struct plan *trial = calloc(1, sizeof(*trial));
    char **argv = calloc(plan->handed_on_count + plan->command_count + OTHERS,
                         sizeof(*argv));
    if (trial == NULL || argv == NULL) {
        free(trial);
        free(argv);
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    snprintf(number, sizeof(number), "--nodes=%" PRIu32, nodes);
    argv[words++] = run;
    argv[words++] = number;
    for (size_t i = 0; i < plan->handed_on_count; i++) {
        argv[words++] = plan->handed_on[i];
    }
    argv[words++] = dashes;
    for (size_t i = 0; i < plan->command_count; i++) {
        argv[words++] = plan->command[i];
    }
    int rc = cli_parse(trial, (int)words, argv, get_handed_on, caller, err);
    if (rc == 0 && trial->is_open) {
        rc = gpul_fail(err, GPUL_EINVAL,
                       "scale: on which machines? --local, --hosts, --nodelist "
                       "or --hostfile; nodes that join by themselves would "
                       "have to do so for each run");
    }
    plan_release(trial);
    free(trial);
    free(argv);
    return rc;
}

static bool has_count(const struct scaleplan *scale, uint32_t nodes)
{
    for (size_t i = 0; i < scale->count_count; i++) {
        if (scale->counts[i] == nodes) {
            return true;
        }
    }
    return false;
}

static int settle(struct plan *plan, struct caller *caller,
                  struct gpul_error *err)
{
    const struct scaleplan *scale = &plan->scale;
    if (scale->count_count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "scale: on which counts of nodes? --nodes 1,2,4,8");
    }
    if (plan->command_count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "scale: of which command? gpulaunch scale --local "
                         "--nodes 1,2,4 -- python train.py");
    }
    if (scale->reference != 0 && !has_count(scale, scale->reference)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--reference %" PRIu32 ": nothing is measured on so "
                         "many nodes; it is one of --nodes",
                         scale->reference);
    }
    int rc = 0;
    for (size_t i = 0; i < scale->count_count && rc == 0; i++) {
        rc = try_count(plan, scale->counts[i], caller, err);
    }
    return rc;
}

int cli_scale_parse(struct plan *plan, int argc, char *const argv[],
                    gpul_getenv_fn getenv, void *getenv_arg,
                    struct gpul_error *err)
{
    int rest = 0;
    bool has_separator = false;
    struct parse p = {.plan = plan};
    struct gpul_options options = {
        .stops_at_operand = true, .on_value = on_value, .arg = &p};
    struct cli_table tables[] = {{own_table, OWN_COUNT}, {NULL, 0}, {NULL, 0}};
    tables[1].options = cli_report_options(&tables[1].count);
    tables[2].options = option_table(&tables[2].count);
    p.drawings = tables[1].count;
    plan->scale.repeats = SCALEPLAN_REPEATS;
    struct gpul_option *all = cli_tables_join(&options.count, tables, 3);
    if (all == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    options.table = all;
    int rc =
        gpul_options_parse(&options, argc, argv, &rest, &has_separator, err);
    free(all);
    if (rc != 0) {
        return rc;
    }
    plan->command = argv + rest;
    plan->command_count = (size_t)(argc - rest);
    if (plan->command_count > 0 && !has_separator) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not an option; put -- before the command",
                         plan->command[0]);
    }
    struct caller caller = {getenv, getenv_arg};
    return settle(plan, &caller, err);
}

/* ---- help ---------------------------------------------------------------- */

static const char head[] =
    "Usage: gpulaunch scale --nodes N,N,... [options] -- COMMAND...\n"
    "\n"
    "Run COMMAND on each count of nodes, several times, and print how much of\n"
    "what N times the nodes should do they do: throughput with its spread,\n"
    "efficiency, the bandwidth of an all-reduce beside it, and what that says\n"
    "of other counts. Its throughput comes from the first of these that there\n"
    "is: --metric; lines that ranks write to GPULAUNCH_METRIC_FD; steps that\n"
    "ranks tell (GPULAUNCH_BEAT_FD); with --strong the time that it runs.\n"
    "Options of run (gpulaunch help run) are handed on to each run.\n"
    "\n";

static const char tail[] =
    "\n"
    "Exit codes: 0 each count gave a figure; that of the first run on a count\n"
    "that gave none; 130, 143 stopped by a signal, with what was measured up\n"
    "to then; 125 wrong usage, or nothing tells how fast COMMAND is.\n"
    "\n"
    "Example: gpulaunch scale --hosts node[1-8] --nodes 1,2,4,8 \\\n"
    "             --metric '([0-9.]+) images/s' --predict 16 --html scale.html "
    "\\\n"
    "             -- python train.py\n"
    "The manual: man gpulaunch\n";

int cli_scale_help(struct gpul_buf *out)
{
    struct cli_table tables[] = {{own_table, OWN_COUNT}, {NULL, 0}};
    tables[1].options = cli_report_options(&tables[1].count);
    struct gpul_options options = {0};
    struct gpul_option *all = cli_tables_join(&options.count, tables, 2);
    options.table = all;
    gpul_buf_append_text(out, head);
    if (all != NULL) {
        gpul_options_help(out, &options);
    }
    free(all);
    return all != NULL ? gpul_buf_append_text(out, tail) : GPUL_ENOMEM;
}
