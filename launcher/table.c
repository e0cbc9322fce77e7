/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bandwidth.h"
#include "common/error.h"
#include "common/units.h"
#include "launcher/grade.h"
#include "proto/limits.h"

enum { CELL_BYTES = 32 };

enum layout {
    WIDE = 1,
    PLAIN = 2,  /* 80 columns, nothing known of ceilings */
    JUDGED = 4, /* 77 columns, with ceilings */
    NARROW = 8,
    NARROW_JUDGED = 16,
};

struct table {
    enum layout layout;
    struct grade_scale scale;
    const Gpul__SelfTestRow *rows[GPUL_PROBE_ROWS_MAX];
    size_t count;
};

typedef void (*cell_fn)(char *text, const struct table *t,
                        const Gpul__SelfTestRow *row);

/* ---- cells --------------------------------------------------------------- */

/* Eight columns: as many digits after the point as fit. */
static void microseconds(char *text, uint64_t ns)
{
    double us = (double)ns / 1e3;
    int digits = us < 1e3 ? 2 : us < 1e6 ? 1 : 0;
    snprintf(text, CELL_BYTES, "%.*f", digits, us);
}

static void bandwidth(char *text, double gbps)
{
    int digits = gbps < 100 ? 2 : gbps < 1000 ? 1 : 0;
    snprintf(text, CELL_BYTES, "%.*f", digits, gbps);
}

static void put_word(char *text, const char *word)
{
    snprintf(text, CELL_BYTES, "%s", word);
}

static void size_cell(char *text, const struct table *t,
                      const Gpul__SelfTestRow *row)
{
    (void)t;
    snprintf(text, CELL_BYTES, "%" PRIu64, row->bytes);
}

static void count_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    (void)t;
    snprintf(text, CELL_BYTES, "%" PRIu64, row->count);
}

static void type_cell(char *text, const struct table *t,
                      const Gpul__SelfTestRow *row)
{
    (void)t;
    (void)row;
    put_word(text, "float");
}

static void redop_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    (void)t;
    bool is_sum =
        row->collective <= GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE ||
        row->collective == GPUL__COLLECTIVE__COLLECTIVE_REDUCE_SCATTER;
    put_word(text, is_sum ? "sum" : "none");
}

static void time_cell(char *text, const struct table *t,
                      const Gpul__SelfTestRow *row)
{
    (void)t;
    microseconds(text, row->median_ns);
}

static void min_cell(char *text, const struct table *t,
                     const Gpul__SelfTestRow *row)
{
    (void)t;
    microseconds(text, row->min_ns);
}

static void max_cell(char *text, const struct table *t,
                     const Gpul__SelfTestRow *row)
{
    (void)t;
    microseconds(text, row->max_ns);
}

static void algbw_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    (void)t;
    bandwidth(text, row->algbw_gbps);
}

static void busbw_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    (void)t;
    if (grade_has_busbw(row))
        bandwidth(text, row->busbw_gbps);
    else
        put_word(text, "n/a");
}

static void wire_cell(char *text, const struct table *t,
                      const Gpul__SelfTestRow *row)
{
    (void)t;
    if (row->wire_gbps > 0)
        bandwidth(text, row->wire_gbps);
    else
        put_word(text, "-");
}

static void wrong_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    (void)t;
    snprintf(text, CELL_BYTES, "%" PRIu64, row->wrong_elements);
}

/* No ceiling counts with a double; else none is known. */
static void put_none(char *text, const struct table *t)
{
    put_word(text, t->scale.is_simulated ? "-" : "n/a");
}

static void ceiling_cell(char *text, const struct table *t,
                         const Gpul__SelfTestRow *row)
{
    double percent = 0;
    if (grade_percent(&percent, &t->scale, row))
        bandwidth(text, row->ceiling_gbps);
    else
        put_none(text, t);
}

