/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/dossier_diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/error.h"
#include "launcher/chart.h"

struct diff {
    struct gpul_buf *out;
    const char *title; /* of the group, until its first line is there */
    size_t lines;
};

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

static void begin_line(struct diff *diff, char mark)
{
    if (diff->title != NULL) {
        gpul_buf_appendf(diff->out, "%s%s\n", diff->lines > 0 ? "\n" : "",
                         diff->title);
        diff->title = NULL;
    }
    diff->lines++;
    gpul_buf_appendf(diff->out, "%c ", mark);
}

/* ---- what the records are ---- */

static void compare_runs(struct diff *diff, const struct dossier_run *a,
                         const struct dossier_run *b)
{
    diff->title = "records";
    if (!dossier_is(a->verb, b->verb)) {
        begin_line(diff, '~');
        gpul_buf_appendf(diff->out, "verb: %s -> %s\n", or_none(a->verb),
                         or_none(b->verb));
    }
    if (!dossier_is(a->backend, b->backend)) {
        begin_line(diff, '~');
        gpul_buf_appendf(diff->out, "backend: %s -> %s\n", or_none(a->backend),
                         or_none(b->backend));
    }
    if (a->is_simulated != b->is_simulated) {
        begin_line(diff, '~');
        gpul_buf_appendf(diff->out,
                         "the %s one is SIMULATED: its figures are none\n",
                         a->is_simulated ? "first" : "second");
    }
}

static void compare_ends(struct diff *diff, const struct dossier *a,
                         const struct dossier *b)
{
    const struct dossier_end *ends[] = {dossier_end(a), dossier_end(b)};
    for (size_t i = 0; i < 2; i++) {
        if (ends[i] == NULL) {
            begin_line(diff, '~');
            gpul_buf_appendf(diff->out, "the %s one was cut short\n",
                             i == 0 ? "first" : "second");
            return;
        }
    }
    if (ends[0]->exit_code != ends[1]->exit_code) {
        begin_line(diff, '~');
        gpul_buf_appendf(
            diff->out, "exit code: %" PRId64 " -> %" PRId64 " (%s)\n",
            ends[0]->exit_code, ends[1]->exit_code, or_none(ends[1]->reason));
    }
}

/* ---- nodes and their facts ---- */

static bool has_ending(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

/* Does it change by itself? */
static bool is_restless(const char *key)
{
    return has_ending(key, ".free") || has_ending(key, ".available") ||
           has_ending(key, ".used") || strncmp(key, "clock.now", 9) == 0;
}

static const char *find_value(const struct dossier_map *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->keys[i], key) == 0) {
            return map->values[i];
        }
    }
    return NULL;
}

static const char *fact(const struct dossier_node *node, const char *key)
{
    const char *value = find_value(&node->facts, key);
    return value != NULL                             ? value
           : find_value(&node->unknown, key) != NULL ? "unknown"
                                                     : NULL;
}

static void compare_fact(struct diff *diff, const struct dossier_node *a,
                         const struct dossier_node *b, const char *key)
{
    const char *before = fact(a, key), *after = fact(b, key);
    if (!is_restless(key) && !dossier_is(before, after)) {
        begin_line(diff, before == NULL ? '+' : after == NULL ? '-' : '~');
        gpul_buf_appendf(diff->out, "%s: %s: ", b->name, key);
        if (before != NULL) {
            gpul_buf_append_text(diff->out, before);
        }
        gpul_buf_append_text(diff->out,
                             before != NULL && after != NULL ? " -> " : "");
        gpul_buf_appendf(diff->out, "%s\n", after != NULL ? after : "");
    }
}

static void compare_keys(struct diff *diff, const struct dossier_node *a,
                         const struct dossier_node *b)
{
    const struct dossier_map *lists[] = {&b->facts, &b->unknown, &a->facts,
                                         &a->unknown};
    for (size_t l = 0; l < 4; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            const char *key = lists[l]->keys[i];
            if (l < 2 || fact(b, key) == NULL) {
                compare_fact(diff, a, b, key);
            }
        }
    }
}

static void compare_nodes(struct diff *diff, const struct dossier *a,
                          const struct dossier *b)
{
    diff->title = "nodes";
    for (size_t i = 0; i < dossier_count(a, DOSSIER_NODE); i++) {
        const struct dossier_node *node = dossier_at(a, DOSSIER_NODE, i);
        if (dossier_find_node(b, or_none(node->name)) == NULL) {
            begin_line(diff, '-');
            gpul_buf_appendf(diff->out, "%s\n", or_none(node->name));
        }
    }
    for (size_t i = 0; i < dossier_count(b, DOSSIER_NODE); i++) {
        const struct dossier_node *node = dossier_at(b, DOSSIER_NODE, i);
        const struct dossier_node *was =
            dossier_find_node(a, or_none(node->name));
        if (was == NULL) {
            begin_line(diff, '+');
            gpul_buf_appendf(diff->out, "%s\n", or_none(node->name));
        } else {
            compare_keys(diff, was, node);
        }
    }
}

/* ---- findings ---- */

static bool has_node(const struct dossier_texts *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->items[i], name) == 0) {
            return true;
        }
    }
    return nodes->count == 0 && name[0] == '\0';
}

