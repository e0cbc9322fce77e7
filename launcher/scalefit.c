/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scalefit.h"

#include <math.h>

#include "common/units.h"
#include "launcher/leastsq.h"
#include "launcher/scalefit_inside.h"

/* When a shape is refuted. Real jobs follow no shape to the last percent. */
#define NOISES_MAX 2.5
#define TOLERANCE 0.01
#define BESTS_MAX 1.5

/* More work of one node of many than of one of few, in this proportion, is no
 * noise. */
#define ABOVE_LINEAR 1.05

/* Standard error of a median, in those of a mean. */
#define MEDIAN_ERROR 1.2533

const char *scalefit_shape_name(enum scalefit_shape shape)
{
    static const char *const names[] = {
        [SCALEFIT_STEP] = "step",
        [SCALEFIT_RING] = "ring",
        [SCALEFIT_LOG] = "log",
        [SCALEFIT_LINEAR] = "linear",
        [SCALEFIT_N_LOG_N] = "n log n",
        [SCALEFIT_QUADRATIC] = "quadratic",
        [SCALEFIT_UNIVERSAL] = "universal",
    };
    return shape < SCALEFIT_SHAPES ? names[shape] : "unknown";
}

double scalefit_growth(enum scalefit_shape shape, double n)
{
    switch (shape) {
    case SCALEFIT_STEP:
        return n > 1;
    case SCALEFIT_RING:
        return 1 - 1 / n;
    case SCALEFIT_LOG:
        return log2(n);
    case SCALEFIT_N_LOG_N:
        return n * log2(n);
    case SCALEFIT_QUADRATIC:
        return n * (n - 1);
    default:
        return n - 1;
    }
}

static size_t constants_of(enum scalefit_shape shape)
{
    return shape == SCALEFIT_UNIVERSAL ? 3 : 2;
}

void scalefit_model(struct scalefit_model *out, enum scalefit_shape shape,
                    const struct efficiency_point *points, const double *costs,
                    size_t count)
{
    struct leastsq_row rows[EFFICIENCY_COUNTS_MAX];
    struct leastsq fit;
    size_t constants = constants_of(shape);
    for (size_t i = 0; i < count; i++) {
        double n = points[i].nodes;
        rows[i] = (struct leastsq_row){{1, scalefit_growth(shape, n),
                                        scalefit_growth(SCALEFIT_QUADRATIC, n)},
                                       costs[i]};
    }
    *out = (struct scalefit_model){0};
    out->is_fitted =
        count > constants && leastsq_fit(&fit, rows, count, constants);
    if (out->is_fitted) {
        out->c = fit.constants[0];
        out->d = fit.constants[1];
        out->e = fit.constants[2];
        out->error_max = fit.error_max;
        out->error =
            fit.error_rms * sqrt((double)count / (double)(count - constants));
    }
}

double scalefit_model_cost(const struct scalefit_model *m,
                           enum scalefit_shape shape, uint32_t nodes)
{
    return m->c + m->d * scalefit_growth(shape, nodes) +
           m->e * scalefit_growth(SCALEFIT_QUADRATIC, nodes);
}

double scalefit_cost(const struct scalefit *fit, enum scalefit_shape shape,
                     uint32_t nodes)
{
    const struct scalefit_model *m = &fit->models[shape];
    return m->is_fitted ? scalefit_model_cost(m, shape, nodes) : 0;
}

static size_t different_nodes(const struct efficiency_point *points,
                              size_t count)
{
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        while (before < i && points[before].nodes != points[i].nodes) {
            before++;
        }
        different += before == i;
    }
    return different;
}