static void percent_cell(char *text, const struct table *t,
                         const Gpul__SelfTestRow *row)
{
    double percent = 0;
    if (grade_percent(&percent, &t->scale, row))
        snprintf(text, CELL_BYTES, "%.0f%%", percent);
    else
        put_none(text, t);
}

static void grade_cell(char *text, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    const char *name = grade_name(grade_row(&t->scale, row));
    put_word(text, name != NULL ? name : "-");
}

/* ---- columns ------------------------------------------------------------- */

struct column {
    const char *name;
    const char *unit;
    int width;
    unsigned layouts;
    cell_fn cell;
};

enum {
    ALWAYS = WIDE | PLAIN | JUDGED | NARROW | NARROW_JUDGED,
    LARGE = WIDE | PLAIN | JUDGED,
};

static const struct column columns[] = {
    {"#     size", "#      (B)", 10, ALWAYS, size_cell},
    {"count", "(elem)", 9, LARGE, count_cell},
    {"type", "", 5, WIDE | PLAIN, type_cell},
    {"redop", "", 5, WIDE | PLAIN, redop_cell},
    {"time", "(us)", 8, ALWAYS, time_cell},
    {"min", "(us)", 8, WIDE | PLAIN, min_cell},
    {"max", "(us)", 8, WIDE | PLAIN, max_cell},
    {"algbw", "(GB/s)", 6, LARGE, algbw_cell},
    {"busbw", "(GB/s)", 6, ALWAYS, busbw_cell},
    {"wire", "(GB/s)", 6, WIDE | JUDGED, wire_cell},
    {"#wrong", "", 6, ALWAYS, wrong_cell},
    {"ceil", "(GB/s)", 6, WIDE | JUDGED, ceiling_cell},
    {"% of", "ceil", 4, WIDE | JUDGED | NARROW_JUDGED, percent_cell},
    {"verdict", "", 7, WIDE | JUDGED | NARROW_JUDGED, grade_cell},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

/* A line of cells, and none of the blanks behind the last word. */
static void end_line(struct gpul_buf *out)
{
    while (out->used > 0 && out->data[out->used - 1] == ' ')
        out->used--;
    gpul_buf_append_text(out, "\n");
}

static void append_cell(struct gpul_buf *out, const struct column *c,
                        const char *text)
{
    gpul_buf_appendf(out, "%s%*s", c == columns ? "" : " ", c->width, text);
}

static void append_headings(struct gpul_buf *out, const struct table *t)
{
    for (int line = 0; line < 2; line++) {
        for (size_t i = 0; i < COLUMN_COUNT; i++) {
            const struct column *c = &columns[i];
            if (c->layouts & t->layout)
                append_cell(out, c, line == 0 ? c->name : c->unit);
        }
        end_line(out);
    }
}

static void append_row(struct gpul_buf *out, const struct table *t,
                       const Gpul__SelfTestRow *row)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char text[CELL_BYTES];
        if (!(columns[i].layouts & t->layout))
            continue;
        columns[i].cell(text, t, row);
        append_cell(out, &columns[i], text);
    }
    end_line(out);
}

/* ---- blocks -------------------------------------------------------------- */

static int collective_of(const Gpul__SelfTestRow *row)
{
    return row->collective == GPUL__COLLECTIVE__COLLECTIVE_NONE
               ? (int)GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE
               : (int)row->collective;
}

static bool are_in_one_block(const Gpul__SelfTestRow *a,
                             const Gpul__SelfTestRow *b)
{
    return a->scope == b->scope && collective_of(a) == collective_of(b);
}

