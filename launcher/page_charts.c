/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/chart.h"
#include "launcher/page.h"

enum { SERIES_MAX = 2 * CHART_COLOURS, LABEL_BYTES = 64, BLOCKS_MAX = 24 };

/* ---- bandwidth against size ---- */

/* Rows of one collective in one scope. */
struct block {
    const char *collective;
    const char *scope;
};

static const struct dossier_bandwidth *row_at(const struct dossier *d, size_t i)
{
    return dossier_at(d, DOSSIER_BANDWIDTH, i);
}

static bool is_in_block(const struct dossier_bandwidth *row,
                        const struct block *block)
{
    return dossier_is(row->collective, block->collective) &&
           dossier_is(row->scope, block->scope);
}

static size_t find_blocks(struct block *blocks, const struct dossier *d)
{
    size_t count = 0;
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *row = row_at(d, i);
        size_t at = 0;
        while (at < count && !is_in_block(row, &blocks[at])) {
            at++;
        }
        if (at == count && count < BLOCKS_MAX) {
            blocks[count++] = (struct block){row->collective, row->scope};
        }
    }
    return count;
}

/* The series of a chart, with room for all points of the dossier in each. */
struct canvas {
    struct chart_series series[SERIES_MAX];
    char labels[SERIES_MAX][LABEL_BYTES];
    double *points; /* owned: x, y, low, high of each series */
    size_t room;
    size_t count;
    unsigned colours; /* that were given out */
};

static bool canvas_init(struct canvas *c, size_t room)
{
    *c = (struct canvas){.room = room};
    c->points = calloc(SERIES_MAX * 4 * room + 1, sizeof(*c->points));
    return c->points != NULL;
}

static struct chart_series *canvas_add(struct canvas *c, unsigned colour,
                                       bool is_dashed)
{
    double *at = c->points + c->count * 4 * c->room;
    struct chart_series *s = &c->series[c->count];
    *s = (struct chart_series){
        .label = c->labels[c->count],
        .x = at,
        .y = at + c->room,
        .colour = colour,
        .is_dashed = is_dashed,
    };
    c->count++;
    return s;
}

static void add_point(const struct canvas *c, struct chart_series *s, double x,
                      double y)
{
    double *at = c->points + (size_t)(s - c->series) * 4 * c->room;
    at[s->count] = x;
    at[c->room + s->count] = y;
    s->count++;
}

static void add_spread(const struct canvas *c, struct chart_series *s,
                       double low, double high)
{
    double *at = c->points + (size_t)(s - c->series) * 4 * c->room;
    s->low = at + 2 * c->room;
    s->high = at + 3 * c->room;
    at[2 * c->room + s->count - 1] = low;
    at[3 * c->room + s->count - 1] = high;
}

static bool is_drawn_already(const struct dossier *d, const struct block *block,
                             size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (is_in_block(row_at(d, k), block) &&
            row_at(d, k)->node_count == row_at(d, i)->node_count) {
            return true;
        }
    }
    return false;
}

/* What was measured on so many nodes, and its ceiling. */
static void add_node_count(struct canvas *c, const struct dossier *d,
                           const struct block *block, int64_t node_count)
{
    unsigned colour = c->colours++;
    struct chart_series *measured = canvas_add(c, colour, false);
    struct chart_series *ceiling = canvas_add(c, colour, true);
    const char *kind = NULL;
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *row = row_at(d, i);
        if (is_in_block(row, block) && row->node_count == node_count) {
            add_point(c, measured, (double)row->bytes, row->busbw);
            add_point(c, ceiling, (double)row->bytes, row->ceiling);
            kind = row->ceiling_kind != NULL ? row->ceiling_kind : kind;
        }
    }
    snprintf(c->labels[c->count - 2], LABEL_BYTES, "%" PRId64 " node%s",
             node_count, node_count == 1 ? "" : "s");
    snprintf(c->labels[c->count - 1], LABEL_BYTES, "ceiling (%s)",
             kind != NULL ? kind : "not known");
    if (kind == NULL) {
        c->count--;
    }
}

