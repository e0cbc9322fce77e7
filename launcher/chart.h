/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures as a line chart in SVG, to stand within an HTML page: no script, no
 * font and no link of its own; colours are the page's classes s0 to s5 (of a
 * series), axis, grid and label. Pure.
 */
#ifndef LAUNCHER_CHART_H
#define LAUNCHER_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

enum { CHART_COLOURS = 6 };

enum chart_unit {
    CHART_COUNT,   /* 1, 2, 4 */
    CHART_BYTES,   /* 8 B, 1 MiB */
    CHART_RATE,    /* bytes a second, as GB/s */
    CHART_PERCENT, /* of a ratio, 1 is 100 % */
};

/* One line. Points whose y is not finite are left out. */
struct chart_series {
    const char *label;
    const double *x;
    const double *y;
    const double *low; /* of the spread at each point; NULL: none */
    const double *high;
    size_t count;
    unsigned colour; /* below CHART_COLOURS */
    bool is_dashed;  /* a bound or a prediction, not a measurement */
};

struct chart {
    const char *title; /* for those who cannot see it, too */
    const char *x_label;
    enum chart_unit x_unit; /* x is drawn by its logarithm */
    enum chart_unit y_unit; /* from 0 */
    const struct chart_series *series;
    size_t series_count;
};

/* Append it, with a legend where there is more than one series. Where no
 * point can be drawn it says so instead. */
void chart_draw(struct gpul_buf *out, const struct chart *chart);

/* Append a text with the characters that HTML and XML give a meaning to
 * replaced; NULL is nothing. Control characters, which XML cannot hold,
 * become U+FFFD. */
void chart_text(struct gpul_buf *out, const char *text);

/* "12.5 GB/s", "98 %", "1 MiB", "4"; "unknown" for what is not finite. */
void chart_figure(struct gpul_buf *out, double figure, enum chart_unit unit);

#endif