static int compare_rows(const void *left, const void *right)
{
    const Gpul__SelfTestRow *a = *(const Gpul__SelfTestRow *const *)left;
    const Gpul__SelfTestRow *b = *(const Gpul__SelfTestRow *const *)right;
    if (a->scope != b->scope)
        return a->scope < b->scope ? -1 : 1;
    if (collective_of(a) != collective_of(b))
        return collective_of(a) < collective_of(b) ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static enum layout choose_layout(const Gpul__Event *event, size_t width)
{
    bool is_judged = strcmp(event->backend, "nccl") == 0;
    for (size_t i = 0; i < event->n_rows; i++)
        is_judged |=
            event->rows[i]->ceiling_gbps > 0 || event->rows[i]->wire_gbps > 0;
    if (width >= TABLE_WIDTH_WIDE)
        return WIDE;
    if (width >= TABLE_WIDTH_FULL)
        return is_judged ? JUDGED : PLAIN;
    return is_judged ? NARROW_JUDGED : NARROW;
}

static void append_title(struct gpul_buf *out, const Gpul__Event *event,
                         const Gpul__SelfTestRow *row)
{
    gpul_buf_appendf(
        out, "# %s%s", event->is_simulated ? "SIMULATED " : "",
        gpul_collective_name((enum gpul_collective)collective_of(row)));
    if (row->scope != GPUL__SCOPE__SCOPE_NODE)
        return;
    gpul_buf_append_text(out, " within each node");
    if (row->ranks > 0)
        gpul_buf_appendf(out, ", %" PRIu32 " rank%s", row->ranks,
                         gpul_plural(row->ranks));
}

/* Ranks of the self-test are its devices; on host memory, its nodes. */
static void append_world(struct gpul_buf *out, const Gpul__Event *event,
                         uint32_t node_count)
{
    bool is_host = strcmp(event->backend, "host-tcp") == 0;
    if (event->is_simulated)
        gpul_buf_append_text(out, " over test doubles");
    else if (is_host)
        gpul_buf_append_text(out, " on host memory over TCP");
    else if (event->backend[0] != '\0')
        gpul_buf_append_text(out, " over NCCL");
    if (!is_host && event->backend[0] != '\0')
        gpul_buf_appendf(out, ", %" PRIu32 " rank%s on", event->have,
                         gpul_plural(event->have));
    else
        gpul_buf_append_text(out, ",");
    gpul_buf_appendf(out, " %" PRIu32 " node%s, slowest rank", node_count,
                     gpul_plural(node_count));
}

/* The first block is the one that --min-busbw judges. */
static void append_first(struct gpul_buf *out, const Gpul__Event *event,
                         uint32_t node_count)
{
    append_world(out, event, node_count);
    if (event->kind == GPUL__EVENT__KIND__SELF_TEST_SLOW)
        gpul_buf_append_text(out, ": FAILED, below --min-busbw");
}

/* One connection and one thread a peer seldom fill a fast card. */
static void append_hint(struct gpul_buf *out, const struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        enum grade grade = grade_row(&t->scale, t->rows[i]);
        if (t->rows[i]->ceiling_kind == GPUL__LINK__LINK_TCP &&
            (grade == GRADE_LOW || grade == GRADE_SLOW)) {
            gpul_buf_append_text(out,
                                 "# over TCP more of NCCL_SOCKET_NTHREADS and "
                                 "NCCL_NSOCKS_PERTHREAD may help\n");
            return;
        }
    }
}

int table_self_test(struct gpul_buf *out, const Gpul__Event *event,
                    uint32_t node_count, size_t width)
{
    struct table t = {.layout = choose_layout(event, width)};
    grade_scale_init(&t.scale, event->rows, event->n_rows, event->is_simulated);
    while (t.count < event->n_rows && t.count < GPUL_PROBE_ROWS_MAX) {
        t.rows[t.count] = event->rows[t.count];
        t.count++;
    }
    qsort(t.rows, t.count, sizeof t.rows[0], compare_rows);
    for (size_t i = 0; i < t.count; i++) {
        if (i == 0 || !are_in_one_block(t.rows[i], t.rows[i - 1])) {
            append_title(out, event, t.rows[i]);
            if (i == 0)
                append_first(out, event, node_count);
            gpul_buf_append_text(out, "\n");
        }
        if (i == 0)
            append_headings(out, &t);
        append_row(out, &t, t.rows[i]);
    }
    append_hint(out, &t);
    return out->is_failed ? GPUL_ELIMIT : 0;
}
