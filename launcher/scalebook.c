/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scalebook.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/efficiency.h"
#include "launcher/scalebook_inside.h"

static const char no_source[] =
    "nothing tells how fast the command is. Either its lines do: --metric "
    "REGEX with one group around the number; or each rank, or one of them, "
    "writes a line with a number to the descriptor in GPULAUNCH_METRIC_FD; or "
    "each rank tells its steps, a line to GPULAUNCH_BEAT_FD for each. With "
    "--strong (the same work on any count of nodes) the run time will do";

void scalebook_init(struct scalebook *b, const struct scaleplan *plan)
{
    *b = (struct scalebook){.plan = plan};
    dossier_init(&b->rows);
    dossier_init(&b->record);
}

void scalebook_release(struct scalebook *b)
{
    dossier_release(&b->rows);
    dossier_release(&b->record);
    free(b->samples);
    *b = (struct scalebook){0};
}

const char *scalebook_source_text(const struct scalebook *b)
{
    switch (b->source) {
    case SCALEBOOK_METRIC:
        return b->is_of_job ? "the job's figure in the lines of --metric"
                            : "figures in the lines of --metric, summed over "
                              "the ranks";
    case SCALEBOOK_LINE:
        return b->is_of_job ? "the job's line to GPULAUNCH_METRIC_FD"
                            : "lines to GPULAUNCH_METRIC_FD, summed over the "
                              "ranks";
    case SCALEBOOK_STEPS:
        return b->plan->is_strong ? "steps of the slowest rank"
                                  : "steps of the slowest rank, times the "
                                    "ranks";
    case SCALEBOOK_TIME:
        return "runs of the command, from its launch to its end";
    default:
        return "";
    }
}

/* ---- the figure of a run ------------------------------------------------- */

static enum scalebook_source find_source(const struct scaleplan *plan,
                                         const struct scalebook_outcome *o)
{
    enum scalebook_source found =
        plan->is_strong ? SCALEBOOK_TIME : SCALEBOOK_NONE;
    if (plan->metric != NULL) {
        return SCALEBOOK_METRIC;
    }
    for (size_t i = 0; i < o->rank_told; i++) {
        if (o->ranks[i].text != NULL && o->ranks[i].text[0] != '\0') {
            return SCALEBOOK_LINE;
        }
        if (o->ranks[i].steps > 0) {
            found = SCALEBOOK_STEPS;
        }
    }
    return found;
}

static int take_sum(struct scalebook *b, struct scalebook_sample *s,
                    const struct metricline_figure *figures, size_t count,
                    struct gpul_error *err)
{
    struct metricline_total total;
    int rc =
        metricline_sum(&total, figures, count, s->ranks, b->plan->figures, err);
    if (rc == 0) {
        s->rate = total.value;
        s->slowest = total.is_job ? DOSSIER_UNKNOWN : total.slowest;
        b->is_of_job = b->is_of_job || total.is_job;
    }
    return rc;
}

static int take_metric(struct scalebook *b, struct scalebook_sample *s,
                       const struct scalebook_outcome *o,
                       struct gpul_error *err)
{
    int count = metricline_settle(o->figures, o->figure_count);
    if (count < 0) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    if (count == 0) {
        s->note = "no line of a rank has a number where --metric looks for it";
        return 0;
    }
    return take_sum(b, s, o->figures, (size_t)count, err);
}

static void keep_unit(struct scalebook *b, const char *unit)
{
    if (b->unit[0] == '\0' && unit[0] != '\0') {
        snprintf(b->unit, sizeof(b->unit), "%s", unit);
    }
}

