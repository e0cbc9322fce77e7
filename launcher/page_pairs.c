/* SPDX-License-Identifier: Apache-2.0
 *
 * The trials between nodes as two maps: each node on each network, for any
 * number of nodes, and each node with each other, where that fits a page.
 * Colours compare with the median of all trials of the network.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/stats.h"
#include "launcher/chart.h"
#include "launcher/page.h"

enum { MATRIX_NODES_MAX = 40, RAILS_MAX = 16, RAIL_NODES_MAX = 512 };

struct rails {
    const char *names[RAILS_MAX]; /* NULL: the only network, without a name */
    double medians[RAILS_MAX];    /* NAN: nothing was measured */
    size_t count;
};

static const struct dossier_pair *pair_at(const struct dossier *d, size_t i)
{
    return dossier_at(d, DOSSIER_PAIR, i);
}

/* The median of all figures of a rail that are of `node` (NULL: of any). */
static double median_of(const struct dossier *d, const char *rail,
                        const char *node)
{
    size_t n = dossier_count(d, DOSSIER_PAIR);
    double *values = malloc((2 * n + 1) * sizeof(*values));
    double median = (double)NAN;
    size_t count = 0;
    for (size_t i = 0; values != NULL && i < n; i++) {
        const struct dossier_pair *p = pair_at(d, i);
        bool is_of =
            node == NULL || dossier_is(p->a, node) || dossier_is(p->b, node);
        if (is_of && dossier_is(p->rail, rail)) {
            values[count++] = p->a_to_b;
            values[count++] = p->b_to_a;
        }
    }
    if (values == NULL || !gpul_median(&median, values, count)) {
        median = (double)NAN;
    }
    free(values);
    return median;
}

static void find_rails(struct rails *rails, const struct dossier *d)
{
    *rails = (struct rails){0};
    for (size_t i = 0; i < dossier_count(d, DOSSIER_PAIR); i++) {
        const char *name = pair_at(d, i)->rail;
        size_t at = 0;
        while (at < rails->count && !dossier_is(rails->names[at], name)) {
            at++;
        }
        if (at == rails->count && at < RAILS_MAX) {
            rails->names[at] = name;
            rails->medians[at] = median_of(d, name, NULL);
            rails->count++;
        }
    }
}

/* h0 like the others, h1 to h3 ever slower. */
static const char *heat(double figure, double median)
{
    double share = figure / median;
    return !isfinite(share) ? ""
           : share >= 0.9   ? "h0"
           : share >= 0.75  ? "h1"
           : share >= 0.5   ? "h2"
                            : "h3";
}

static void draw_heat(struct gpul_buf *out, double figure, double median)
{
    gpul_buf_appendf(out, "<td class=\"%s\">", heat(figure, median));
    if (isfinite(figure)) {
        gpul_buf_appendf(out, "%.3g", figure / 1e9);
    } else {
        gpul_buf_append_text(out, "?");
    }
    gpul_buf_append_text(out, "</td>");
}

static void draw_head(struct gpul_buf *out, const char *text)
{
    gpul_buf_append_text(out, "<th>");
    chart_text(out, text);
    gpul_buf_append_text(out, "</th>");
}

static const char *node_name(const struct dossier *d, size_t i)
{
    const struct dossier_node *node = dossier_at(d, DOSSIER_NODE, i);
    return node->name;
}

