/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-tests of a sweep: what each count of nodes reached, and what that
 * says of latency and bandwidth.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/latfit.h"
#include "launcher/scalebook_inside.h"

enum { NETWORK_NODES_MIN = 3 }; /* for latfit_nodes_make */

static bool is_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static const struct dossier_bandwidth *row_at(const struct dossier *d, size_t i)
{
    return dossier_at(d, DOSSIER_BANDWIDTH, i);
}

/* Repeats of one thing. */
static bool is_same(const struct dossier_bandwidth *a,
                    const struct dossier_bandwidth *b)
{
    return a->node_count == b->node_count && a->bytes == b->bytes &&
           is_text(a->collective, b->collective) && is_text(a->scope, b->scope);
}

static bool is_all_reduce(const struct dossier_bandwidth *row)
{
    return is_text(row->collective, gpul_collective_name(GPUL_ALL_REDUCE)) &&
           is_text(row->scope, "world");
}

/* ---- one row of several runs --------------------------------------------- */

static int by_median(const void *a, const void *b)
{
    double x = (*(const struct dossier_bandwidth *const *)a)->median_s;
    double y = (*(const struct dossier_bandwidth *const *)b)->median_s;
    return (x > y) - (x < y);
}

/* Of the repeats of row `i`, which is the first of them, that in the middle;
 * of an even number the slower one. */
static const struct dossier_bandwidth *
choose(const struct dossier *rows, size_t i,
       const struct dossier_bandwidth **spare)
{
    size_t count = 0;
    for (size_t k = i; k < dossier_count(rows, DOSSIER_BANDWIDTH); k++) {
        if (is_same(row_at(rows, i), row_at(rows, k))) {
            spare[count++] = row_at(rows, k);
        }
    }
    qsort(spare, count, sizeof(*spare), by_median);
    return spare[count / 2];
}

static bool is_first(const struct dossier *rows, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (is_same(row_at(rows, k), row_at(rows, i))) {
            return false;
        }
    }
    return true;
}

/* Texts live in b->rows, as long as the record. */
static void add_rows(struct scalebook *b)
{
    size_t count = dossier_count(&b->rows, DOSSIER_BANDWIDTH);
    const struct dossier_bandwidth **spare = calloc(count + 1, sizeof(*spare));
    if (spare == NULL) {
        b->record.is_failed = true;
        return;
    }
    for (size_t place = 0; place < b->plan->count_count; place++) {
        for (size_t i = 0; i < count; i++) {
            if (row_at(&b->rows, i)->node_count != b->plan->counts[place] ||
                !is_first(&b->rows, i)) {
                continue;
            }
            struct dossier_bandwidth *to =
                dossier_add(&b->record, DOSSIER_BANDWIDTH);
            if (to != NULL) {
                *to = *choose(&b->rows, i, spare);
            }
        }
    }
    free(spare);
}

/* ---- fits ---------------------------------------------------------------- */

static void put(struct scalebook *b, struct dossier_fit *fit, const char *key,
                double value)
{
    dossier_put_figure(&b->record, &fit->parameters, key, value);
}

