/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/efficiency.h"

#include <math.h>

#include "common/units.h"

/* Over this, more machines do not explain it. */
#define ABOVE_LINEAR 1.05

/* From here on a tree crosses the network as a tree of many nodes does. */
enum { COMPARABLE_NODES_MIN = 3 };

const char *efficiency_kind_name(enum efficiency_kind kind)
{
    static const char *const names[] = {
        [EFFICIENCY_WEAK] = "weak",
        [EFFICIENCY_STRONG] = "strong",
        [EFFICIENCY_COLLECTIVE] = "collective",
    };
    size_t index = (size_t)kind;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : "unknown";
}

static bool is_figure(double value)
{
    return value > 0 && isfinite(value);
}

bool efficiency_slowest(double *seconds, const double *rank_seconds,
                        size_t ranks)
{
    double slowest = 0;
    *seconds = 0;
    for (size_t i = 0; i < ranks; i++) {
        if (!is_figure(rank_seconds[i])) {
            return false;
        }
        slowest = fmax(slowest, rank_seconds[i]);
    }
    *seconds = slowest;
    return ranks > 0;
}

double efficiency_step_rate(enum efficiency_kind kind, double step_seconds,
                            uint32_t ranks)
{
    double work = kind == EFFICIENCY_WEAK ? ranks : 1;
    return is_figure(step_seconds) ? work / step_seconds : 0;
}

size_t efficiency_figures(double *figures, const struct efficiency_point *point)
{
    size_t count = 0;
    for (size_t i = 0; i < point->repeats; i++) {
        if (is_figure(point->rates[i])) {
            figures[count++] = point->rates[i];
        }
    }
    return count;
}

int efficiency_check(const struct efficiency_point *points, size_t count,
                     size_t reference, struct gpul_error *err)
{
    if (count > EFFICIENCY_COUNTS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "%zu counts of nodes; at most %d can be compared",
                         count, EFFICIENCY_COUNTS_MAX);
    }
    if (reference >= count) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no reference: measurement %zu of %zu", reference + 1,
                         count);
    }
    for (size_t i = 0; i < count; i++) {
        if (points[i].ranks == 0 || points[i].nodes == 0) {
            return gpul_fail(err, GPUL_EINVAL,
                             "measurement %zu has %u ranks and %u nodes", i + 1,
                             (unsigned int)points[i].ranks,
                             (unsigned int)points[i].nodes);
        }
        if (points[i].repeats > EFFICIENCY_REPEATS_MAX) {
            return gpul_fail(
                err, GPUL_ELIMIT, "%zu repeats on %u node%s; at most %d count",
                points[i].repeats, (unsigned int)points[i].nodes,
                gpul_plural(points[i].nodes), EFFICIENCY_REPEATS_MAX);
        }
    }
    return 0;
}

/* What a figure is divided by, so that figures can be compared. */
static double share_of(enum efficiency_kind kind,
                       const struct efficiency_point *point)
{
    return kind == EFFICIENCY_COLLECTIVE ? 1 : point->ranks;
}

/* The middle 95 % of what resamples of both counts give. */
static void bootstrap(struct gpul_interval *out,
                      const struct efficiency_point *point,
                      const struct efficiency_point *reference, double shares,
                      struct gpul_rng *rng)
{
    double figures[2][EFFICIENCY_REPEATS_MAX];
    double sample[EFFICIENCY_REPEATS_MAX];
    double draws[GPUL_BOOTSTRAP_DRAWS];
    const size_t counts[2] = {efficiency_figures(figures[0], point),
                              efficiency_figures(figures[1], reference)};
    for (size_t draw = 0; draw < GPUL_BOOTSTRAP_DRAWS; draw++) {
        double medians[2];
        for (size_t i = 0; i < 2; i++) {
            gpul_resample(sample, figures[i], counts[i], rng);
            gpul_median(&medians[i], sample, counts[i]);
        }
        draws[draw] = medians[0] / medians[1] * shares;
    }
    gpul_middle_interval(out, draws, GPUL_BOOTSTRAP_DRAWS);
}