static void draw_block(struct gpul_buf *out, const struct dossier *d,
                       const struct block *block)
{
    struct canvas canvas;
    if (!canvas_init(&canvas, dossier_count(d, DOSSIER_BANDWIDTH))) {
        out->is_failed = true;
        return;
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        bool is_new =
            is_in_block(row_at(d, i), block) && !is_drawn_already(d, block, i);
        if (is_new && canvas.count + 2 <= SERIES_MAX) {
            add_node_count(&canvas, d, block, row_at(d, i)->node_count);
        }
    }
    gpul_buf_append_text(out, "<h3>");
    chart_text(out, block->collective);
    gpul_buf_append_text(
        out, dossier_is(block->scope, "node") ? ", within each node" : "");
    gpul_buf_append_text(out, "</h3>\n");
    struct chart chart = {
        .title = "bus bandwidth against message size",
        .x_label = "message size; bus bandwidth by its median time",
        .x_unit = CHART_BYTES,
        .y_unit = CHART_RATE,
        .series = canvas.series,
        .series_count = canvas.count,
    };
    chart_draw(out, &chart);
    free(canvas.points);
}

static void draw_rows(struct gpul_buf *out, const struct dossier *d)
{
    gpul_buf_append_text(
        out, "<details><summary>All figures</summary><div class=\"wide\">"
             "<table><thead><tr><th>collective</th><th>nodes</th><th>size</th>"
             "<th>time</th><th>busbw</th><th>ceiling</th><th>verdict</th>"
             "</tr></thead><tbody>\n");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *row = row_at(d, i);
        gpul_buf_append_text(out, "<tr>");
        page_cell(out, row->collective);
        gpul_buf_appendf(out,
                         "<td class=\"n\">%" PRId64 "</td><td class=\"n\">",
                         row->node_count);
        chart_figure(out, (double)row->bytes, CHART_BYTES);
        gpul_buf_append_text(out, "</td><td class=\"n\">");
        chart_figure(out, row->median_s * 1e6, CHART_COUNT);
        gpul_buf_append_text(out, " &#181;s</td><td class=\"n\">");
        chart_figure(out, row->busbw, CHART_RATE);
        gpul_buf_append_text(out, "</td><td class=\"n\">");
        chart_figure(out, row->ceiling, CHART_RATE);
        gpul_buf_append_text(out, "</td>");
        page_cell(out, row->verdict);
        gpul_buf_append_text(out, "</tr>\n");
    }
    gpul_buf_append_text(out, "</tbody></table></div></details>\n");
}

void page_bandwidths(struct gpul_buf *out, const struct dossier *d)
{
    struct block blocks[BLOCKS_MAX];
    size_t count = find_blocks(blocks, d);
    if (count == 0) {
        return;
    }
    gpul_buf_append_text(out, "<h2>Bandwidth against size</h2>\n");
    for (size_t i = 0; i < count; i++) {
        draw_block(out, d, &blocks[i]);
    }
    draw_rows(out, d);
}

/* ---- efficiency against the number of nodes ---- */

static void add_efficiencies(struct canvas *c, const struct dossier *d)
{
    struct chart_series *ideal = canvas_add(c, CHART_COLOURS - 1, true);
    struct chart_series *measured = canvas_add(c, 0, false);
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        const struct dossier_efficiency *e =
            dossier_at(d, DOSSIER_EFFICIENCY, i);
        add_point(c, ideal, (double)e->node_count, 1);
        add_point(c, measured, (double)e->node_count, e->efficiency);
        add_spread(c, measured, e->efficiency_low, e->efficiency_high);
    }
    snprintf(c->labels[0], LABEL_BYTES, "ideal");
    snprintf(c->labels[1], LABEL_BYTES, "measured, with its spread");
}

static void add_predictions(struct canvas *c, const struct dossier *d)
{
    struct chart_series *predicted = canvas_add(c, 1, true);
    for (size_t i = 0; i < dossier_count(d, DOSSIER_PREDICTION); i++) {
        const struct dossier_prediction *p =
            dossier_at(d, DOSSIER_PREDICTION, i);
        if (p->refused == NULL) {
            add_point(c, &c->series[0], (double)p->node_count, 1);
            add_point(c, predicted, (double)p->node_count, p->efficiency);
            add_spread(c, predicted, p->efficiency_low, p->efficiency_high);
        }
    }
    snprintf(c->labels[2], LABEL_BYTES, "predicted, with its interval");
    c->count -= predicted->count == 0;
}

static void draw_efficiencies(struct gpul_buf *out, const struct dossier *d)
{
    struct canvas canvas;
    size_t room = dossier_count(d, DOSSIER_EFFICIENCY) +
                  dossier_count(d, DOSSIER_PREDICTION);
    if (!canvas_init(&canvas, room)) {
        out->is_failed = true;
        return;
    }
    add_efficiencies(&canvas, d);
    add_predictions(&canvas, d);
    struct chart chart = {
        .title = "scaling efficiency against the number of nodes",
        .x_label = "nodes",
        .x_unit = CHART_COUNT,
        .y_unit = CHART_PERCENT,
        .series = canvas.series,
        .series_count = canvas.count,
    };
    chart_draw(out, &chart);
    free(canvas.points);
}

