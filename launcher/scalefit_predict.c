/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fit says of a count of nodes that was not measured.
 */
#include <math.h>
#include <stdlib.h>

#include "launcher/scalefit.h"
#include "launcher/scalefit_inside.h"

/* No machine repeats better than this, whatever three repeats say. */
#define MARGIN 0.01

/* A draw never makes of a figure less than this share. */
#define DEVIATION_MIN 0.05

/* Relative deviations of figures from the mean of their count. */
struct pool {
    double *deviations; /* around 1 */
    size_t count;
};

/* What is looked at: the shapes, and how it goes on from the last two counts
 * if growth slows down or speeds up there. */
enum {
    SLOWER = SCALEFIT_SHAPES,
    FASTER,
    WAYS,
};

/* A bootstrap. */
struct draws {
    const struct scalefit *fit;
    struct pool pool;
    struct gpul_rng rng;
    uint32_t nodes;
    size_t last;   /* of the points: the most nodes */
    size_t before; /* the most but those */
    bool is_used[WAYS];
    double rates[WAYS][GPUL_BOOTSTRAP_DRAWS];
    double efficiencies[WAYS][GPUL_BOOTSTRAP_DRAWS];
};

/* Deviations are widened by what a mean of few takes from them. */
static bool pool_make(struct pool *pool, const struct scalefit *fit)
{
    size_t most = 0;
    for (size_t i = 0; i < fit->count; i++) {
        most += fit->points[i].repeats;
    }
    *pool = (struct pool){malloc(most * sizeof(double)), 0};
    for (size_t i = 0; pool->deviations != NULL && i < fit->count; i++) {
        double figures[EFFICIENCY_REPEATS_MAX];
        size_t n = efficiency_figures(figures, &fit->points[i]);
        double mean = 0;
        for (size_t k = 0; k < n; k++) {
            mean += figures[k] / (double)n;
        }
        double widen = sqrt((double)n / (double)(n - 1));
        for (size_t k = 0; k < n; k++) {
            double deviation = 1 + (figures[k] / mean - 1) * widen;
            pool->deviations[pool->count++] = fmax(deviation, DEVIATION_MIN);
        }
    }
    return pool->deviations != NULL;
}

/* By what a median of so many repeats may be off: a factor. */
static double draw_median(struct draws *d, size_t repeats)
{
    double sample[EFFICIENCY_REPEATS_MAX];
    double median;
    for (size_t i = 0; i < repeats; i++) {
        sample[i] = d->pool.deviations[gpul_rng_below(&d->rng, d->pool.count)];
    }
    gpul_median(&median, sample, repeats);
    return median;
}

/* The shape that grows next slower or faster than the best one. */
static enum scalefit_shape neighbour(const struct scalefit *fit, bool is_faster)
{
    if (fit->best == SCALEFIT_UNIVERSAL) {
        return is_faster ? SCALEFIT_QUADRATIC : SCALEFIT_LINEAR;
    }
    if (is_faster) {
        return fit->best < SCALEFIT_QUADRATIC ? fit->best + 1 : fit->best;
    }
    return fit->best > SCALEFIT_STEP ? fit->best - 1 : fit->best;
}

/* From the last two counts on in another shape. */
static double continued(const struct draws *d, const double *costs,
                        enum scalefit_shape shape)
{
    uint32_t last = d->fit->points[d->last].nodes;
    uint32_t before = d->fit->points[d->before].nodes;
    double rise = fmax(costs[d->last] - costs[d->before], 0);
    double unit = scalefit_growth(shape, last) - scalefit_growth(shape, before);
    double ahead =
        scalefit_growth(shape, d->nodes) - scalefit_growth(shape, last);
    return costs[d->last] + (unit > 0 ? rise * ahead / unit : 0);
}

static double cost_by(const struct draws *d, const double *costs, int way)
{
    struct scalefit_model model;
    const struct scalefit *fit = d->fit;
    if (way == SLOWER || way == FASTER) {
        return continued(d, costs, neighbour(fit, way == FASTER));
    }
    scalefit_model(&model, (enum scalefit_shape)way, fit->points, costs,
                   fit->count);
    return scalefit_model_cost(&model, (enum scalefit_shape)way, d->nodes);
}

