/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pairsearch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/pairsearch_inside.h"

enum {
    /* Known good partners that are tried before a node stays unknown. */
    TRIES_MAX = 3,
    /* So few nodes that all pairs are measured if that is needed: a good one
     * may have met nobody but bad ones. */
    SMALL = 8,
};

/* A node whose best figure is below this part of the healthy median is worse,
 * whatever the threshold. */
#define UNCLEAR_PART 0.9

/* ---- memory ---- */

static uint32_t records_needed(const struct pairsearch_config *c)
{
    uint64_t n = c->node_count;
    uint64_t all = n * (n - 1) / 2;
    uint64_t some = n / 2 * PAIRSEARCH_TOGETHER_MAX;
    return (uint32_t)(c->is_all_pairs || all < some ? all : some);
}

static bool allocate(struct pairsearch *s)
{
    size_t n = s->node_count;
    size_t halves = n / 2 + 1;
    size_t figures = 2 * (s->records_max > n ? s->records_max : n);
    s->inner = calloc(n, sizeof(*s->inner));
    s->records = calloc(s->records_max, sizeof(*s->records));
    s->scratch = calloc(figures, sizeof(*s->scratch));
    s->roles = calloc(n, sizeof(*s->roles));
    s->pairs = calloc(halves, sizeof(*s->pairs));
    s->pair_records = calloc(halves, sizeof(*s->pair_records));
    s->splits = calloc(halves, sizeof(*s->splits));
    s->groups = calloc(2 * halves, sizeof(*s->groups));
    s->group_cells = calloc(2 * halves, sizeof(*s->group_cells));
    s->nodes = calloc(n, sizeof(*s->nodes));
    s->paths = calloc(PAIRSEARCH_PATHS_MAX, sizeof(*s->paths));
    s->slow_groups = calloc(halves, sizeof(*s->slow_groups));
    return s->inner != NULL && s->records != NULL && s->scratch != NULL &&
           s->roles != NULL && s->pairs != NULL && s->pair_records != NULL &&
           s->splits != NULL && s->groups != NULL && s->group_cells != NULL &&
           s->nodes != NULL && s->paths != NULL && s->slow_groups != NULL;
}

static bool is_rate(double value)
{
    return isfinite(value) && value > 0;
}

static void take_config(struct pairsearch *s,
                        const struct pairsearch_config *config)
{
    s->config = *config;
    s->node_count = config->node_count;
    s->records_max = records_needed(config);
    if (!is_rate(config->floor_bytes_per_s)) {
        s->config.floor_bytes_per_s = 0;
    }
    if (!is_rate(config->loss_limit)) {
        s->config.loss_limit = PAIRSEARCH_LOSS_DEFAULT;
    }
}

int pairsearch_create(struct pairsearch **search,
                      const struct pairsearch_config *config,
                      struct gpul_error *err)
{
    uint32_t most = config->is_all_pairs ? PAIRSEARCH_ALL_PAIRS_NODES_MAX
                                         : PAIRSEARCH_NODES_MAX;
    *search = NULL;
    if (config->node_count < 2) {
        return gpul_fail(err, GPUL_EINVAL,
                         "pairs need two nodes at least, not %u",
                         config->node_count);
    }
    if (config->node_count > most) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "%u nodes: tests of %s pairs are for %u at most",
                         config->node_count,
                         config->is_all_pairs ? "all" : "neighbouring", most);
    }
    struct pairsearch *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "%u nodes", config->node_count);
    }
    take_config(s, config);
    if (!allocate(s)) {
        pairsearch_destroy(s);
        return gpul_fail(err, GPUL_ENOMEM, "%u nodes", config->node_count);
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        s->inner[i].first = PAIRSEARCH_NO_RECORD;
    }
    s->is_reported = true;
    *search = s;
    return 0;
}

void pairsearch_destroy(struct pairsearch *s)
{
    if (s == NULL) {
        return;
    }
    free(s->inner);
    free(s->records);
    free(s->scratch);
    free(s->roles);
    free(s->pairs);
    free(s->pair_records);
    free(s->splits);
    free(s->groups);
    free(s->group_cells);
    free(s->nodes);
    free(s->paths);
    free(s->slow_groups);
    free(s);
}

/* ---- figures ---- */