static int take_lines(struct scalebook *b, struct scalebook_sample *s,
                      const struct scalebook_outcome *o, struct gpul_error *err)
{
    size_t count = 0;
    struct metricline_figure *figures =
        calloc(o->rank_told + 1, sizeof(*figures));
    if (figures == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    int rc = 0;
    for (size_t i = 0; i < o->rank_told && rc == 0; i++) {
        const struct scalebook_rank *r = &o->ranks[i];
        const char *unit = "";
        if (r->text == NULL || r->text[0] == '\0') {
            continue;
        }
        figures[count].rank = r->rank;
        if (!metricline_number(&figures[count++].value, &unit, r->text)) {
            rc = gpul_fail(err, GPUL_EINVAL,
                           "rank %" PRIu32 " wrote \"%.80s\" to "
                           "GPULAUNCH_METRIC_FD, which does not begin with a "
                           "number that is not negative",
                           r->rank, r->text);
        }
        keep_unit(b, unit);
    }
    if (rc == 0 && count > 0) {
        rc = take_sum(b, s, figures, count, err);
    } else {
        s->note = "no rank wrote a line to GPULAUNCH_METRIC_FD";
    }
    free(figures);
    return rc;
}

static int take_steps(struct scalebook *b, struct scalebook_sample *s,
                      const struct scalebook_outcome *o, struct gpul_error *err)
{
    size_t slowest = 0;
    double *seconds = calloc(s->ranks + 1, sizeof(*seconds));
    if (seconds == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < o->rank_told; i++) {
        const struct scalebook_rank *r = &o->ranks[i];
        if (r->rank < s->ranks && r->steps > 0 && isfinite(r->step_s)) {
            seconds[r->rank] = r->step_s / (double)r->steps;
        }
    }
    for (size_t i = 0; i < s->ranks; i++) {
        slowest = seconds[i] > seconds[slowest] ? i : slowest;
    }
    enum efficiency_kind kind =
        b->plan->is_strong ? EFFICIENCY_STRONG : EFFICIENCY_WEAK;
    if (efficiency_slowest(&s->step_s, seconds, s->ranks)) {
        s->rate = efficiency_step_rate(kind, s->step_s, s->ranks);
        s->slowest = (int64_t)slowest;
    } else {
        s->step_s = (double)NAN;
        s->note = "not every rank has told its steps, behind the first five; "
                  "the slowest may be one of those";
    }
    free(seconds);
    return 0;
}

static int take_figure(struct scalebook *b, struct scalebook_sample *s,
                       const struct scalebook_outcome *o,
                       struct gpul_error *err)
{
    switch (b->source) {
    case SCALEBOOK_METRIC:
        return take_metric(b, s, o, err);
    case SCALEBOOK_LINE:
        return take_lines(b, s, o, err);
    case SCALEBOOK_STEPS:
        return take_steps(b, s, o, err);
    default:
        s->rate = o->run_s > 0 ? 1 / o->run_s : (double)NAN;
        return 0;
    }
}

static bool has_figure(const struct scalebook *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (isfinite(b->samples[i].rate)) {
            return true;
        }
    }
    return false;
}

/* Of a run that went well. */
static int judge(struct scalebook *b, struct scalebook_sample *s,
                 const struct scalebook_outcome *o, struct gpul_error *err)
{
    if (b->source == SCALEBOOK_NONE) {
        b->source = find_source(b->plan, o);
    }
    if (b->source == SCALEBOOK_NONE) {
        return gpul_fail(err, GPUL_EINVAL, "%s", no_source);
    }
    int rc = take_figure(b, s, o, err);
    if (rc == 0 && !(s->rate > 0)) {
        s->rate = (double)NAN;
        s->note = s->note != NULL ? s->note : "the figure is zero";
        if (!has_figure(b)) {
            return gpul_fail(err, GPUL_EINVAL, "%s", s->note);
        }
    }
    return rc;
}

/* ---- all of a run -------------------------------------------------------- */

