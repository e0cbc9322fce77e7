/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coordinator/pairsearch_inside.h"

/* Of those that were slow among others more were good alone than not: then
 * who was not tested alone is not accused. */
static bool is_doubtful(const struct pairsearch *s)
{
    return s->shared_pairs > s->alone_bad_pairs;
}

static double ratio_of(const struct pairsearch *s, double rate)
{
    return s->reference.median > 0 ? rate / s->reference.median : 0;
}

/* ---- nodes ---- */

static struct pairsearch_figure figure_of(const struct pairsearch_cell *cell)
{
    return (struct pairsearch_figure){
        .status = cell->status,
        .bytes_per_s = cell->rate,
        .loss = (double)cell->loss,
    };
}

static void add_evidence(struct pairsearch_node *node,
                         const struct pairsearch_record *r, unsigned d)
{
    const struct pairsearch_cell *cell = pairsearch_cell_of(r, d);
    bool is_alone = cell == &r->alone[d];
    if (node->evidence_count == PAIRSEARCH_EVIDENCE_MAX) {
        return;
    }
    node->evidence[node->evidence_count++] = (struct pairsearch_evidence){
        .from = r->nodes[d],
        .to = r->nodes[1 - d],
        .round = is_alone ? r->alone_round : r->round,
        .figure = figure_of(cell),
        .is_alone = is_alone || r->is_single,
    };
}

/* The figures in the bad ways with known good partners, the last ones first.
 */
static void gather_evidence(const struct pairsearch *s,
                            struct pairsearch_node *node, uint32_t index,
                            enum pairsearch_level level)
{
    uint32_t lossy = 0;
    uint32_t bad = 0;
    uint32_t i = s->inner[index].first;
    while (i != PAIRSEARCH_NO_RECORD) {
        const struct pairsearch_record *r = &s->records[i];
        unsigned side = pairsearch_side(r, index);
        for (unsigned as = 0; as < 2; as++) {
            unsigned d = side ^ as;
            const struct pairsearch_cell *cell = pairsearch_cell_of(r, d);
            if ((node->ways & 1u << as) == 0 ||
                pairsearch_mark(s, cell, level) != MARK_BAD ||
                !pairsearch_end_of(s, r, d, 1 - as)->levels[level].is_good) {
                continue;
            }
            add_evidence(node, r, d);
            bad++;
            lossy += cell->loss >= s->config.loss_limit;
            node->is_tested_alone =
                node->is_tested_alone || r->alone_round > 0 || r->is_single;
        }
        i = r->next[side];
    }
    node->is_lossy = 2 * lossy > bad;
}

static uint8_t ways_named(const struct pairsearch_inner *inner,
                          enum pairsearch_level level)
{
    uint8_t ways = 0;
    for (unsigned as = 0; as < 2; as++) {
        if (pairsearch_is_named(&inner->ends[as], level)) {
            ways |= (uint8_t)(1u << as);
        }
    }
    return ways;
}

static uint8_t ways_not_good(const struct pairsearch_inner *inner)
{
    uint8_t ways = 0;
    for (unsigned as = 0; as < 2; as++) {
        if (!inner->ends[as].levels[LEVEL_RATE].is_good) {
            ways |= (uint8_t)(1u << as);
        }
    }
    return ways;
}

static double worst_ratio(const struct pairsearch *s,
                          const struct pairsearch_node *node)
{
    double worst = 0;
    for (unsigned as = 0; as < 2; as++) {
        double ratio = ratio_of(s, node->best_bytes_per_s[as]);
        if ((node->ways & 1u << as) != 0 && ratio > 0 &&
            (worst <= 0 || ratio < worst)) {
            worst = ratio;
        }
    }
    return worst;
}

static void judge_node(const struct pairsearch *s, struct pairsearch_node *node,
                       uint32_t index)
{
    const struct pairsearch_inner *inner = &s->inner[index];
    for (unsigned as = 0; as < 2; as++) {
        node->best_bytes_per_s[as] = inner->ends[as].best;
    }
    node->ways = ways_named(inner, LEVEL_REACH);
    if (node->ways != 0) {
        node->state = PAIRSEARCH_NODE_UNREACHABLE;
        gather_evidence(s, node, index, LEVEL_REACH);
        return;
    }
    node->ways = ways_named(inner, LEVEL_RATE);
    if (node->ways != 0) {
        gather_evidence(s, node, index, LEVEL_RATE);
        node->ratio = worst_ratio(s, node);
        node->state = is_doubtful(s) && !node->is_tested_alone
                          ? PAIRSEARCH_NODE_UNKNOWN
                          : PAIRSEARCH_NODE_SLOW;
        return;
    }
    node->ways = ways_not_good(inner);
    node->ratio = worst_ratio(s, node);
    node->state =
        node->ways == 0 ? PAIRSEARCH_NODE_OK : PAIRSEARCH_NODE_UNKNOWN;
}

