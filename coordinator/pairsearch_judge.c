/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "common/stats.h"
#include "coordinator/pairsearch_inside.h"

/* See enum pairsearch_rule: the bounds of gpul_peer_bounds, wider for few. */
#define MARGIN 0.05
#define MARGIN_OF_FEW 0.20 /* divided by the root of their number */
#define MARGIN_OF_LEAST 0.15
#define MARGIN_MAX 0.25
#define MAD_FACTOR (3.5 * 1.4826)
/* Twice the standard error of a MAD of normal figures, as a part of it, times
 * the root of their number: by chance it may be that much too small. */
#define MAD_DOUBT 2.3

/* A figure counts towards the healthy ones if it is not under this part of
 * the level at which they are looked for, and neither end of it is a node
 * that stays under that part of it with everybody. */
#define POOL_PART (1 - MARGIN_MAX)
#define POOL_END_PART 0.9

/* Alone so much faster than among others: the network is shared. */
#define SHARED_PART 0.8

enum { TOP_RANK = 2 };

const struct pairsearch_cell *
pairsearch_cell_of(const struct pairsearch_record *r, unsigned direction)
{
    const struct pairsearch_cell *alone = &r->alone[direction];
    const struct pairsearch_cell *together = &r->together[direction];
    return alone->status == PAIRSEARCH_UNKNOWN || together->rate > alone->rate
               ? together
               : alone;
}

/* ---- what healthy figures are like ---- */

/* Only those of rounds with many pairs, which are all alike: alone any pair
 * may be faster. */

static void find_bests(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        memset(s->inner[i].ends, 0, sizeof(s->inner[i].ends));
    }
    for (uint32_t i = 0; i < s->record_count; i++) {
        const struct pairsearch_record *r = &s->records[i];
        for (unsigned d = 0; d < 2; d++) {
            const struct pairsearch_cell *cell = &r->together[d];
            for (unsigned as = 0; as < 2; as++) {
                struct pairsearch_end *end = pairsearch_end_of(s, r, d, as);
                if (cell->status == PAIRSEARCH_MEASURED &&
                    cell->rate > end->best) {
                    end->best = cell->rate;
                }
            }
        }
    }
}

/* Where healthy figures are looked for: by the best that each end has reached.
 * A good node that has met a good one has a good best, so slow nodes spoil
 * these least. The fastest two are left out, since a single figure that is
 * too good to be true would make suspects of all. */
static double find_level(struct pairsearch *s, bool is_fastest)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->node_count; i++) {
        for (unsigned as = 0; as < 2; as++) {
            if (s->inner[i].ends[as].best > 0) {
                s->scratch[count++] = s->inner[i].ends[as].best;
            }
        }
    }
    double median;
    if (!gpul_median(&median, s->scratch, count)) {
        return 0;
    }
    /* They are sorted. Of two halves the faster one is the healthy one. */
    if (!is_fastest) {
        return s->scratch[count / 2];
    }
    return s->scratch[count > TOP_RANK ? count - 1 - TOP_RANK : 0];
}

static uint32_t find_pool(struct pairsearch *s, double level)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->record_count; i++) {
        const struct pairsearch_record *r = &s->records[i];
        for (unsigned d = 0; d < 2; d++) {
            const struct pairsearch_cell *cell = &r->together[d];
            if (cell->status == PAIRSEARCH_MEASURED &&
                cell->rate >= POOL_PART * level &&
                pairsearch_end_of(s, r, d, 0)->best >= POOL_END_PART * level &&
                pairsearch_end_of(s, r, d, 1)->best >= POOL_END_PART * level) {
                s->scratch[count++] = cell->rate;
            }
        }
    }
    return count;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void find_reference(struct pairsearch *s, bool is_fastest)
{
    struct pairsearch_reference *ref = &s->reference;
    struct gpul_summary pool;
    memset(ref, 0, sizeof(*ref));
    ref->figures = find_pool(s, find_level(s, is_fastest));
    if (!gpul_summarize(&pool, s->scratch, ref->figures)) {
        return;
    }
    ref->median = pool.median;
    ref->mad = pool.mad;
    double margin = MARGIN_OF_LEAST * ref->median;
    ref->rule = PAIRSEARCH_RULE_FEW;
    if (ref->figures >= GPUL_PEERS_MIN) {
        ref->rule = PAIRSEARCH_RULE_PEERS;
        margin = MARGIN + MARGIN_OF_FEW / sqrt(ref->figures);
        margin = larger(margin * ref->median,
                        MAD_FACTOR * ref->mad *
                            (1 + MAD_DOUBT / sqrt(ref->figures)));
    }
    ref->threshold =
        larger(ref->median - margin, (1 - MARGIN_MAX) * ref->median);
    if (s->config.floor_bytes_per_s > ref->threshold) {
        ref->threshold = s->config.floor_bytes_per_s;
        ref->rule = PAIRSEARCH_RULE_FLOOR;
    }
}

/* ---- what each figure shows ---- */