void page_rails(struct gpul_buf *out, const struct dossier *d)
{
    struct rails rails;
    size_t nodes = dossier_count(d, DOSSIER_NODE);
    find_rails(&rails, d);
    if (rails.count == 0 || nodes == 0) {
        return;
    }
    gpul_buf_append_text(out, "<h2>Nodes on networks</h2>\n<p class=\"soft\">"
                              "Median of the trials of each node, in GB/s, "
                              "one way.</p>\n<div class=\"wide\">"
                              "<table class=\"map\"><tr><th></th>");
    for (size_t r = 0; r < rails.count; r++) {
        draw_head(out, rails.names[r] != NULL ? rails.names[r] : "network");
    }
    gpul_buf_append_text(out, "</tr>\n");
    for (size_t i = 0; i < nodes && i < RAIL_NODES_MAX; i++) {
        gpul_buf_append_text(out, "<tr>");
        draw_head(out, node_name(d, i));
        for (size_t r = 0; r < rails.count; r++) {
            draw_heat(out, median_of(d, rails.names[r], node_name(d, i)),
                      rails.medians[r]);
        }
        gpul_buf_append_text(out, "</tr>\n");
    }
    gpul_buf_append_text(out, "</table></div>\n");
    if (nodes > RAIL_NODES_MAX) {
        gpul_buf_appendf(out,
                         "<p class=\"none\">%zu more nodes are in the "
                         "record.</p>\n",
                         nodes - RAIL_NODES_MAX);
    }
}

/* The last trial from one to the other: suspects are tried again alone, and
 * that counts. NULL: there was none. */
static const struct dossier_pair *last_trial(const struct dossier *d,
                                             const char *rail, const char *from,
                                             const char *to, double *figure)
{
    for (size_t i = dossier_count(d, DOSSIER_PAIR); i-- > 0;) {
        const struct dossier_pair *p = pair_at(d, i);
        bool is_forth = dossier_is(p->a, from) && dossier_is(p->b, to);
        bool is_back = dossier_is(p->a, to) && dossier_is(p->b, from);
        if (dossier_is(p->rail, rail) && (is_forth || is_back)) {
            *figure = is_forth ? p->a_to_b : p->b_to_a;
            return p;
        }
    }
    return NULL;
}

static void draw_trial(struct gpul_buf *out, const struct dossier *d,
                       const struct rails *rails, size_t rail, const char *from,
                       const char *to)
{
    double figure = (double)NAN;
    const struct dossier_pair *p =
        last_trial(d, rails->names[rail], from, to, &figure);
    if (p == NULL) {
        gpul_buf_append_text(out, "<td></td>");
    } else if (!isfinite(figure) && p->error != NULL) {
        gpul_buf_append_text(out, "<td class=\"hx\" title=\"");
        chart_text(out, p->error);
        gpul_buf_append_text(out, "\">&#215;</td>");
    } else {
        draw_heat(out, figure, rails->medians[rail]);
    }
}

static void draw_matrix(struct gpul_buf *out, const struct dossier *d,
                        const struct rails *rails, size_t rail, size_t nodes)
{
    gpul_buf_append_text(out, "<h3>");
    chart_text(out, rails->names[rail]);
    gpul_buf_append_text(out, "</h3>\n<div class=\"wide\"><table "
                              "class=\"map\"><tr><th>from \\ to</th>");
    for (size_t i = 0; i < nodes; i++) {
        draw_head(out, node_name(d, i));
    }
    gpul_buf_append_text(out, "</tr>\n");
    for (size_t i = 0; i < nodes; i++) {
        gpul_buf_append_text(out, "<tr>");
        draw_head(out, node_name(d, i));
        for (size_t k = 0; k < nodes; k++) {
            draw_trial(out, d, rails, rail, node_name(d, i), node_name(d, k));
        }
        gpul_buf_append_text(out, "</tr>\n");
    }
    gpul_buf_append_text(out, "</table></div>\n");
}

void page_pairs(struct gpul_buf *out, const struct dossier *d)
{
    struct rails rails;
    size_t nodes = dossier_count(d, DOSSIER_NODE);
    find_rails(&rails, d);
    if (rails.count == 0 || nodes < 2 || nodes > MATRIX_NODES_MAX) {
        return;
    }
    gpul_buf_append_text(
        out, "<h2>Node to node</h2>\n<p class=\"soft\">GB/s of the last trial "
             "from one node to another; empty: those two were not tried "
             "together; &#215;: no connection.</p>\n");
    for (size_t r = 0; r < rails.count; r++) {
        draw_matrix(out, d, &rails, r, nodes);
    }
}