static struct pairsearch_cell make_cell(const struct pairsearch_figure *f)
{
    struct pairsearch_cell cell = {.status = PAIRSEARCH_UNKNOWN};
    switch (f->status) {
    case PAIRSEARCH_MEASURED:
        if (!is_rate(f->bytes_per_s)) {
            return cell;
        }
        cell.rate = f->bytes_per_s;
        cell.loss = f->loss > 0 && f->loss <= 1 ? (float)f->loss : 0;
        break;
    case PAIRSEARCH_REFUSED:
    case PAIRSEARCH_TIMEOUT:
        break;
    default:
        return cell;
    }
    cell.status = (uint8_t)f->status;
    return cell;
}

void pairsearch_report(struct pairsearch *s, uint32_t index,
                       const struct pairsearch_measure *measure)
{
    if (s->is_reported || s->kind == PAIRSEARCH_GROUPS ||
        index >= s->pair_count ||
        s->pair_records[index] == PAIRSEARCH_NO_RECORD) {
        return;
    }
    struct pairsearch_record *r = &s->records[s->pair_records[index]];
    struct pairsearch_cell *cells =
        s->kind == PAIRSEARCH_ALONE ? r->alone : r->together;
    cells[0] = make_cell(&measure->a_to_b);
    cells[1] = make_cell(&measure->b_to_a);
}

void pairsearch_report_group(struct pairsearch *s, uint32_t index,
                             const struct pairsearch_figure *figure)
{
    if (!s->is_reported && s->kind == PAIRSEARCH_GROUPS &&
        index < s->group_count) {
        s->group_cells[index] = make_cell(figure);
    }
}

/* ---- records ---- */

static bool has_met(const struct pairsearch *s, uint32_t a, uint32_t b)
{
    uint32_t i = s->inner[a].first;
    while (i != PAIRSEARCH_NO_RECORD) {
        const struct pairsearch_record *r = &s->records[i];
        unsigned side = pairsearch_side(r, a);
        if (r->nodes[1 - side] == b) {
            return true;
        }
        i = r->next[side];
    }
    return false;
}

static bool may_meet(const void *arg, uint32_t a, uint32_t b)
{
    return a != b && !has_met(arg, a, b);
}

static bool may_meet_again(const void *arg, uint32_t a, uint32_t b)
{
    (void)arg;
    return a != b;
}

static void add_record(struct pairsearch *s, uint32_t index)
{
    struct pairsearch_record *r = &s->records[s->record_count];
    r->nodes[0] = s->pairs[index].a;
    r->nodes[1] = s->pairs[index].b;
    r->round = (uint16_t)(s->number + 1);
    r->is_single = s->pair_count == 1;
    for (unsigned side = 0; side < 2; side++) {
        struct pairsearch_inner *node = &s->inner[r->nodes[side]];
        r->next[side] = node->first;
        node->first = s->record_count;
    }
    s->pair_records[index] = s->record_count++;
}

/* ---- rounds whose pairs stand beforehand ---- */

static bool plan_fixed(struct pairsearch *s)
{
    uint32_t n = s->node_count;
    if (s->config.is_all_pairs) {
        s->kind = PAIRSEARCH_ALL;
        s->pair_count = pairing_circle(s->pairs, n, s->together_count);
        return s->pair_count > 0;
    }
    /* What an odd ring has left is measured with the third round. */
    s->kind = PAIRSEARCH_NEIGHBOURS;
    s->pair_count = n > 3 && s->together_count == 2
                        ? 0
                        : pairing_neighbours(s->pairs, n, s->together_count);
    return s->pair_count > 0;
}

/* ---- suspects and good partners ---- */

/* Would another known good partner tell more? */
static bool asks(const struct pairsearch_end *end)
{
    const struct pairsearch_standing *s =
        &end->levels[end->levels[LEVEL_REACH].is_good ? LEVEL_RATE
                                                      : LEVEL_REACH];
    return !s->is_good && s->tries < TRIES_MAX &&
           !(s->bad_known >= 2 && s->bad_elsewhere > 0);
}

static bool is_cut_off(const struct pairsearch_inner *node)
{
    return pairsearch_is_named(&node->ends[0], LEVEL_REACH) ||
           pairsearch_is_named(&node->ends[1], LEVEL_REACH);
}

static void set_roles(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct pairsearch_inner *node = &s->inner[i];
        s->roles[i] = pairsearch_is_good(node) ? PAIRING_HELPS
                      : asks(&node->ends[0]) || asks(&node->ends[1])
                          ? PAIRING_ASKS
                          : PAIRING_RESTS;
    }
}

