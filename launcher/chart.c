/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/chart.h"

#include <math.h>
#include <string.h>

#include "common/units.h"

/* The picture's own units; the page scales it. */
enum {
    WIDTH = 720,
    HEIGHT = 320,
    LEFT = 76,
    RIGHT = 40, /* half of the last label stands there */
    TOP = 16,
    BOTTOM = 48,
    TICKS_Y = 6,
    TICKS_X_MAX = 8,
    LEGEND_ROW = 20,
    MARK = 3,
};

/* What is shown, and how it comes onto the picture. */
struct view {
    double x_min, x_max; /* logarithms to the base 2 */
    double y_max;
    double y_step;
    size_t points;
};

void chart_text(struct gpul_buf *out, const char *text)
{
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '<') {
            gpul_buf_append_text(out, "&lt;");
        } else if (c == '>') {
            gpul_buf_append_text(out, "&gt;");
        } else if (c == '&') {
            gpul_buf_append_text(out, "&amp;");
        } else if (c == '"') {
            gpul_buf_append_text(out, "&quot;");
        } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
            gpul_buf_append_text(out, "\xef\xbf\xbd");
        } else {
            gpul_buf_append(out, at, 1);
        }
    }
}

/* Three digits that count: 0.0123, 1.23, 12.3, 123. */
static void append_short(struct gpul_buf *out, double figure)
{
    double size = fabs(figure);
    int decimals = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : 2;
    if (size > 0 && size < 1) {
        decimals = 2 - (int)floor(log10(size));
        decimals = decimals > 9 ? 9 : decimals;
    }
    gpul_buf_appendf(out, "%.*f", decimals, figure);
}

void chart_figure(struct gpul_buf *out, double figure, enum chart_unit unit)
{
    if (!isfinite(figure)) {
        gpul_buf_append_text(out, "unknown");
    } else if (unit == CHART_RATE) {
        append_short(out, figure / 1e9);
        gpul_buf_append_text(out, " GB/s");
    } else if (unit == CHART_PERCENT) {
        gpul_buf_appendf(out, "%.*f %%", figure < 0.1 && figure > 0 ? 1 : 0,
                         figure * 100);
    } else if (unit == CHART_BYTES) {
        char text[32];
        gpul_format_size(text, figure > 0 ? (uint64_t)figure : 0);
        gpul_buf_append_text(out, text);
    } else if (figure == floor(figure) && fabs(figure) < 1e15) {
        gpul_buf_appendf(out, "%.0f", figure);
    } else {
        append_short(out, figure);
    }
}

static bool is_drawn(const struct chart_series *s, size_t i)
{
    return isfinite(s->y[i]) && isfinite(s->x[i]) && s->x[i] > 0 &&
           s->y[i] >= 0;
}

static double highest(const struct chart_series *s, size_t i)
{
    bool has_high = s->high != NULL && isfinite(s->high[i]);
    return has_high && s->high[i] > s->y[i] ? s->high[i] : s->y[i];
}

/* 1, 2 or 5 times a power of ten: so that a few of them reach `most`. */
static double nice_step(double most)
{
    double step = pow(10, floor(log10(most / TICKS_Y)));
    while (step * TICKS_Y < most) {
        double first = step / pow(10, floor(log10(step) + 1e-9));
        step *= first > 1.5 && first < 3 ? 2.5 : 2;
    }
    return step;
}

static struct view look(const struct chart *c)
{
    struct view v = {.x_min = (double)INFINITY, .x_max = -(double)INFINITY};
    for (size_t s = 0; s < c->series_count; s++) {
        for (size_t i = 0; i < c->series[s].count; i++) {
            if (is_drawn(&c->series[s], i)) {
                double x = log2(c->series[s].x[i]);
                v.x_min = fmin(v.x_min, x);
                v.x_max = fmax(v.x_max, x);
                v.y_max = fmax(v.y_max, highest(&c->series[s], i));
                v.points++;
            }
        }
    }
    if (v.points > 0) {
        v.y_step = nice_step(v.y_max > 0 ? v.y_max : 1);
        v.y_max = v.y_step * ceil((v.y_max > 0 ? v.y_max : 1) / v.y_step);
    }
    if (v.points > 0 && v.x_max - v.x_min < 1e-9) {
        v.x_min -= 1; /* a single place is the middle */
        v.x_max += 1;
    }
    return v;
}

static double place_x(const struct view *v, double x)
{
    double share = (log2(x) - v->x_min) / (v->x_max - v->x_min);
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct view *v, double y)
{
    return HEIGHT - BOTTOM - y / v->y_max * (HEIGHT - TOP - BOTTOM);
}

static void draw_y_axis(struct gpul_buf *out, const struct chart *c,
                        const struct view *v)
{
    for (double y = 0; y < v->y_max + v->y_step / 2; y += v->y_step) {
        double at = place_y(v, y);
        gpul_buf_appendf(out,
                         "<line class=\"grid\" x1=\"%d\" x2=\"%d\" "
                         "y1=\"%.1f\" y2=\"%.1f\"/>"
                         "<text class=\"label\" x=\"%d\" y=\"%.1f\" "
                         "text-anchor=\"end\">",
                         LEFT, WIDTH - RIGHT, at, at, LEFT - 8, at + 4);
        chart_figure(out, y, c->y_unit);
        gpul_buf_append_text(out, "</text>\n");
    }
}