static void draw_efficiency_row(struct gpul_buf *out,
                                const struct dossier_efficiency *e)
{
    gpul_buf_appendf(out,
                     "<tr><td class=\"n\">%" PRId64 "</td>"
                     "<td class=\"n\">",
                     e->node_count);
    chart_figure(out, e->throughput, CHART_COUNT);
    gpul_buf_append_text(out, "</td><td class=\"n\">");
    chart_figure(out, e->throughput_low, CHART_COUNT);
    gpul_buf_append_text(out, " to ");
    chart_figure(out, e->throughput_high, CHART_COUNT);
    gpul_buf_append_text(out, "</td>");
    page_cell(out, e->unit);
    gpul_buf_append_text(out, "<td class=\"n\">");
    chart_figure(out, e->efficiency, CHART_PERCENT);
    gpul_buf_append_text(out, "</td><td class=\"n\">");
    chart_figure(out, e->busbw, CHART_RATE);
    gpul_buf_append_text(out, "</td>");
    page_cell(out, e->note);
    gpul_buf_append_text(out, "</tr>\n");
}

static void draw_prediction(struct gpul_buf *out,
                            const struct dossier_prediction *p)
{
    gpul_buf_appendf(out, "<li>%" PRId64 " nodes: ", p->node_count);
    if (p->refused != NULL) {
        gpul_buf_append_text(out, "no prediction: ");
        chart_text(out, p->refused);
    } else {
        chart_figure(out, p->efficiency, CHART_PERCENT);
        gpul_buf_append_text(out, " (");
        chart_figure(out, p->efficiency_low, CHART_PERCENT);
        gpul_buf_append_text(out, " to ");
        chart_figure(out, p->efficiency_high, CHART_PERCENT);
        gpul_buf_append_text(out, "), extrapolated by a factor of ");
        chart_figure(out, p->extrapolation, CHART_COUNT);
    }
    gpul_buf_append_text(out, "</li>\n");
}

static void draw_fit(struct gpul_buf *out, const struct dossier_fit *fit)
{
    gpul_buf_append_text(out, "<li>");
    chart_text(out, fit->model);
    gpul_buf_append_text(out, ": ");
    for (size_t i = 0; i < fit->parameters.count; i++) {
        gpul_buf_append_text(out, i > 0 ? ", " : "");
        chart_text(out, fit->parameters.keys[i]);
        gpul_buf_appendf(out, " = %.3g", fit->parameters.values[i]);
    }
    gpul_buf_append_text(out, "; largest error ");
    chart_figure(out, fit->max_relative_error, CHART_PERCENT);
    if (fit->note != NULL) {
        gpul_buf_append_text(out, "; ");
        chart_text(out, fit->note);
    }
    gpul_buf_append_text(out,
                         fit->is_usable ? "</li>\n" : " (not used)</li>\n");
}

static void draw_models(struct gpul_buf *out, const struct dossier *d)
{
    gpul_buf_append_text(out, "<ul>\n");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_PREDICTION); i++) {
        draw_prediction(out, dossier_at(d, DOSSIER_PREDICTION, i));
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FIT); i++) {
        draw_fit(out, dossier_at(d, DOSSIER_FIT, i));
    }
    gpul_buf_append_text(out, "</ul>\n");
}

void page_scaling(struct gpul_buf *out, const struct dossier *d)
{
    if (dossier_count(d, DOSSIER_EFFICIENCY) == 0) {
        return;
    }
    const struct dossier_efficiency *first =
        dossier_at(d, DOSSIER_EFFICIENCY, 0);
    gpul_buf_append_text(out, "<h2>Scaling efficiency (");
    chart_text(out, first->scaling);
    gpul_buf_appendf(out, ", against %" PRId64 " node%s)</h2>\n",
                     first->reference_node_count,
                     first->reference_node_count == 1 ? "" : "s");
    draw_efficiencies(out, d);
    gpul_buf_append_text(
        out, "<div class=\"wide\"><table><thead><tr><th>nodes</th>"
             "<th>throughput</th><th>spread</th><th>unit</th>"
             "<th>efficiency</th><th>all-reduce busbw</th><th></th></tr>"
             "</thead><tbody>\n");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        draw_efficiency_row(out, dossier_at(d, DOSSIER_EFFICIENCY, i));
    }
    gpul_buf_append_text(out, "</tbody></table></div>\n");
    draw_models(out, d);
}