/* One point's median into the costs, and its share of the noise. */
static int take_point(struct scalefit *fit, size_t index, double *squares,
                      struct gpul_error *err)
{
    double figures[EFFICIENCY_REPEATS_MAX];
    struct gpul_summary s;
    double variation;
    const struct efficiency_point *p = &fit->points[index];
    size_t count = efficiency_figures(figures, p);
    if (count < EFFICIENCY_REPEATS_MIN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: %zu figure%s on %u node%s; %d repeats "
                         "are needed to know the spread",
                         count, gpul_plural(count), (unsigned int)p->nodes,
                         gpul_plural(p->nodes), EFFICIENCY_REPEATS_MIN);
    }
    if ((uint64_t)p->ranks * fit->points[0].nodes !=
        (uint64_t)fit->points[0].ranks * p->nodes) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: %u rank%s on %u node%s and %u on %u; "
                         "all nodes must have as many ranks",
                         (unsigned int)fit->points[0].ranks,
                         gpul_plural(fit->points[0].ranks),
                         (unsigned int)fit->points[0].nodes,
                         gpul_plural(fit->points[0].nodes),
                         (unsigned int)p->ranks, (unsigned int)p->nodes);
    }
    gpul_summarize(&s, figures, count);
    gpul_variation(&variation, &s);
    *squares += variation * variation / (double)count;
    fit->costs[index] = p->nodes / s.median;
    if (p->nodes < fit->nodes_min) {
        fit->nodes_min = p->nodes;
    }
    if (p->nodes > fit->nodes_max) {
        fit->nodes_max = p->nodes;
    }
    return 0;
}

/* The most that one node does, among those points of so many nodes. */
static double best_share(const struct scalefit *fit, uint32_t nodes)
{
    double share = 0;
    for (size_t i = 0; i < fit->count; i++) {
        if (fit->points[i].nodes == nodes) {
            share = fmax(share, 1 / fit->costs[i]);
        }
    }
    return share;
}

static void fit_shapes(struct scalefit *fit)
{
    struct scalefit_model *best = NULL;
    for (int s = 0; s < SCALEFIT_SHAPES; s++) {
        struct scalefit_model *m = &fit->models[s];
        scalefit_model(m, (enum scalefit_shape)s, fit->points, fit->costs,
                       fit->count);
        if (m->is_fitted && (best == NULL || m->error < best->error)) {
            best = m;
            fit->best = (enum scalefit_shape)s;
        }
    }
    for (int s = 0; best != NULL && s < SCALEFIT_SHAPES; s++) {
        struct scalefit_model *m = &fit->models[s];
        double allowed =
            fmax(NOISES_MAX * fit->noise + TOLERANCE, BESTS_MAX * best->error);
        m->is_refuted = m->is_fitted && m->error > allowed;
    }
}

static int judge(const struct scalefit *fit, struct gpul_error *err)
{
    double few = best_share(fit, fit->nodes_min);
    double many = best_share(fit, fit->nodes_max);
    const struct scalefit_model *best = &fit->models[fit->best];
    if (many > ABOVE_LINEAR * few) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: one of %u nodes does %.0f %% of the "
                         "work of one of %u; something else than their number "
                         "has changed",
                         (unsigned int)fit->nodes_max, 100 * many / few,
                         (unsigned int)fit->nodes_min);
    }
    if (!best->is_fitted || !(best->error_max <= SCALEFIT_ERROR_MAX)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction: the best shape (%s) is up to %.0f %% "
                         "off what was measured, %.0f %% are allowed; repeat "
                         "the counts more often, or measure more of them",
                         scalefit_shape_name(fit->best), 100 * best->error_max,
                         100 * SCALEFIT_ERROR_MAX);
    }
    return 0;
}

int scalefit_make(struct scalefit *out, const struct efficiency_point *points,
                  size_t count, size_t reference, struct gpul_error *err)
{
    double squares = 0;
    *out = (struct scalefit){.points = points,
                             .count = count,
                             .reference = reference,
                             .nodes_min = UINT32_MAX};
    int status = efficiency_check(points, count, reference, err);
    if (status != 0) {
        return status;
    }
    if (different_nodes(points, count) < SCALEFIT_COUNTS_MIN) {
        return gpul_fail(
            err, GPUL_EINVAL,
            "no prediction: %zu different counts of nodes; %d are needed to "
            "see how it goes on",
            different_nodes(points, count), SCALEFIT_COUNTS_MIN);
    }
    for (size_t i = 0; i < count; i++) {
        status = take_point(out, i, &squares, err);
        if (status != 0) {
            return status;
        }
    }
    out->noise = MEDIAN_ERROR * sqrt(squares / (double)count);
    fit_shapes(out);
    return judge(out, err);
}

double scalefit_peak_nodes(const struct scalefit *fit)
{
    const struct scalefit_model *m = &fit->models[SCALEFIT_UNIVERSAL];
    bool has_peak = m->is_fitted && m->e > 0 && m->c > m->d;
    return has_peak ? sqrt((m->c - m->d) / m->e) : 0;
}
