/* SPDX-License-Identifier: Apache-2.0
 *
 * From the samples of a sweep to efficiencies, fits of them and predictions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/efficiency.h"
#include "launcher/scalebook_inside.h"
#include "launcher/scalefit.h"

/* The same record for the same samples. */
enum { SEED = 20 };

enum { NOTE_BYTES = 1024, COMPARABLE_NODES_MIN = 3 };

/* Points of the counts that were tried. */
struct measured {
    struct efficiency_point points[SCALEPLAN_COUNTS_MAX];
    size_t count;
    size_t reference; /* SIZE_MAX: none has a figure */
    double *rates;    /* owned, of all points */
};

static bool has_figure(const struct efficiency_point *point)
{
    double figures[EFFICIENCY_REPEATS_MAX];
    return efficiency_figures(figures, point) > 0;
}

/* The ranks are those of a run that was complete; of none they have no say. */
static void gather_place(struct measured *m, const struct scalebook *b,
                         size_t place, double *rates)
{
    struct efficiency_point point = {.nodes = b->plan->counts[place],
                                     .ranks = b->plan->counts[place],
                                     .rates = rates};
    for (size_t i = 0; i < b->count; i++) {
        const struct scalebook_sample *s = &b->samples[i];
        if (s->run.place == place) {
            rates[point.repeats++] = s->rate;
            point.ranks = s->ranks > 0 ? s->ranks : point.ranks;
        }
    }
    if (point.repeats > 0) {
        m->points[m->count++] = point;
    }
}

static bool gather(struct measured *m, const struct scalebook *b)
{
    *m = (struct measured){.reference = SIZE_MAX};
    m->rates = calloc(b->count + 1, sizeof(*m->rates));
    double *rates = m->rates;
    for (size_t place = 0; place < b->plan->count_count && m->rates != NULL;
         place++) {
        size_t before = m->count;
        gather_place(m, b, place, rates);
        rates += m->count > before ? m->points[before].repeats : 0;
    }
    for (size_t i = m->count; i-- > 0;) {
        bool is_asked =
            b->plan->reference == 0 || b->plan->reference == m->points[i].nodes;
        if (is_asked && has_figure(&m->points[i])) {
            m->reference = i;
        }
    }
    return m->rates != NULL;
}

/* ---- efficiencies -------------------------------------------------------- */

static enum efficiency_kind kind_of(const struct scalebook *b)
{
    return b->plan->is_strong ? EFFICIENCY_STRONG : EFFICIENCY_WEAK;
}

static void write_note(struct gpul_buf *note, const struct efficiency_row *row,
                       uint32_t nodes, double busbw)
{
    efficiency_remarks_text(note, row);
    if (row->failed > 0 && row->rates.count > 0) {
        gpul_buf_appendf(note, "%s%zu repeat%s gave no figure",
                         note->used > 0 ? "; " : "", row->failed,
                         gpul_plural(row->failed));
    }
    if (isfinite(busbw) && nodes < COMPARABLE_NODES_MIN) {
        gpul_buf_appendf(note,
                         "%sbusbw of two nodes is not comparable with "
                         "that of more",
                         note->used > 0 ? "; " : "");
    }
}

static void put_row(struct scalebook *b, struct dossier_efficiency *to,
                    const struct efficiency_row *row, bool has_reference)
{
    struct gpul_buf note;
    gpul_buf_init(&note, NOTE_BYTES);
    to->busbw = scalebook_busbw(b, row->nodes);
    to->is_comparable = row->nodes >= COMPARABLE_NODES_MIN;
    to->repeats = (int64_t)row->rates.count;
    if (row->rates.count > 0) {
        to->throughput = row->rates.median;
        to->throughput_low = row->rates.min;
        to->throughput_high = row->rates.max;
    }
    if (row->rates.count > 0 && has_reference) {
        to->efficiency = row->efficiency;
        to->efficiency_low = row->interval.low;
        to->efficiency_high = row->interval.high;
    }
    write_note(&note, row, row->nodes, to->busbw);
    to->note = dossier_text(&b->record, gpul_buf_text(&note));
    gpul_buf_release(&note);
}

/* Against no reference there are throughputs still: those against any point
 * that has a figure, less its efficiency. */
static void add_rows(struct scalebook *b, const struct measured *m)
{
    struct efficiency_row rows[SCALEPLAN_COUNTS_MAX] = {0};
    bool has_reference = m->reference != SIZE_MAX;
    size_t reference = has_reference ? m->reference : 0;
    while (!has_reference && reference + 1 < m->count &&
           !has_figure(&m->points[reference])) {
        reference++;
    }
    bool is_made = efficiency_make(rows, m->points, m->count, reference,
                                   kind_of(b), SEED, NULL) == 0;
    for (size_t i = 0; i < m->count; i++) {
        struct dossier_efficiency *to =
            dossier_add(&b->record, DOSSIER_EFFICIENCY);
        if (to == NULL) {
            return;
        }
        to->node_count = m->points[i].nodes;
        to->reference_node_count = has_reference ? m->points[m->reference].nodes
                                   : b->plan->reference != 0
                                       ? b->plan->reference
                                       : b->plan->counts[0];
        to->scaling = efficiency_kind_name(kind_of(b));
        to->unit = b->unit;
        to->repeats = 0;
        if (is_made) {
            put_row(b, to, &rows[i], has_reference);
        } else {
            to->note = efficiency_remark_text(EFFICIENCY_NO_FIGURE);
        }
    }
}