static void keep_rows(struct scalebook *b, const struct scaleplan_run *run,
                      const struct scalebook_outcome *o)
{
    for (size_t i = 0; i < dossier_count(o->found, DOSSIER_BANDWIDTH); i++) {
        struct dossier_bandwidth *to = dossier_add(&b->rows, DOSSIER_BANDWIDTH);
        if (to == NULL) {
            return;
        }
        *to = *(const struct dossier_bandwidth *)dossier_at(
            o->found, DOSSIER_BANDWIDTH, i);
        to->node_count = run->nodes;
        to->rank_count = o->rank_count;
        to->collective = dossier_text(&b->rows, to->collective);
        to->scope = dossier_text(&b->rows, to->scope);
        to->ceiling_kind = dossier_text(&b->rows, to->ceiling_kind);
        to->verdict = dossier_text(&b->rows, to->verdict);
    }
}

/* The nodes are those of the largest count. */
static void keep_nodes(struct scalebook *b, const struct scaleplan_run *run,
                       const struct dossier *found)
{
    if (run->place + 1 < b->plan->count_count ||
        dossier_count(&b->record, DOSSIER_NODE) > 0) {
        return;
    }
    for (size_t i = 0; i < dossier_count(found, DOSSIER_NODE); i++) {
        const struct dossier_node *from = dossier_at(found, DOSSIER_NODE, i);
        struct dossier_node *to = dossier_add(&b->record, DOSSIER_NODE);
        if (to == NULL) {
            return;
        }
        to->node_rank = from->node_rank;
        to->gpus = from->gpus;
        to->name = dossier_text(&b->record, from->name);
        to->host = dossier_text(&b->record, from->host);
        to->address = dossier_text(&b->record, from->address);
        to->interface = dossier_text(&b->record, from->interface);
    }
}

static void keep_run(struct scalebook *b, const struct scalebook_outcome *o)
{
    if (b->run.job_id == NULL) {
        b->run.job_id = dossier_text(&b->record, o->job_id);
    }
    if (o->backend != NULL && b->run.backend == NULL) {
        b->run.backend = dossier_text(&b->record, o->backend);
        b->run.is_simulated = o->is_simulated;
        b->run.may_be_simulated = o->may_be_simulated;
    }
}

