/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/junit.h"

#include <inttypes.h>
#include <math.h>

#include "common/error.h"
#include "launcher/chart.h"

enum outcome { PASSED, WARNED, FAILED, SKIPPED, BROKEN };

struct suite {
    struct gpul_buf cases;
    size_t counts[BROKEN + 1];
    const char *name; /* of the verb */
};

static void open_case(struct suite *s, const char *group)
{
    gpul_buf_append_text(&s->cases, "  <testcase classname=\"gpulaunch.");
    chart_text(&s->cases, s->name);
    gpul_buf_appendf(&s->cases, ".%s\" name=\"", group);
}

/* Behind the name: what came of it, and its text. */
static void close_case(struct suite *s, enum outcome outcome, const char *text)
{
    static const char *const elements[] = {
        [WARNED] = "system-out",
        [FAILED] = "failure",
        [SKIPPED] = "skipped",
        [BROKEN] = "error",
    };
    s->counts[outcome]++;
    if (outcome == PASSED) {
        gpul_buf_append_text(&s->cases, "\"/>\n");
        return;
    }
    gpul_buf_appendf(&s->cases, "\"><%s", elements[outcome]);
    gpul_buf_append_text(&s->cases, outcome == WARNED ? ">" : " message=\"");
    chart_text(&s->cases, text);
    if (outcome == WARNED) {
        gpul_buf_append_text(&s->cases, "</system-out>");
    } else {
        gpul_buf_append_text(&s->cases, "\"/>");
    }
    gpul_buf_append_text(&s->cases, "</testcase>\n");
}

static enum outcome severity_outcome(const char *severity)
{
    return dossier_is(severity, "pass")   ? PASSED
           : dossier_is(severity, "warn") ? WARNED
           : dossier_is(severity, "fail") ? FAILED
                                          : SKIPPED;
}

static void append_names(struct gpul_buf *out, const struct dossier_texts *list)
{
    for (size_t i = 0; i < list->count; i++) {
        gpul_buf_append_text(out, i > 0 ? "," : " ");
        chart_text(out, list->items[i]);
    }
}

static void add_finding(struct suite *s, const struct dossier_finding *f)
{
    struct gpul_buf text;
    gpul_buf_init(&text, s->cases.bytes_max);
    gpul_buf_append_text(&text, f->text != NULL ? f->text : "");
    if (f->remedy != NULL) {
        gpul_buf_appendf(&text, " -> %s", f->remedy);
    }
    open_case(s, "finding");
    chart_text(&s->cases, f->id);
    append_names(&s->cases, &f->nodes);
    close_case(s, severity_outcome(f->severity), gpul_buf_text(&text));
    gpul_buf_release(&text);
}

static void add_verdict(struct suite *s, const struct dossier_verdict *v)
{
    enum outcome outcome = dossier_is(v->state, "ok")          ? PASSED
                           : dossier_is(v->state, "unknown")   ? SKIPPED
                           : dossier_is(v->state, "congested") ? WARNED
                                                               : FAILED;
    open_case(s, "network");
    chart_text(&s->cases, v->what);
    append_names(&s->cases, &v->nodes);
    if (v->rail != NULL) {
        gpul_buf_append_text(&s->cases, " on ");
        chart_text(&s->cases, v->rail);
    }
    close_case(s, outcome, v->text);
}

static void add_bandwidth(struct suite *s, const struct dossier_bandwidth *b)
{
    enum outcome outcome = dossier_is(b->verdict, "slow")   ? FAILED
                           : dossier_is(b->verdict, "low")  ? WARNED
                           : dossier_is(b->verdict, "good") ? PASSED
                                                            : SKIPPED;
    if (b->verdict == NULL) {
        return;
    }
    open_case(s, "bandwidth");
    chart_text(&s->cases, b->collective);
    gpul_buf_appendf(&s->cases, " %" PRId64 " bytes, %" PRId64 " nodes, ",
                     b->bytes, b->node_count);
    chart_text(&s->cases, b->scope);
    struct gpul_buf text;
    gpul_buf_init(&text, s->cases.bytes_max);
    gpul_buf_appendf(&text, "%s: busbw ", b->verdict);
    chart_figure(&text, b->busbw, CHART_RATE);
    gpul_buf_append_text(&text, " of ");
    chart_figure(&text, b->ceiling, CHART_RATE);
    close_case(s, outcome, gpul_buf_text(&text));
    gpul_buf_release(&text);
}

static void add_all(struct suite *s, const struct dossier *d)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FINDING); i++) {
        add_finding(s, dossier_at(d, DOSSIER_FINDING, i));
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_VERDICT); i++) {
        add_verdict(s, dossier_at(d, DOSSIER_VERDICT, i));
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        add_bandwidth(s, dossier_at(d, DOSSIER_BANDWIDTH, i));
    }
    if (dossier_end(d) == NULL) {
        open_case(s, "record");
        gpul_buf_append_text(&s->cases, "end");
        close_case(s, BROKEN, "the record has no end: it was cut short");
    }
}

int junit_draw(struct gpul_buf *out, const struct dossier *d)
{
    struct suite s = {.name = dossier_run(d)->verb};
    const struct dossier_end *end = dossier_end(d);
    size_t total = 0;
    gpul_buf_init(&s.cases, out->bytes_max);
    add_all(&s, d);
    for (size_t i = 0; i <= BROKEN; i++) {
        total += s.counts[i];
    }
    gpul_buf_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                              "<testsuites><testsuite name=\"gpulaunch ");
    chart_text(out, s.name);
    gpul_buf_append_text(out, dossier_run(d)->is_simulated ? " (SIMULATED)\""
                                                           : "\"");
    gpul_buf_appendf(out,
                     " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                     "skipped=\"%zu\"",
                     total, s.counts[FAILED], s.counts[BROKEN],
                     s.counts[SKIPPED]);
    if (end != NULL && isfinite(end->duration_s)) {
        gpul_buf_appendf(out, " time=\"%.3f\"", end->duration_s);
    }
    gpul_buf_append_text(out, ">\n");
    gpul_buf_append(out, s.cases.data, s.cases.used);
    gpul_buf_append_text(out, "</testsuite></testsuites>\n");
    bool is_failed = s.cases.is_failed || out->is_failed;
    gpul_buf_release(&s.cases);
    return is_failed ? GPUL_ELIMIT : 0;
}
