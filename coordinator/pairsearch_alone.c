/* SPDX-License-Identifier: Apache-2.0
 *
 * What is bad is measured again while all others are silent, so that a shared
 * network is blamed on nobody. One pair a round, so only as many as it takes.
 */
#include "coordinator/pairsearch_inside.h"

/* Paths that turned out good alone, none bad: it is the shared network, and
 * the others need no test. */
enum { SHARED_ENOUGH = 3 };

static bool is_tested_alone(const struct pairsearch *s, uint32_t node)
{
    uint32_t i = s->inner[node].first;
    while (i != PAIRSEARCH_NO_RECORD) {
        const struct pairsearch_record *r = &s->records[i];
        if (r->alone_round > 0) {
            return true;
        }
        i = r->next[pairsearch_side(r, node)];
    }
    return false;
}

/* The record by which a node is slow with a known good partner; the last one,
 * since that partner is in another place. */
static uint32_t find_against(const struct pairsearch *s, uint32_t node)
{
    uint32_t i = s->inner[node].first;
    while (i != PAIRSEARCH_NO_RECORD) {
        const struct pairsearch_record *r = &s->records[i];
        unsigned side = pairsearch_side(r, node);
        for (unsigned as = 0; as < 2; as++) {
            unsigned d = side ^ as;
            if (pairsearch_is_named(&s->inner[node].ends[as], LEVEL_RATE) &&
                pairsearch_end_of(s, r, d, 1 - as)
                    ->levels[LEVEL_RATE]
                    .is_good &&
                pairsearch_mark(s, pairsearch_cell_of(r, d), LEVEL_RATE) ==
                    MARK_BAD) {
                return i;
            }
        }
        i = r->next[side];
    }
    return PAIRSEARCH_NO_RECORD;
}

static uint32_t find_node_alone(const struct pairsearch *s)
{
    for (uint32_t node = 0; node < s->node_count; node++) {
        const struct pairsearch_end *ends = s->inner[node].ends;
        if ((pairsearch_is_named(&ends[0], LEVEL_RATE) ||
             pairsearch_is_named(&ends[1], LEVEL_RATE)) &&
            !is_tested_alone(s, node)) {
            return find_against(s, node);
        }
    }
    return PAIRSEARCH_NO_RECORD;
}

/* Is it bad, and is that not the fault of a node that is named? */
static bool is_suspect(const struct pairsearch *s,
                       const struct pairsearch_record *r,
                       enum pairsearch_level level)
{
    for (unsigned d = 0; d < 2; d++) {
        if (pairsearch_mark(s, pairsearch_cell_of(r, d), level) == MARK_BAD &&
            !pairsearch_is_named(pairsearch_end_of(s, r, d, 0), level) &&
            !pairsearch_is_named(pairsearch_end_of(s, r, d, 1), level)) {
            return true;
        }
    }
    return false;
}

static uint32_t find_path_alone(const struct pairsearch *s,
                                enum pairsearch_level level)
{
    bool is_enough =
        s->shared_pairs >= SHARED_ENOUGH && s->alone_bad_pairs == 0;
    for (uint32_t i = 0; i < s->record_count; i++) {
        const struct pairsearch_record *r = &s->records[i];
        if (r->alone_round > 0 || !is_suspect(s, r, level)) {
            continue;
        }
        if (level == LEVEL_RATE &&
            (is_enough || pairsearch_has_shared(s, r->nodes[0]) ||
             pairsearch_has_shared(s, r->nodes[1]))) {
            continue;
        }
        return i;
    }
    return PAIRSEARCH_NO_RECORD;
}

/* Nobody is good, and whoever was tested alone was not either. */
static bool is_hopeless(const struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        if (pairsearch_is_good(&s->inner[i])) {
            return false;
        }
    }
    return s->alone_count > 0 && s->alone_bad_pairs == s->alone_count;
}

bool pairsearch_plan_alone(struct pairsearch *s)
{
    if (s->is_alone_over || s->alone_count == PAIRSEARCH_ALONE_MAX) {
        return false;
    }
    pairsearch_judge_usual(s);
    if (is_hopeless(s)) {
        return false;
    }
    uint32_t i = find_node_alone(s);
    if (i == PAIRSEARCH_NO_RECORD) {
        i = find_path_alone(s, LEVEL_REACH);
    }
    if (i == PAIRSEARCH_NO_RECORD) {
        i = find_path_alone(s, LEVEL_RATE);
    }
    s->is_alone_over = i == PAIRSEARCH_NO_RECORD;
    if (s->is_alone_over) {
        return false;
    }
    struct pairsearch_record *r = &s->records[i];
    r->alone_round = (uint16_t)(s->number + 1);
    s->kind = PAIRSEARCH_ALONE;
    s->alone_count++;
    s->pairs[0] = (struct pairing_pair){.a = r->nodes[0], .b = r->nodes[1]};
    s->pair_records[0] = i;
    s->pair_count = 1;
    return true;
}