/* The pair that closes an odd ring, unless one of it has a better use. */
static void add_closing(struct pairsearch *s)
{
    uint32_t last = s->node_count - 1;
    if (last % 2 == 0 && s->roles[0] == PAIRING_HELPS &&
        s->roles[last] == PAIRING_HELPS && !has_met(s, last, 0)) {
        s->pairs[s->pair_count++] = (struct pairing_pair){.a = last, .b = 0};
        s->roles[0] = PAIRING_RESTS;
        s->roles[last] = PAIRING_RESTS;
    }
}

/* All that are in no pair yet, but for those that cost a time-out each. */
static void set_idle(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        s->roles[i] = is_cut_off(&s->inner[i]) ? PAIRING_RESTS : PAIRING_HELPS;
    }
    for (uint32_t i = 0; i < s->pair_count; i++) {
        s->roles[s->pairs[i].a] = PAIRING_RESTS;
        s->roles[s->pairs[i].b] = PAIRING_RESTS;
    }
}

static void add_far(struct pairsearch *s, pairing_may_fn may)
{
    set_idle(s);
    s->pair_count +=
        pairing_far(s->pairs + s->pair_count, s->node_count, s->roles, may, s);
}

/* A third of the nodes is worse than what counts as healthy, clearly or not:
 * it may be that this is the fastest of the bad. */
static bool is_unclear(const struct pairsearch *s)
{
    double least = UNCLEAR_PART * s->reference.median;
    if (least < s->reference.threshold) {
        least = s->reference.threshold;
    }
    uint32_t worse = 0;
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct pairsearch_end *ends = s->inner[i].ends;
        worse += (ends[0].best > 0 && ends[0].best < least) ||
                 (ends[1].best > 0 && ends[1].best < least);
    }
    return 3 * worse >= s->node_count;
}

static bool plan_cross(struct pairsearch *s)
{
    if (s->is_cross_over || s->config.is_all_pairs || s->node_count < 4 ||
        s->together_count == PAIRSEARCH_TOGETHER_MAX) {
        return false;
    }
    pairsearch_judge_fastest(s);
    set_roles(s);
    s->kind = PAIRSEARCH_CROSS;
    s->pair_count =
        pairing_cross(s->pairs, s->node_count, s->roles, may_meet, s);
    add_closing(s);
    if (s->together_count == 2 || (s->node_count <= SMALL && is_unclear(s))) {
        add_far(s, may_meet);
    }
    s->is_cross_over = s->pair_count == 0;
    return !s->is_cross_over;
}

/* ---- rounds ---- */

/* Those who are left over meet somebody again. What comes of it does not
 * count, but all rounds load the network alike, so their figures compare. */
static void add_ballast(struct pairsearch *s)
{
    uint32_t first = s->pair_count;
    add_far(s, may_meet_again);
    for (uint32_t i = first; i < s->pair_count; i++) {
        s->pair_records[i] = PAIRSEARCH_NO_RECORD;
    }
}

static void finish_round(struct pairsearch *s)
{
    if (s->is_reported) {
        return;
    }
    s->is_reported = true;
    if (s->kind == PAIRSEARCH_GROUPS) {
        pairsearch_finish_groups(s);
    } else if (s->kind != PAIRSEARCH_ALL ||
               s->together_count == pairing_circle_rounds(s->node_count)) {
        pairsearch_judge_usual(s);
        pairsearch_conclude(s);
    }
}

static bool plan_pairs(struct pairsearch *s)
{
    if (plan_fixed(s) || plan_cross(s)) {
        uint32_t measured = s->pair_count;
        if (s->kind == PAIRSEARCH_CROSS) {
            add_ballast(s);
        }
        for (uint32_t i = 0; i < measured; i++) {
            add_record(s, i);
        }
        s->together_count++;
        return true;
    }
    return pairsearch_plan_alone(s);
}

static bool plan_groups(struct pairsearch *s)
{
    if (!pairsearch_plan_groups(s)) {
        return false;
    }
    s->groups_count++;
    return true;
}

bool pairsearch_next(struct pairsearch *s, struct pairsearch_round *round)
{
    memset(round, 0, sizeof(*round));
    finish_round(s);
    if (s->is_over || !(plan_pairs(s) || plan_groups(s))) {
        s->is_over = true;
        return false;
    }
    s->is_reported = false;
    s->number++;
    round->number = s->number;
    round->kind = s->kind;
    if (s->kind == PAIRSEARCH_GROUPS) {
        round->groups = s->groups;
        round->count = s->group_count;
    } else {
        round->pairs = s->pairs;
        round->count = s->pair_count;
    }
    return true;
}