static void judge_nodes(struct pairsearch *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct pairsearch_node before = s->nodes[i];
        struct pairsearch_node *node = &s->nodes[i];
        memset(node, 0, sizeof(*node));
        judge_node(s, node, i);
        node->named_in = before.named_in > 0 && before.state == node->state &&
                                 before.ways == node->ways
                             ? before.named_in
                             : s->number;
    }
}

/* ---- paths ---- */

/* What is bad in one direction and not the fault of a named node. */
static uint8_t kind_of(const struct pairsearch *s,
                       const struct pairsearch_record *r, unsigned d)
{
    const struct pairsearch_cell *cell = pairsearch_cell_of(r, d);
    for (unsigned level = 0; level < LEVELS; level++) {
        const struct pairsearch_end *from = pairsearch_end_of(s, r, d, 0);
        const struct pairsearch_end *to = pairsearch_end_of(s, r, d, 1);
        if (pairsearch_mark(s, cell, level) != MARK_BAD ||
            pairsearch_is_named(from, level) ||
            pairsearch_is_named(to, level)) {
            continue;
        }
        if (!from->levels[level].is_good || !to->levels[level].is_good) {
            return PAIRSEARCH_PATH_UNRESOLVED;
        }
        if (level == LEVEL_REACH) {
            return cell->status == PAIRSEARCH_REFUSED ? PAIRSEARCH_PATH_BLOCKED
                                                      : PAIRSEARCH_PATH_STALLED;
        }
        if (r->alone_round == 0 && !r->is_single &&
            (is_doubtful(s) || pairsearch_has_shared(s, r->nodes[0]) ||
             pairsearch_has_shared(s, r->nodes[1]))) {
            return PAIRSEARCH_PATH_CONGESTED;
        }
        return cell->loss >= s->config.loss_limit ? PAIRSEARCH_PATH_LOSSY
                                                  : PAIRSEARCH_PATH_SLOW;
    }
    return 0;
}

static void find_kinds(const struct pairsearch *s, struct pairsearch_record *r)
{
    bool is_shared = pairsearch_is_shared(s, r);
    for (unsigned d = 0; d < 2; d++) {
        uint8_t kind = kind_of(s, r, d);
        if (kind == 0 && is_shared &&
            pairsearch_mark(s, &r->together[d], LEVEL_RATE) == MARK_BAD) {
            kind = PAIRSEARCH_PATH_CONGESTED;
        }
        if (kind != r->kinds[d]) {
            r->kinds[d] = kind;
            r->since[d] = (uint16_t)s->number;
        }
    }
}

/* The figure to show: of a shared path the one among others. */
static const struct pairsearch_cell *
shown_cell(const struct pairsearch_record *r, unsigned d,
           enum pairsearch_path_kind kind)
{
    return kind == PAIRSEARCH_PATH_CONGESTED ? &r->together[d]
                                             : pairsearch_cell_of(r, d);
}

static void add_path(struct pairsearch *s, const struct pairsearch_record *r,
                     uint8_t kind, uint8_t ways)
{
    if (s->path_count == PAIRSEARCH_PATHS_MAX) {
        s->paths_left_out++;
        return;
    }
    struct pairsearch_path *path = &s->paths[s->path_count++];
    memset(path, 0, sizeof(*path));
    path->a = r->nodes[0];
    path->b = r->nodes[1];
    path->kind = kind;
    path->ways = ways;
    path->is_tested_alone = r->alone_round > 0 || r->is_single;
    path->measure.a_to_b = figure_of(shown_cell(r, 0, path->kind));
    path->measure.b_to_a = figure_of(shown_cell(r, 1, path->kind));
    for (unsigned d = 0; d < 2; d++) {
        double ratio = ratio_of(s, shown_cell(r, d, path->kind)->rate);
        if ((ways & 1u << d) == 0) {
            continue;
        }
        if (ratio > 0 && (path->ratio <= 0 || ratio < path->ratio)) {
            path->ratio = ratio;
        }
        if (r->since[d] > path->named_in) {
            path->named_in = r->since[d];
        }
    }
}

