/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scaletable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/units.h"

enum { WIDTH = 80, CELL_BYTES = 40, LINE_BYTES = 512 };

static const char unknown[] = "-";

/* Words, broken before the last column; lines after the first are indented.
 */
static void append_words(struct gpul_buf *out, size_t indent, const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + n > WIDTH) {
            gpul_buf_append_text(out, "\n");
            column = 0;
        }
        if (column == 0) {
            gpul_buf_appendf(out, "%*s", (int)indent, "");
            column = indent;
        } else {
            gpul_buf_append_text(out, " ");
            column++;
        }
        gpul_buf_append(out, text, n);
        column += n;
        text += n;
        text += strspn(text, " ");
    }
    gpul_buf_append_text(out, "\n");
}

/* As many digits as one reads. */
static void amount(char cell[CELL_BYTES], double value)
{
    if (!isfinite(value)) {
        snprintf(cell, CELL_BYTES, "%s", unknown);
    } else if (value >= 1e9 || (value < 0.1 && value > 0)) {
        snprintf(cell, CELL_BYTES, "%.3g", value);
    } else {
        int decimals = value >= 1000 ? 0 : value >= 10 ? 1 : 3;
        snprintf(cell, CELL_BYTES, "%.*f", decimals, value);
    }
}

static void share(char cell[CELL_BYTES], double value, int decimals)
{
    if (isfinite(value)) {
        snprintf(cell, CELL_BYTES, "%.*f", decimals, value);
    } else {
        snprintf(cell, CELL_BYTES, "%s", unknown);
    }
}

enum { RANGE_BYTES = 2 * CELL_BYTES + 8 };

static void join(char range[RANGE_BYTES], const char *low, const char *high)
{
    bool is_known = strcmp(low, unknown) != 0 && strcmp(high, unknown) != 0;
    snprintf(range, RANGE_BYTES, "%s%s%s", low, is_known ? " to " : "",
             is_known ? high : "");
}

/* ---- the table ----------------------------------------------------------- */

static int64_t ranks_of(const struct dossier *d, int64_t nodes)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_SAMPLE); i++) {
        const struct dossier_sample *s = dossier_at(d, DOSSIER_SAMPLE, i);
        if (s->node_count == nodes && s->rank_count > 0) {
            return s->rank_count;
        }
    }
    return 0;
}

static void append_row(struct gpul_buf *out, const struct dossier *d,
                       const struct dossier_efficiency *e)
{
    char rate[CELL_BYTES], low[CELL_BYTES], high[CELL_BYTES];
    char efficiency[CELL_BYTES], busbw[CELL_BYTES];
    char spread[RANGE_BYTES], interval[RANGE_BYTES];
    amount(rate, e->throughput);
    amount(low, e->throughput_low);
    amount(high, e->throughput_high);
    join(spread, low, high);
    share(efficiency, e->efficiency, 3);
    share(low, e->efficiency_low, 2);
    share(high, e->efficiency_high, 2);
    join(interval, low, high);
    amount(busbw, e->busbw / 1e9);
    gpul_buf_appendf(out, "%6" PRId64 " %6" PRId64 " %11s %20s %10s %13s %7s\n",
                     e->node_count, ranks_of(d, e->node_count), rate, spread,
                     efficiency, interval, busbw);
}

static void append_table(struct gpul_buf *out, const struct dossier *d,
                         const char *source)
{
    char line[LINE_BYTES];
    const struct dossier_efficiency *first =
        dossier_at(d, DOSSIER_EFFICIENCY, 0);
    snprintf(line, sizeof(line),
             "Scaling (%s: the same work %s), against %" PRId64 " node%s",
             first->scaling,
             strcmp(first->scaling, "strong") == 0 ? "in all" : "for each rank",
             first->reference_node_count,
             gpul_plural((uint64_t)first->reference_node_count));
    append_words(out, 0, line);
    if (source[0] != '\0') {
        snprintf(line, sizeof(line), "Throughput in %s: %s", first->unit,
                 source);
        append_words(out, 0, line);
    }
    gpul_buf_appendf(out, "%6s %6s %11s %20s %10s %13s %7s\n", "", "",
                     "throughput", "", "", "", "busbw");
    gpul_buf_appendf(out, "%6s %6s %11s %20s %10s %13s %7s\n", "nodes", "ranks",
                     "median", "of all", "efficiency", "95 %", "GB/s");
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        append_row(out, d, dossier_at(d, DOSSIER_EFFICIENCY, i));
    }
}