static const struct dossier_finding *
find_finding(const struct dossier *d, const struct dossier_finding *like,
             const char *node)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FINDING); i++) {
        const struct dossier_finding *f = dossier_at(d, DOSSIER_FINDING, i);
        if (dossier_is(f->id, like->id) &&
            dossier_is(f->severity, like->severity) &&
            has_node(&f->nodes, node)) {
            return f;
        }
    }
    return NULL;
}

/* What is a finding of `a` and none of `b`, node by node. */
static void list_missing(struct diff *diff, char mark, const struct dossier *a,
                         const struct dossier *b)
{
    for (size_t i = 0; i < dossier_count(a, DOSSIER_FINDING); i++) {
        const struct dossier_finding *f = dossier_at(a, DOSSIER_FINDING, i);
        size_t count = f->nodes.count > 0 ? f->nodes.count : 1;
        bool is_pass = dossier_is(f->severity, "pass");
        for (size_t k = 0; k < count && !is_pass; k++) {
            const char *node = f->nodes.count > 0 ? f->nodes.items[k] : "";
            if (find_finding(b, f, node) == NULL) {
                begin_line(diff, mark);
                gpul_buf_appendf(diff->out, "%s %s %s: %s\n", or_none(f->id),
                                 or_none(f->severity),
                                 node[0] != '\0' ? node : "all",
                                 or_none(f->text));
            }
        }
    }
}

/* ---- figures ---- */

static bool has_moved(double before, double after)
{
    if (isfinite(before) != isfinite(after)) {
        return true;
    }
    return isfinite(before) &&
           fabs(after - before) > DOSSIER_DIFF_SHARE * fabs(before);
}

static void tell_figures(struct diff *diff, double before, double after,
                         enum chart_unit unit)
{
    chart_figure(diff->out, before, unit);
    gpul_buf_append_text(diff->out, " -> ");
    chart_figure(diff->out, after, unit);
    if (isfinite(before) && isfinite(after) && before > 0) {
        gpul_buf_appendf(diff->out, " (%+.0f %%)", (after / before - 1) * 100);
    }
    gpul_buf_append_text(diff->out, "\n");
}

static const struct dossier_bandwidth *
find_bandwidth(const struct dossier *d, const struct dossier_bandwidth *like)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *b = dossier_at(d, DOSSIER_BANDWIDTH, i);
        if (dossier_is(b->collective, like->collective) &&
            dossier_is(b->scope, like->scope) && b->bytes == like->bytes &&
            b->node_count == like->node_count) {
            return b;
        }
    }
    return NULL;
}

static void compare_bandwidths(struct diff *diff, const struct dossier *a,
                               const struct dossier *b)
{
    diff->title = "bus bandwidth";
    for (size_t i = 0; i < dossier_count(b, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *now =
            dossier_at(b, DOSSIER_BANDWIDTH, i);
        const struct dossier_bandwidth *was = find_bandwidth(a, now);
        if (was != NULL && has_moved(was->busbw, now->busbw)) {
            begin_line(diff, '~');
            gpul_buf_appendf(diff->out, "%s, %" PRId64 " nodes, ",
                             or_none(now->collective), now->node_count);
            chart_figure(diff->out, (double)now->bytes, CHART_BYTES);
            gpul_buf_append_text(diff->out, ": ");
            tell_figures(diff, was->busbw, now->busbw, CHART_RATE);
        }
    }
}

static const struct dossier_efficiency *
find_efficiency(const struct dossier *d, const struct dossier_efficiency *like)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        const struct dossier_efficiency *e =
            dossier_at(d, DOSSIER_EFFICIENCY, i);
        if (e->node_count == like->node_count &&
            dossier_is(e->scaling, like->scaling) &&
            e->reference_node_count == like->reference_node_count) {
            return e;
        }
    }
    return NULL;
}

static void compare_efficiencies(struct diff *diff, const struct dossier *a,
                                 const struct dossier *b)
{
    diff->title = "scaling efficiency";
    for (size_t i = 0; i < dossier_count(b, DOSSIER_EFFICIENCY); i++) {
        const struct dossier_efficiency *now =
            dossier_at(b, DOSSIER_EFFICIENCY, i);
        const struct dossier_efficiency *was = find_efficiency(a, now);
        if (was != NULL && has_moved(was->efficiency, now->efficiency)) {
            begin_line(diff, '~');
            gpul_buf_appendf(diff->out, "%" PRId64 " nodes: ", now->node_count);
            tell_figures(diff, was->efficiency, now->efficiency, CHART_PERCENT);
        }
    }
}

int dossier_diff(struct gpul_buf *out, bool *is_same,
                 const struct dossier *before, const struct dossier *after)
{
    struct diff diff = {.out = out};
    compare_runs(&diff, dossier_run(before), dossier_run(after));
    compare_ends(&diff, before, after);
    compare_nodes(&diff, before, after);
    diff.title = "findings";
    list_missing(&diff, '-', before, after);
    list_missing(&diff, '+', after, before);
    compare_bandwidths(&diff, before, after);
    compare_efficiencies(&diff, before, after);
    *is_same = diff.lines == 0;
    return out->is_failed ? GPUL_ELIMIT : 0;
}