static void summarize(struct efficiency_row *row,
                      const struct efficiency_point *point)
{
    double figures[EFFICIENCY_REPEATS_MAX];
    size_t count = efficiency_figures(figures, point);
    *row = (struct efficiency_row){.nodes = point->nodes,
                                   .ranks = point->ranks,
                                   .failed = point->repeats - count};
    gpul_summarize(&row->rates, figures, count);
}

static unsigned int remarks_of(const struct efficiency_row *row,
                               enum efficiency_kind kind, bool is_reference)
{
    double variation;
    unsigned int remarks = is_reference ? EFFICIENCY_REFERENCE : 0;
    if (row->rates.count == 0) {
        remarks |= EFFICIENCY_NO_FIGURE;
    } else if (row->rates.count < EFFICIENCY_REPEATS_MIN) {
        remarks |= EFFICIENCY_FEW_REPEATS;
    }
    if (gpul_variation(&variation, &row->rates) &&
        variation > GPUL_NOISY_VARIATION) {
        remarks |= EFFICIENCY_NOISY;
    }
    if (kind == EFFICIENCY_COLLECTIVE && row->nodes < COMPARABLE_NODES_MIN) {
        return remarks | EFFICIENCY_NOT_COMPARABLE;
    }
    if (is_reference && row->nodes == 1) {
        remarks |= EFFICIENCY_ONE_NODE;
    }
    if (row->efficiency > ABOVE_LINEAR) {
        remarks |= EFFICIENCY_ABOVE_LINEAR;
    }
    return remarks;
}

int efficiency_make(struct efficiency_row *rows,
                    const struct efficiency_point *points, size_t count,
                    size_t reference, enum efficiency_kind kind, uint64_t seed,
                    struct gpul_error *err)
{
    struct efficiency_row base;
    struct gpul_rng rng;
    int status = efficiency_check(points, count, reference, err);
    if (status != 0) {
        return status;
    }
    summarize(&base, &points[reference]);
    if (base.rates.count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no repeat on %u node%s gave a figure, and all "
                         "others stand against it; name another reference",
                         (unsigned int)base.nodes, gpul_plural(base.nodes));
    }
    gpul_rng_init(&rng, seed);
    for (size_t i = 0; i < count; i++) {
        struct efficiency_row *row = &rows[i];
        double shares =
            share_of(kind, &points[reference]) / share_of(kind, &points[i]);
        summarize(row, &points[i]);
        row->efficiency = row->rates.median / base.rates.median * shares;
        row->interval =
            (struct gpul_interval){row->efficiency, row->efficiency};
        if (i != reference && row->rates.count > 0) {
            bootstrap(&row->interval, &points[i], &points[reference], shares,
                      &rng);
        }
        row->remarks = remarks_of(row, kind, i == reference);
    }
    return 0;
}

const char *efficiency_remark_text(enum efficiency_remark remark)
{
    switch (remark) {
    case EFFICIENCY_REFERENCE:
        return "reference";
    case EFFICIENCY_NO_FIGURE:
        return "no repeat gave a figure";
    case EFFICIENCY_FEW_REPEATS:
        return "fewer than 3 repeats: the spread is not known";
    case EFFICIENCY_NOISY:
        return "noisy: repeats vary by more than 10 %";
    case EFFICIENCY_ONE_NODE:
        return "one node: what the network costs shows in all others";
    case EFFICIENCY_NOT_COMPARABLE:
        return "not comparable with more nodes, unless all are flat rings: a "
               "tree of two crosses the network half as often";
    case EFFICIENCY_ABOVE_LINEAR:
        return "more than linear: something else has changed with the nodes";
    }
    return "";
}

int efficiency_remarks_text(struct gpul_buf *out,
                            const struct efficiency_row *row)
{
    const char *between = "";
    for (unsigned int bit = 1; bit <= row->remarks; bit <<= 1) {
        if ((row->remarks & bit) != 0) {
            gpul_buf_appendf(
                out, "%s%s", between,
                efficiency_remark_text((enum efficiency_remark)bit));
            between = "; ";
        }
    }
    return out->is_failed ? GPUL_ENOMEM : 0;
}