/* Both directions in one if they are bad in the same manner. */
static void list_paths(struct pairsearch *s)
{
    s->path_count = 0;
    s->paths_left_out = 0;
    for (uint32_t i = 0; i < s->record_count; i++) {
        struct pairsearch_record *r = &s->records[i];
        find_kinds(s, r);
        if (r->kinds[0] != 0 && r->kinds[0] == r->kinds[1]) {
            add_path(s, r, r->kinds[0], PAIRSEARCH_BOTH_WAYS);
            continue;
        }
        for (unsigned d = 0; d < 2; d++) {
            if (r->kinds[d] != 0) {
                add_path(s, r, r->kinds[d], (uint8_t)(1u << d));
            }
        }
    }
}

void pairsearch_conclude(struct pairsearch *s)
{
    judge_nodes(s);
    list_paths(s);
}

/* ---- the result ---- */

static bool is_fault(const struct pairsearch_path *path)
{
    return path->kind != PAIRSEARCH_PATH_UNRESOLVED &&
           path->kind != PAIRSEARCH_PATH_CONGESTED;
}

static bool is_bad(const struct pairsearch_node *node)
{
    return node->state == PAIRSEARCH_NODE_SLOW ||
           node->state == PAIRSEARCH_NODE_UNREACHABLE;
}

/* The last round that named something; 0: nothing is named. */
static uint32_t last_named(const struct pairsearch *s)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->node_count; i++) {
        if (is_bad(&s->nodes[i]) && s->nodes[i].named_in > last) {
            last = s->nodes[i].named_in;
        }
    }
    for (uint32_t i = 0; i < s->path_count; i++) {
        if (is_fault(&s->paths[i]) && s->paths[i].named_in > last) {
            last = s->paths[i].named_in;
        }
    }
    return last;
}

bool pairsearch_has_found(const struct pairsearch *s)
{
    return last_named(s) > 0 || s->slow_group_count > 0;
}

static bool has_kind(const struct pairsearch *s, enum pairsearch_path_kind kind)
{
    for (uint32_t i = 0; i < s->path_count; i++) {
        if (s->paths[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static enum pairsearch_outcome find_outcome(const struct pairsearch *s,
                                            const struct pairsearch_result *out)
{
    bool is_unresolved = has_kind(s, PAIRSEARCH_PATH_UNRESOLVED);
    if (pairsearch_has_found(s)) {
        return PAIRSEARCH_FOUND;
    }
    if (is_unresolved && s->node_count == 2) {
        return PAIRSEARCH_NEEDS_THIRD;
    }
    if (is_unresolved && out->unknown_nodes == s->node_count) {
        return PAIRSEARCH_ALL_BAD;
    }
    if (is_unresolved || out->unknown_nodes > 0 || s->number == 0) {
        return PAIRSEARCH_INCOMPLETE;
    }
    return has_kind(s, PAIRSEARCH_PATH_CONGESTED) ? PAIRSEARCH_SHARED
                                                  : PAIRSEARCH_HEALTHY;
}

void pairsearch_result(struct pairsearch *s, struct pairsearch_result *out)
{
    memset(out, 0, sizeof(*out));
    pairsearch_judge_usual(s);
    pairsearch_conclude(s);
    out->reference = s->reference;
    out->rounds = s->number;
    out->named_in = last_named(s);
    if (s->slow_group_count > 0) {
        out->named_in = s->number;
    }
    out->nodes = s->nodes;
    out->node_count = s->node_count;
    out->paths = s->paths;
    out->path_count = s->path_count;
    out->paths_left_out = s->paths_left_out;
    out->groups = s->slow_groups;
    out->group_count = s->slow_group_count;
    out->faster_nodes = s->faster_nodes;
    for (uint32_t i = 0; i < s->node_count; i++) {
        enum pairsearch_state state = s->nodes[i].state;
        out->slow_nodes += state == PAIRSEARCH_NODE_SLOW;
        out->unreachable_nodes += state == PAIRSEARCH_NODE_UNREACHABLE;
        out->unknown_nodes += state == PAIRSEARCH_NODE_UNKNOWN;
    }
    out->outcome = find_outcome(s, out);
}