/* ---- below it ------------------------------------------------------------ */

static void append_remarks(struct gpul_buf *out, const struct dossier *d)
{
    char line[2 * LINE_BYTES];
    for (size_t i = 0; i < dossier_count(d, DOSSIER_EFFICIENCY); i++) {
        const struct dossier_efficiency *e =
            dossier_at(d, DOSSIER_EFFICIENCY, i);
        if (e->note != NULL) {
            snprintf(line, sizeof(line), "%" PRId64 " node%s: %s",
                     e->node_count, gpul_plural((uint64_t)e->node_count),
                     e->note);
            append_words(out, 2, line);
        }
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_SAMPLE); i++) {
        const struct dossier_sample *s = dossier_at(d, DOSSIER_SAMPLE, i);
        if (s->note != NULL) {
            snprintf(line, sizeof(line),
                     "%" PRId64 " node%s, repeat %" PRId64 ": %s",
                     s->node_count, gpul_plural((uint64_t)s->node_count),
                     s->repeat, s->note);
            append_words(out, 2, line);
        }
    }
}

static void append_fit(struct gpul_buf *out, const struct dossier_fit *f)
{
    char line[2 * LINE_BYTES], number[CELL_BYTES];
    size_t n = 0;
    if (f->node_count != DOSSIER_UNKNOWN) {
        snprintf(number, sizeof(number), " on %" PRId64 " node%s",
                 f->node_count, gpul_plural((uint64_t)f->node_count));
    } else {
        number[0] = '\0';
    }
    n = (size_t)snprintf(line, sizeof(line), "Fit %s%s:", f->model, number);
    if (f->bytes_min != DOSSIER_UNKNOWN) {
        char low[CELL_BYTES], high[CELL_BYTES];
        gpul_format_size(low, (uint64_t)f->bytes_min);
        gpul_format_size(high, (uint64_t)f->bytes_max);
        n += (size_t)snprintf(line + n, sizeof(line) - n, " %s to %s,", low,
                              high);
    }
    for (size_t i = 0; i < f->parameters.count && n < LINE_BYTES; i++) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, " %s %.3g,",
                              f->parameters.keys[i], f->parameters.values[i]);
    }
    if (isfinite(f->max_relative_error) && n < LINE_BYTES) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, " off by %.1f %%",
                              f->max_relative_error * 100);
    }
    if (f->note != NULL && n < LINE_BYTES) {
        snprintf(line + n, sizeof(line) - n, "%s %s",
                 isfinite(f->max_relative_error) ? ";" : "", f->note);
    }
    append_words(out, 0, line);
}

static void append_prediction(struct gpul_buf *out,
                              const struct dossier_prediction *p)
{
    char line[2 * LINE_BYTES], rate[CELL_BYTES];
    const char *plural = gpul_plural((uint64_t)p->node_count);
    if (p->refused != NULL) {
        snprintf(line, sizeof(line),
                 "Prediction for %" PRId64 " node%s: none: "
                 "%s",
                 p->node_count, plural, p->refused);
    } else {
        amount(rate, p->throughput);
        snprintf(line, sizeof(line),
                 "Prediction for %" PRId64 " node%s: efficiency %.3f (%.2f to "
                 "%.2f), throughput %s, %.2g times beyond what was measured",
                 p->node_count, plural, p->efficiency, p->efficiency_low,
                 p->efficiency_high, rate, p->extrapolation);
    }
    append_words(out, 0, line);
}

int scaletable_print(struct gpul_buf *out, const struct dossier *d,
                     const char *source)
{
    if (dossier_count(d, DOSSIER_EFFICIENCY) > 0) {
        append_table(out, d, source);
    }
    append_remarks(out, d);
    for (size_t i = 0; i < dossier_count(d, DOSSIER_FIT); i++) {
        const struct dossier_fit *fit = dossier_at(d, DOSSIER_FIT, i);
        if (fit->is_usable || !isfinite(fit->max_relative_error)) {
            append_fit(out, fit);
        }
    }
    for (size_t i = 0; i < dossier_count(d, DOSSIER_PREDICTION); i++) {
        append_prediction(out, dossier_at(d, DOSSIER_PREDICTION, i));
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
