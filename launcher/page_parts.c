/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "launcher/chart.h"
#include "launcher/page.h"

/* ---- findings ---- */

static void draw_finding(struct gpul_buf *out, const struct dossier_finding *f)
{
    gpul_buf_append_text(out, "<tr><td class=\"");
    chart_text(out, f->severity);
    gpul_buf_append_text(out, "\">");
    chart_text(out, f->severity);
    gpul_buf_append_text(out, "</td><td class=\"id\">");
    chart_text(out, f->id);
    gpul_buf_append_text(out, "</td><td>");
    page_names(out, &f->nodes);
    gpul_buf_append_text(out, "</td><td>");
    chart_text(out, f->text);
    if (f->value != NULL) {
        gpul_buf_append_text(out, "<br><span class=\"soft\">found ");
        chart_text(out, f->value);
        gpul_buf_append_text(out, f->expected != NULL ? ", expected " : "");
        chart_text(out, f->expected);
        gpul_buf_append_text(out, "</span>");
    }
    gpul_buf_append_text(out, "</td>");
    page_cell(out, f->remedy);
    gpul_buf_append_text(out, "</tr>\n");
}

static size_t draw_severity(struct gpul_buf *out, const struct dossier *d,
                            const char *severity)
{
    size_t drawn = 0;
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FINDING); i++) {
        const struct dossier_finding *f = dossier_at(d, DOSSIER_FINDING, i);
        if (dossier_is(f->severity, severity)) {
            draw_finding(out, f);
            drawn++;
        }
    }
    return drawn;
}

static const char finding_head[] =
    "<div class=\"wide\"><table class=\"stack\"><thead><tr><th></th><th>check"
    "</th><th>nodes</th><th>what</th><th>what to do</th></tr></thead><tbody>\n";
static const char table_end[] = "</tbody></table></div>\n";

void page_findings(struct gpul_buf *out, const struct dossier *d)
{
    if (dossier_count(d, DOSSIER_FINDING) == 0) {
        return;
    }
    gpul_buf_append_text(out, "<h2>Findings</h2>\n");
    gpul_buf_append_text(out, finding_head);
    size_t drawn = draw_severity(out, d, "fail");
    drawn += draw_severity(out, d, "unknown");
    drawn += draw_severity(out, d, "warn");
    gpul_buf_append_text(out, table_end);
    if (drawn == 0) {
        gpul_buf_append_text(out, "<p class=\"none\">Nothing to do.</p>\n");
    }
    if (drawn < dossier_count(d, DOSSIER_FINDING)) {
        gpul_buf_appendf(out, "<details><summary>%zu passed</summary>\n",
                         dossier_count(d, DOSSIER_FINDING) - drawn);
        gpul_buf_append_text(out, finding_head);
        draw_severity(out, d, "pass");
        gpul_buf_append_text(out, table_end);
        gpul_buf_append_text(out, "</details>\n");
    }
}

/* ---- verdicts ---- */

static const char *verdict_class(const struct dossier_verdict *v)
{
    return dossier_is(v->state, "ok")        ? "pass"
           : dossier_is(v->state, "unknown") ? "unknown"
                                             : "fail";
}

static void draw_verdict(struct gpul_buf *out, const struct dossier_verdict *v)
{
    gpul_buf_append_text(out, "<tr><td>");
    chart_text(out, v->what);
    gpul_buf_append_text(out, " <b>");
    page_names(out, &v->nodes);
    gpul_buf_appendf(out, "</b></td><td class=\"%s\">", verdict_class(v));
    chart_text(out, v->state);
    if (v->direction != NULL && !dossier_is(v->direction, "both")) {
        gpul_buf_append_text(out, " (");
        chart_text(out, v->direction);
        gpul_buf_append_text(out, ")");
    }
    gpul_buf_append_text(out, "</td>");
    page_cell(out, v->rail);
    page_cell(out, v->text);
    if (v->rounds != DOSSIER_UNKNOWN) {
        gpul_buf_appendf(out, "<td>after %" PRId64 " round%s</td>", v->rounds,
                         v->rounds == 1 ? "" : "s");
    }
    gpul_buf_append_text(out, "</tr>\n");
}

void page_verdicts(struct gpul_buf *out, const struct dossier *d)
{
    if (dossier_count(d, DOSSIER_VERDICT) == 0) {
        return;
    }
    gpul_buf_append_text(out, "<h2>Nodes and paths</h2>\n<div class=\"wide\">"
                              "<table class=\"stack\"><tbody>\n");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_VERDICT); i++) {
        draw_verdict(out, dossier_at(d, DOSSIER_VERDICT, i));
    }
    gpul_buf_append_text(out, table_end);
}

/* ---- nodes ---- */

static void draw_map(struct gpul_buf *out, const struct dossier_map *map,
                     const char *class)
{
    for (size_t i = 0; i < map->count; i++) {
        gpul_buf_append_text(out, "<tr><td class=\"id\">");
        chart_text(out, map->keys[i]);
        gpul_buf_appendf(out, "</td><td class=\"%s\">", class);
        chart_text(out, map->values[i]);
        gpul_buf_append_text(out, "</td></tr>\n");
    }
}

static void draw_node(struct gpul_buf *out, const struct dossier_node *n)
{
    gpul_buf_append_text(out, "<details><summary><b>");
    chart_text(out, n->name);
    gpul_buf_append_text(out, "</b> ");
    chart_text(out, n->host);
    gpul_buf_append_text(out, " ");
    chart_text(out, n->address);
    if (n->interface != NULL) {
        gpul_buf_append_text(out, " on ");
        chart_text(out, n->interface);
    }
    if (n->gpus != DOSSIER_UNKNOWN) {
        gpul_buf_appendf(out, ", %" PRId64 " GPU%s", n->gpus,
                         n->gpus == 1 ? "" : "s");
    }
    gpul_buf_append_text(out, "</summary><div class=\"wide\"><table>"
                              "<tbody>\n");
    for (size_t i = 0; i < n->rejected.count; i++) {
        gpul_buf_append_text(out, "<tr><td class=\"id\">not used</td>");
        page_cell(out, n->rejected.items[i]);
        gpul_buf_append_text(out, "</tr>\n");
    }
    draw_map(out, &n->unknown, "unknown");
    draw_map(out, &n->facts, "");
    gpul_buf_append_text(out, table_end);
    gpul_buf_append_text(out, "</details>\n");
}

void page_nodes(struct gpul_buf *out, const struct dossier *d)
{
    if (dossier_count(d, DOSSIER_NODE) == 0) {
        return;
    }
    gpul_buf_append_text(out, "<h2>Nodes</h2>\n");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_NODE); i++) {
        draw_node(out, dossier_at(d, DOSSIER_NODE, i));
    }
}
