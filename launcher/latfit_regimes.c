/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the sizes at which a collective behaves alike begin and end.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "launcher/latfit.h"
#include "launcher/latfit_inside.h"

/* Relative errors below this are noise of any clock and machine: they are no
 * reason for another regime. */
#define NOISE 0.005

/* Of one more regime: two of its line, and two for where it begins. A place
 * that was searched for fits noise better than a constant does: counted as one
 * it tears one line in ten, as two one in fifty. */
enum { CONSTANTS_A_REGIME = 4 };

/* Lines through the points from one to before another. */
struct segments {
    const struct latfit_point *points; /* by rising size */
    size_t count;
    double *squares; /* sums of the errors' squares, by segment_at() */
};

/* Which points regimes begin at. */
struct breaks {
    size_t regimes;
    size_t at[LATFIT_REGIMES_MAX];
    double squares; /* infinite: there are none */
};

static size_t sizes_in(const struct latfit_point *points, size_t from,
                       size_t to)
{
    size_t sizes = 1;
    for (size_t i = from + 1; i < to; i++) {
        sizes += points[i].bytes != points[i - 1].bytes;
    }
    return sizes;
}

static double *segment_at(const struct segments *s, size_t from, size_t to)
{
    return &s->squares[from * (s->count + 1) + to];
}

/* Infinite where no regime may be: too few sizes, or one of them torn. */
static double line_squares(const struct segments *s, size_t from, size_t to)
{
    struct latfit_regime line;
    const struct latfit_point *p = s->points;
    bool is_torn = (from > 0 && p[from - 1].bytes == p[from].bytes) ||
                   (to < s->count && p[to].bytes == p[to - 1].bytes);
    if (is_torn || sizes_in(p, from, to) < LATFIT_REGIME_POINTS_MIN ||
        !latfit_fit_line(&line, p + from, to - from)) {
        return INFINITY;
    }
    return line.error_rms * line.error_rms * (double)(to - from);
}

static int segments_make(struct segments *s, struct gpul_error *err)
{
    size_t n = s->count;
    s->squares = malloc((n + 1) * (n + 1) * sizeof(double));
    if (s->squares == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for a fit");
    }
    for (size_t from = 0; from < n; from++) {
        for (size_t to = from + 1; to <= n; to++) {
            *segment_at(s, from, to) = line_squares(s, from, to);
        }
    }
    return 0;
}

/* The best way to cut what begins at `from` into so many regimes; calls itself
 * for one fewer, LATFIT_REGIMES_MAX deep at most. */
static struct breaks best_breaks(const struct segments *s, size_t from,
                                 size_t regimes)
{
    struct breaks best = {.regimes = regimes, .squares = INFINITY};
    if (regimes == 1) {
        best.at[0] = from;
        best.squares = *segment_at(s, from, s->count);
        return best;
    }
    for (size_t to = from + 1; to < s->count; to++) {
        double first = *segment_at(s, from, to);
        if (!(first < best.squares)) {
            continue;
        }
        struct breaks rest = best_breaks(s, to, regimes - 1);
        if (first + rest.squares < best.squares) {
            best.squares = first + rest.squares;
            best.at[0] = from;
            for (size_t i = 0; i + 1 < regimes; i++) {
                best.at[i + 1] = rest.at[i];
            }
        }
    }
    return best;
}

/* Schwarz's criterion: the less, the better. */
static double score(const struct breaks *breaks, size_t count)
{
    double n = (double)count;
    return n * log(breaks->squares / n + NOISE * NOISE) +
           CONSTANTS_A_REGIME * (double)breaks->regimes * log(n);
}

static void fit_regimes(struct latfit *out, const struct segments *s)
{
    struct breaks best = best_breaks(s, 0, 1);
    for (size_t regimes = 2; regimes <= LATFIT_REGIMES_MAX; regimes++) {
        struct breaks other = best_breaks(s, 0, regimes);
        if (score(&other, s->count) < score(&best, s->count)) {
            best = other;
        }
    }
    out->regime_count = best.regimes;
    for (size_t i = 0; i < best.regimes; i++) {
        size_t end = i + 1 < best.regimes ? best.at[i + 1] : s->count;
        latfit_fit_line(&out->regimes[i], s->points + best.at[i],
                        end - best.at[i]);
        out->error_max = fmax(out->error_max, out->regimes[i].error_max);
    }
}

int latfit_make(struct latfit *out, const struct latfit_point *points,
                size_t count, struct gpul_error *err)
{
    int status;
    *out = (struct latfit){0};
    struct latfit_point *copy =
        latfit_sorted(points, count, LATFIT_REGIME_POINTS_MIN, &status, err);
    if (copy == NULL) {
        return status;
    }
    struct segments s = {.points = copy, .count = count};
    if (sizes_in(copy, 0, count) < LATFIT_REGIME_POINTS_MIN) {
        status = gpul_fail(err, GPUL_EINVAL,
                           "points of fewer than %d sizes; measure more sizes",
                           LATFIT_REGIME_POINTS_MIN);
    } else {
        status = segments_make(&s, err);
    }
    if (status == 0) {
        fit_regimes(out, &s);
    }
    free(s.squares);
    free(copy);
    return status;
}