static struct scalebook_sample *add_sample(struct scalebook *b)
{
    struct scalebook_sample *grown =
        realloc(b->samples, (b->count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    b->samples = grown;
    return &grown[b->count];
}

int scalebook_take(struct scalebook *b, const struct scaleplan_run *run,
                   const struct scalebook_outcome *outcome,
                   struct gpul_error *err)
{
    struct scalebook_sample *s = add_sample(b);
    if (s == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    *s = (struct scalebook_sample){.run = *run,
                                   .ranks = outcome->rank_count,
                                   .exit_code = outcome->exit_code,
                                   .rate = (double)NAN,
                                   .step_s = (double)NAN,
                                   .slowest = DOSSIER_UNKNOWN};
    keep_run(b, outcome);
    keep_rows(b, run, outcome);
    keep_nodes(b, run, outcome->found);
    int rc = 0;
    if (outcome->exit_code != 0) {
        s->note = outcome->why != NULL ? outcome->why : "the run failed";
    } else {
        rc = judge(b, s, outcome, err);
    }
    s->note = dossier_text(&b->record, rc != 0 ? err->text : s->note);
    b->count++;
    return rc;
}

/* ---- the record ---------------------------------------------------------- */

static void choose_unit(struct scalebook *b)
{
    static const char *const units[] = {
        [SCALEBOOK_NONE] = "unknown", [SCALEBOOK_METRIC] = "units/s",
        [SCALEBOOK_LINE] = "units/s", [SCALEBOOK_STEPS] = "rank steps/s",
        [SCALEBOOK_TIME] = "runs/s",
    };
    if (b->plan->unit != NULL) {
        b->unit[0] = '\0';
        keep_unit(b, b->plan->unit);
    }
    keep_unit(b, b->source == SCALEBOOK_STEPS && b->plan->is_strong
                     ? "steps/s"
                     : units[b->source]);
}

static void add_samples(struct scalebook *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct scalebook_sample *s = &b->samples[i];
        struct dossier_sample *to = dossier_add(&b->record, DOSSIER_SAMPLE);
        if (to == NULL) {
            return;
        }
        to->node_count = s->run.nodes;
        to->rank_count = s->ranks;
        to->repeat = s->run.repeat;
        to->throughput = s->rate;
        to->unit = dossier_text(&b->record, b->unit);
        to->step_s = s->step_s;
        to->slowest_rank = s->slowest;
        to->exit_code = s->exit_code;
        to->note = s->note;
    }
}

struct dossier_fit *scalebook_add_fit(struct scalebook *b, const char *model,
                                      const char *note)
{
    struct dossier_fit *fit = dossier_add(&b->record, DOSSIER_FIT);
    if (fit != NULL) {
        fit->model = model;
        fit->note = dossier_text(&b->record, note);
    }
    return fit;
}

static void add_run(struct scalebook *b, const struct scalebook_end *end)
{
    const struct scaleplan *plan = b->plan;
    struct dossier_run *run = dossier_add(&b->record, DOSSIER_RUN);
    if (run == NULL) {
        return;
    }
    run->schema_version = DOSSIER_SCHEMA_VERSION;
    run->version = GPULAUNCH_VERSION;
    run->verb = "scale";
    run->job_id = b->run.job_id != NULL ? b->run.job_id : "none";
    run->started_unix_s = end->started_unix_s;
    run->node_count = plan->counts[plan->count_count - 1];
    run->backend = b->run.backend;
    run->is_simulated = b->run.is_simulated;
    run->may_be_simulated = b->run.may_be_simulated;
    dossier_put_command(&b->record, run, end->command, end->command_count);
}

/* The first run on the first count of nodes that gave no figure; NULL: each
 * did, as far as it was tried. */
static const struct scalebook_sample *find_failure(const struct scalebook *b)
{
    for (size_t place = 0; place < b->plan->count_count; place++) {
        const struct scalebook_sample *first = NULL;
        bool has_any = false;
        for (size_t i = 0; i < b->count; i++) {
            const struct scalebook_sample *s = &b->samples[i];
            if (s->run.place == place) {
                first = first != NULL ? first : s;
                has_any = has_any || isfinite(s->rate);
            }
        }
        if (first != NULL && !has_any) {
            return first;
        }
    }
    return NULL;
}

enum { MESSAGE_BYTES = 600, EXIT_NO_FIGURE = 1 };

static int add_end(struct scalebook *b, const struct scalebook_end *from)
{
    char text[MESSAGE_BYTES];
    const struct scalebook_sample *failed = find_failure(b);
    struct dossier_end *end = dossier_add(&b->record, DOSSIER_END);
    int code = from->exit_code;
    const char *reason = from->reason, *message = from->message;
    if (code == 0 && failed != NULL) {
        code = failed->exit_code != 0 ? failed->exit_code : EXIT_NO_FIGURE;
        reason = "no_figure";
        snprintf(text, sizeof(text),
                 "no run on %" PRIu32 " node%s gave a "
                 "figure: %s",
                 failed->run.nodes, gpul_plural(failed->run.nodes),
                 failed->note != NULL ? failed->note : "none was told");
        message = text;
    } else if (code == 0) {
        reason = "success";
        snprintf(text, sizeof(text), "throughput: %s",
                 scalebook_source_text(b));
        message = text;
    }
    if (end != NULL) {
        end->exit_code = code;
        end->reason = dossier_text(&b->record, reason);
        end->message = dossier_text(&b->record, message);
        end->duration_s = from->duration_s;
        dossier_count_findings(&b->record, end);
    }
    return code;
}

int scalebook_finish(struct scalebook *b, const struct scalebook_end *end)
{
    choose_unit(b);
    add_run(b, end);
    add_samples(b);
    scalebook_add_bandwidths(b);
    scalebook_add_efficiencies(b);
    return add_end(b, end);
}