enum pairsearch_mark pairsearch_mark(const struct pairsearch *s,
                                     const struct pairsearch_cell *cell,
                                     enum pairsearch_level level)
{
    if (cell->status == PAIRSEARCH_UNKNOWN) {
        return MARK_NONE;
    }
    if (cell->status != PAIRSEARCH_MEASURED) {
        return level == LEVEL_REACH ? MARK_BAD : MARK_NONE;
    }
    if (level == LEVEL_REACH) {
        return MARK_GOOD;
    }
    return cell->rate < s->reference.threshold ||
                   cell->loss >= s->config.loss_limit
               ? MARK_BAD
               : MARK_GOOD;
}

static void clear_good(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->record_count; i++) {
        const struct pairsearch_record *r = &s->records[i];
        for (unsigned d = 0; d < 2; d++) {
            const struct pairsearch_cell *cell = pairsearch_cell_of(r, d);
            for (unsigned level = 0; level < LEVELS; level++) {
                if (pairsearch_mark(s, cell, level) == MARK_GOOD) {
                    pairsearch_end_of(s, r, d, 0)->levels[level].is_good = true;
                    pairsearch_end_of(s, r, d, 1)->levels[level].is_good = true;
                }
            }
        }
    }
}

static bool are_neighbours(const struct pairsearch *s,
                           const struct pairsearch_record *r)
{
    uint32_t apart = r->nodes[0] > r->nodes[1] ? r->nodes[0] - r->nodes[1]
                                               : r->nodes[1] - r->nodes[0];
    return apart == 1 || apart == s->node_count - 1;
}

static void count_against(const struct pairsearch *s,
                          const struct pairsearch_record *r, unsigned d,
                          enum pairsearch_level level)
{
    enum pairsearch_mark mark =
        pairsearch_mark(s, pairsearch_cell_of(r, d), level);
    for (unsigned as = 0; as < 2; as++) {
        struct pairsearch_standing *own =
            &pairsearch_end_of(s, r, d, as)->levels[level];
        bool is_partner_good =
            pairsearch_end_of(s, r, d, 1 - as)->levels[level].is_good;
        own->tries += is_partner_good;
        if (mark == MARK_BAD) {
            own->bad++;
            own->bad_known += is_partner_good;
            own->bad_elsewhere += is_partner_good && !are_neighbours(s, r);
        }
    }
}

bool pairsearch_is_shared(const struct pairsearch *s,
                          const struct pairsearch_record *r)
{
    for (unsigned d = 0; d < 2; d++) {
        if (!r->is_single && r->alone[d].status == PAIRSEARCH_MEASURED &&
            pairsearch_mark(s, &r->alone[d], LEVEL_RATE) == MARK_GOOD &&
            pairsearch_mark(s, &r->together[d], LEVEL_RATE) == MARK_BAD &&
            r->together[d].rate < SHARED_PART * r->alone[d].rate) {
            return true;
        }
    }
    return false;
}

bool pairsearch_has_shared(const struct pairsearch *s, uint32_t node)
{
    uint32_t i = s->inner[node].first;
    while (i != PAIRSEARCH_NO_RECORD) {
        const struct pairsearch_record *r = &s->records[i];
        if (pairsearch_is_shared(s, r)) {
            return true;
        }
        i = r->next[pairsearch_side(r, node)];
    }
    return false;
}

static void count_all(struct pairsearch *s)
{
    s->shared_pairs = 0;
    s->alone_bad_pairs = 0;
    for (uint32_t i = 0; i < s->record_count; i++) {
        const struct pairsearch_record *r = &s->records[i];
        bool is_bad_alone = false;
        for (unsigned d = 0; d < 2; d++) {
            bool is_bad = pairsearch_mark(s, pairsearch_cell_of(r, d),
                                          LEVEL_RATE) == MARK_BAD;
            count_against(s, r, d, LEVEL_REACH);
            count_against(s, r, d, LEVEL_RATE);
            is_bad_alone = is_bad_alone || (is_bad && r->alone_round > 0);
        }
        s->shared_pairs += pairsearch_is_shared(s, r);
        s->alone_bad_pairs += is_bad_alone;
    }
}

static void judge(struct pairsearch *s, bool is_fastest)
{
    find_bests(s);
    find_reference(s, is_fastest);
    clear_good(s);
    count_all(s);
}

void pairsearch_judge_fastest(struct pairsearch *s)
{
    judge(s, true);
}

void pairsearch_judge_usual(struct pairsearch *s)
{
    uint32_t good = 0;
    uint32_t measured = 0;
    judge(s, true);
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct pairsearch_end *ends = s->inner[i].ends;
        measured += ends[0].best > 0 || ends[1].best > 0;
        good += pairsearch_is_good(&s->inner[i]);
    }
    s->faster_nodes = 0;
    if (good < measured - good) {
        judge(s, false);
        s->faster_nodes = s->reference.rule == PAIRSEARCH_RULE_FLOOR ? 0 : good;
    }
}