static void draw_tick(struct gpul_buf *out, const struct chart *c,
                      const struct view *v, double x)
{
    double at = place_x(v, x);
    gpul_buf_appendf(out,
                     "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" "
                     "y1=\"%d\" y2=\"%d\"/><text class=\"label\" "
                     "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                     at, at, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5, at,
                     HEIGHT - BOTTOM + 19);
    chart_figure(out, x, c->x_unit);
    gpul_buf_append_text(out, "</text>\n");
}

/* At whole powers of two, so many apart that their names have room. */
static void draw_x_axis(struct gpul_buf *out, const struct chart *c,
                        const struct view *v)
{
    double span = floor(v->x_max + 1e-9) - ceil(v->x_min - 1e-9);
    double apart = fmax(1, ceil(span / (TICKS_X_MAX - 1)));
    for (double e = ceil(v->x_min - 1e-9); e <= v->x_max + 1e-9; e += apart) {
        draw_tick(out, c, v, exp2(e));
    }
    gpul_buf_appendf(out,
                     "<text class=\"label\" x=\"%d\" y=\"%d\" "
                     "text-anchor=\"middle\">",
                     (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    chart_text(out, c->x_label);
    gpul_buf_append_text(out, "</text>\n");
}

static void draw_spread(struct gpul_buf *out, const struct chart_series *s,
                        const struct view *v, size_t i)
{
    if (s->low == NULL || s->high == NULL || !isfinite(s->low[i]) ||
        !isfinite(s->high[i])) {
        return;
    }
    double x = place_x(v, s->x[i]);
    gpul_buf_appendf(out,
                     "<line class=\"s%u\" x1=\"%.1f\" x2=\"%.1f\" "
                     "y1=\"%.1f\" y2=\"%.1f\"/>",
                     s->colour % CHART_COLOURS, x, x,
                     place_y(v, fmax(0, s->low[i])), place_y(v, s->high[i]));
}

/* What a pointer that rests on the mark is told. */
static void draw_mark(struct gpul_buf *out, const struct chart *c,
                      const struct chart_series *s, const struct view *v,
                      size_t i)
{
    gpul_buf_appendf(out,
                     "<circle class=\"s%u mark\" cx=\"%.1f\" cy=\"%.1f\" "
                     "r=\"%d\"><title>",
                     s->colour % CHART_COLOURS, place_x(v, s->x[i]),
                     place_y(v, s->y[i]), MARK);
    chart_text(out, s->label);
    gpul_buf_append_text(out, ": ");
    chart_figure(out, s->x[i], c->x_unit);
    gpul_buf_append_text(out, ", ");
    chart_figure(out, s->y[i], c->y_unit);
    gpul_buf_append_text(out, "</title></circle>");
}

static void draw_series(struct gpul_buf *out, const struct chart *c,
                        const struct chart_series *s, const struct view *v)
{
    gpul_buf_appendf(out, "<polyline class=\"s%u%s\" points=\"",
                     s->colour % CHART_COLOURS, s->is_dashed ? " dashed" : "");
    for (size_t i = 0; i < s->count; i++) {
        if (is_drawn(s, i)) {
            gpul_buf_appendf(out, "%.1f,%.1f ", place_x(v, s->x[i]),
                             place_y(v, s->y[i]));
        }
    }
    gpul_buf_append_text(out, "\"/>");
    for (size_t i = 0; i < s->count; i++) {
        if (is_drawn(s, i)) {
            draw_spread(out, s, v, i);
            draw_mark(out, c, s, v, i);
        }
    }
    gpul_buf_append_text(out, "\n");
}

static void draw_legend(struct gpul_buf *out, const struct chart *c)
{
    for (size_t s = 0; s < c->series_count && c->series_count > 1; s++) {
        double y = HEIGHT + LEGEND_ROW * ((double)s + 0.5);
        gpul_buf_appendf(out,
                         "<line class=\"s%u%s\" x1=\"%d\" x2=\"%d\" "
                         "y1=\"%.1f\" y2=\"%.1f\"/><text class=\"label\" "
                         "x=\"%d\" y=\"%.1f\">",
                         c->series[s].colour % CHART_COLOURS,
                         c->series[s].is_dashed ? " dashed" : "", LEFT,
                         LEFT + 28, y, y, LEFT + 36, y + 4);
        chart_text(out, c->series[s].label);
        gpul_buf_append_text(out, "</text>\n");
    }
}

void chart_draw(struct gpul_buf *out, const struct chart *chart)
{
    struct view v = look(chart);
    size_t rows = chart->series_count > 1 ? chart->series_count : 0;
    if (v.points == 0) {
        gpul_buf_append_text(out, "<p class=\"none\">");
        chart_text(out, chart->title);
        gpul_buf_append_text(out, ": nothing was measured.</p>\n");
        return;
    }
    gpul_buf_appendf(
        out,
        "<div class=\"wide\"><svg viewBox=\"0 0 %d %zu\" role=\"img\" "
        "preserveAspectRatio=\"xMidYMid meet\"><title>",
        WIDTH, HEIGHT + LEGEND_ROW * rows);
    chart_text(out, chart->title);
    gpul_buf_append_text(out, "</title>\n");
    draw_y_axis(out, chart, &v);
    draw_x_axis(out, chart, &v);
    for (size_t s = 0; s < chart->series_count; s++) {
        draw_series(out, chart, &chart->series[s], &v);
    }
    draw_legend(out, chart);
    gpul_buf_append_text(out, "</svg></div>\n");
}