static void draw_once(struct draws *d, size_t draw)
{
    const struct scalefit *fit = d->fit;
    double costs[EFFICIENCY_COUNTS_MAX];
    for (size_t i = 0; i < fit->count; i++) {
        costs[i] = fit->costs[i] / draw_median(d, fit->points[i].repeats);
    }
    double later = draw_median(d, fit->points[fit->reference].repeats);
    for (int way = 0; way < WAYS; way++) {
        if (d->is_used[way]) {
            double cost = cost_by(d, costs, way) / later;
            d->rates[way][draw] = d->nodes / cost;
            d->efficiencies[way][draw] = costs[fit->reference] / cost;
        }
    }
}

static void widen(struct gpul_interval *out, double *values)
{
    struct gpul_interval one;
    gpul_middle_interval(&one, values, GPUL_BOOTSTRAP_DRAWS);
    out->low = fmin(out->low, one.low * (1 - MARGIN));
    out->high = fmax(out->high, one.high * (1 + MARGIN));
}

static double cut(double share)
{
    return fmin(fmax(share, 0), 1);
}

static void summarize(struct scalefit_prediction *out, struct draws *d)
{
    const struct scalefit *fit = d->fit;
    double cost = scalefit_cost(fit, fit->best, d->nodes);
    struct gpul_estimate *rate = &out->rate;
    struct gpul_estimate *efficiency = &out->efficiency;
    rate->value = d->nodes / cost;
    efficiency->value = fit->costs[fit->reference] / cost;
    rate->interval = (struct gpul_interval){rate->value, rate->value};
    efficiency->interval =
        (struct gpul_interval){efficiency->value, efficiency->value};
    for (int way = 0; way < WAYS; way++) {
        if (d->is_used[way]) {
            widen(&rate->interval, d->rates[way]);
            widen(&efficiency->interval, d->efficiencies[way]);
        }
    }
    efficiency->value = cut(efficiency->value);
    efficiency->interval.low = cut(efficiency->interval.low);
    efficiency->interval.high = cut(efficiency->interval.high);
    rate->extrapolation = efficiency->extrapolation =
        fmax((double)d->nodes / fit->nodes_max, 1);
}

/* Which counts are the last two, and which ways there are to go on. */
static void look(struct draws *d, const struct scalefit *fit, uint32_t nodes)
{
    d->fit = fit;
    d->nodes = nodes;
    d->last = d->before = 0;
    for (size_t i = 1; i < fit->count; i++) {
        if (fit->points[i].nodes > fit->points[d->last].nodes) {
            d->last = i;
        }
    }
    d->before = d->last;
    for (size_t i = 0; i < fit->count; i++) {
        uint32_t n = fit->points[i].nodes;
        if (n < fit->nodes_max &&
            (d->before == d->last || n > fit->points[d->before].nodes)) {
            d->before = i;
        }
    }
    for (int s = 0; s < SCALEFIT_SHAPES; s++) {
        d->is_used[s] = fit->models[s].is_fitted && !fit->models[s].is_refuted;
    }
    d->is_used[SLOWER] = d->is_used[FASTER] = nodes > fit->nodes_max;
}

int scalefit_predict(struct scalefit_prediction *out,
                     const struct scalefit *fit, uint32_t nodes, uint64_t seed,
                     struct gpul_error *err)
{
    *out = (struct scalefit_prediction){0};
    if (nodes < fit->nodes_min) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no prediction for %u nodes: the smallest count that "
                         "was measured is %u",
                         (unsigned int)nodes, (unsigned int)fit->nodes_min);
    }
    struct draws *d = malloc(sizeof(*d));
    if (d == NULL || !pool_make(&d->pool, fit)) {
        free(d);
        return gpul_fail(err, GPUL_ENOMEM, "no memory for a prediction");
    }
    look(d, fit, nodes);
    gpul_rng_init(&d->rng, seed);
    for (size_t draw = 0; draw < GPUL_BOOTSTRAP_DRAWS; draw++) {
        draw_once(d, draw);
    }
    summarize(out, d);
    free(d->pool.deviations);
    free(d);
    return 0;
}