/* All-reduces on so many nodes, from `bytes_min` on, behind the others. */
static size_t gather(struct latfit_point *points, size_t used,
                     const struct dossier *d, int64_t nodes, double bytes_min)
{
    for (size_t i = 0; i < dossier_count(d, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *row = row_at(d, i);
        if (used < LATFIT_POINTS_MAX && row->node_count == nodes &&
            is_all_reduce(row) && row->rank_count > 1 && row->median_s > 0 &&
            (double)row->bytes >= bytes_min) {
            points[used++] =
                (struct latfit_point){.ranks = (uint32_t)row->rank_count,
                                      .bytes = (double)row->bytes,
                                      .seconds = row->median_s};
        }
    }
    return used;
}

static void add_regime(struct scalebook *b, int64_t nodes, uint32_t ranks,
                       const struct latfit_regime *regime)
{
    static const double most = 0.9;
    struct dossier_fit *fit = scalebook_add_fit(b, "all-reduce: a + b S", NULL);
    if (fit == NULL) {
        return;
    }
    fit->node_count = nodes;
    fit->bytes_min = (int64_t)regime->bytes_min;
    fit->bytes_max = (int64_t)regime->bytes_max;
    fit->max_relative_error = regime->error_max;
    fit->is_usable =
        regime->error_max <= LATFIT_ERROR_MAX && regime->points > 2;
    put(b, fit, "a_seconds", regime->a);
    put(b, fit, "b_seconds_per_byte", regime->b);
    double factor = 0;
    if (gpul_busbw_factor(&factor, GPUL_ALL_REDUCE, ranks) &&
        latfit_busbw_gbps(regime, factor) > 0) {
        put(b, fit, "busbw_bytes_per_second",
            latfit_busbw_gbps(regime, factor) * 1e9);
        put(b, fit, "bytes_for_90_percent", latfit_bytes_for(regime, most));
    }
}

/* Of one count of nodes. Returns from which size on its last regime is, 0:
 * there is no fit. */
static double fit_count(struct scalebook *b, uint32_t nodes)
{
    struct latfit fit;
    struct gpul_error err = {0};
    struct latfit_point points[LATFIT_POINTS_MAX];
    size_t count = gather(points, 0, &b->record, nodes, 0);
    if (count == 0) {
        return 0;
    }
    if (latfit_make(&fit, points, count, &err) != 0) {
        struct dossier_fit *none =
            scalebook_add_fit(b, "all-reduce: a + b S", err.text);
        if (none != NULL) {
            none->node_count = nodes;
        }
        return 0;
    }
    for (size_t i = 0; i < fit.regime_count; i++) {
        add_regime(b, nodes, points[0].ranks, &fit.regimes[i]);
    }
    return latfit_large(&fit)->bytes_min;
}

static void add_nodes_models(struct scalebook *b,
                             const struct latfit_nodes *nodes)
{
    static const char *const models[LATFIT_GROWTHS] = {
        [LATFIT_RANKS] = "all-reduce: c0 + c1 (n - 1) + f S / B",
        [LATFIT_LOG] = "all-reduce: c0 + c1 log2 n + f S / B"};
    for (size_t i = 0; i < LATFIT_GROWTHS; i++) {
        const struct latfit_model *model = &nodes->models[i];
        struct dossier_fit *fit = scalebook_add_fit(
            b, models[i],
            i == (size_t)nodes->chosen ? "the smaller errors of two" : NULL);
        if (fit == NULL) {
            return;
        }
        fit->bytes_min = (int64_t)nodes->bytes_min;
        fit->bytes_max = (int64_t)nodes->bytes_max;
        fit->max_relative_error = model->error_max;
        fit->is_usable =
            model->error_max <= LATFIT_ERROR_MAX && nodes->points > 3;
        put(b, fit, "c0_seconds", model->c0);
        put(b, fit, "c1_seconds", model->c1);
        put(b, fit, "seconds_per_byte", model->per_byte);
    }
}

void scalebook_add_bandwidths(struct scalebook *b)
{
    struct latfit_nodes nodes;
    struct latfit_point points[LATFIT_POINTS_MAX];
    double bytes_min = 0;
    size_t used = 0;
    add_rows(b);
    for (size_t i = 0; i < b->plan->count_count; i++) {
        double from = fit_count(b, b->plan->counts[i]);
        bytes_min = from > bytes_min ? from : bytes_min;
    }
    for (size_t i = 0; i < b->plan->count_count; i++) {
        if (b->plan->counts[i] >= NETWORK_NODES_MIN) {
            used =
                gather(points, used, &b->record, b->plan->counts[i], bytes_min);
        }
    }
    /* Of one count of ranks there is none, and nothing to say of it. */
    if (latfit_nodes_make(&nodes, points, used, GPUL_ALL_REDUCE, NULL) == 0) {
        add_nodes_models(b, &nodes);
    }
}

double scalebook_busbw(const struct scalebook *b, uint32_t nodes)
{
    const struct dossier_bandwidth *best = NULL;
    for (size_t i = 0; i < dossier_count(&b->record, DOSSIER_BANDWIDTH); i++) {
        const struct dossier_bandwidth *row = row_at(&b->record, i);
        if (row->node_count == (int64_t)nodes && is_all_reduce(row) &&
            (best == NULL || row->bytes > best->bytes)) {
            best = row;
        }
    }
    return best != NULL ? best->busbw : (double)NAN;
}