/* ---- fits and predictions ------------------------------------------------ */

static void add_model(struct scalebook *b, const struct scalefit *fit,
                      enum scalefit_shape shape)
{
    static const char *const models[SCALEFIT_SHAPES] = {
        "scaling: step",     "scaling: ring",    "scaling: log",
        "scaling: linear",   "scaling: n log n", "scaling: quadratic",
        "scaling: universal"};
    const struct scalefit_model *model = &fit->models[shape];
    const char *note = shape == fit->best  ? "the least error of all"
                       : model->is_refuted ? "refuted by the points"
                                           : NULL;
    struct dossier_fit *to = scalebook_add_fit(b, models[shape], note);
    if (to == NULL) {
        return;
    }
    to->max_relative_error = model->error_max;
    to->is_usable = !model->is_refuted;
    dossier_put_figure(&b->record, &to->parameters, "c", model->c);
    if (shape != SCALEFIT_UNIVERSAL) {
        dossier_put_figure(&b->record, &to->parameters, "d", model->d);
        return;
    }
    double peak = scalefit_peak_nodes(fit);
    dossier_put_figure(&b->record, &to->parameters, "s", model->d / model->c);
    dossier_put_figure(&b->record, &to->parameters, "q", model->e / model->c);
    if (peak > 0) {
        dossier_put_figure(&b->record, &to->parameters, "peak_nodes", peak);
    }
}

/* What is said of it says already that there is none. */
static const char *reason(const char *text)
{
    static const char prefix[] = "no prediction: ";
    size_t n = sizeof(prefix) - 1;
    return strncmp(text, prefix, n) == 0 ? text + n : text;
}

static void add_prediction(struct scalebook *b, const struct scalefit *fit,
                           uint32_t nodes, const char *why)
{
    struct scalefit_prediction p;
    struct gpul_error err = {0};
    struct dossier_prediction *to = dossier_add(&b->record, DOSSIER_PREDICTION);
    if (to == NULL) {
        return;
    }
    to->node_count = nodes;
    if (fit == NULL) {
        to->refused = dossier_text(&b->record, reason(why));
        return;
    }
    for (size_t i = 0; i < fit->count; i++) {
        dossier_put_figure(&b->record, &to->from, NULL, fit->points[i].nodes);
    }
    if (scalefit_predict(&p, fit, nodes, SEED, &err) != 0) {
        to->refused = dossier_text(&b->record, reason(err.text));
        return;
    }
    to->efficiency = p.efficiency.value;
    to->efficiency_low = p.efficiency.interval.low;
    to->efficiency_high = p.efficiency.interval.high;
    to->throughput = p.rate.value;
    to->extrapolation = p.efficiency.extrapolation;
}

/* Only counts that gave a figure can be fitted. */
static size_t drop_empty(struct measured *m)
{
    size_t kept = 0, reference = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (has_figure(&m->points[i])) {
            reference = i == m->reference ? kept : reference;
            m->points[kept++] = m->points[i];
        }
    }
    m->count = kept;
    return reference;
}

static void add_models(struct scalebook *b, struct measured *m)
{
    struct scalefit fit;
    struct gpul_error err = {0};
    bool has_reference = m->reference != SIZE_MAX;
    size_t reference = drop_empty(m);
    int rc = has_reference
                 ? scalefit_make(&fit, m->points, m->count, reference, &err)
                 : gpul_fail(&err, GPUL_EINVAL,
                             "no figure on the nodes that all stand against");
    if (rc != 0 && m->count > 1) {
        scalebook_add_fit(b, "scaling", reason(err.text));
    }
    for (enum scalefit_shape i = 0; i < SCALEFIT_SHAPES && rc == 0; i++) {
        if (fit.models[i].is_fitted) {
            add_model(b, &fit, i);
        }
    }
    for (size_t i = 0; i < b->plan->prediction_count; i++) {
        add_prediction(b, rc == 0 ? &fit : NULL, b->plan->predictions[i],
                       err.text);
    }
}

void scalebook_add_efficiencies(struct scalebook *b)
{
    struct measured m;
    if (gather(&m, b)) {
        add_rows(b, &m);
        add_models(b, &m);
    } else {
        b->record.is_failed = true;
    }
    free(m.rates);
}
