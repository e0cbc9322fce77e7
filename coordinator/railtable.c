/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/railtable.h"

#include <stdlib.h>
#include <string.h>

#include "common/stats.h"

/* A whole rail under this part of the others is slow. */
#define RAIL_PART 0.8

static bool is_bad(const struct pairsearch_node *node)
{
    return node->state == PAIRSEARCH_NODE_SLOW ||
           node->state == PAIRSEARCH_NODE_UNREACHABLE;
}

static void judge_node(struct railtable *t,
                       const struct pairsearch_result *results, uint32_t index)
{
    struct railtable_node *node = &t->nodes[index];
    uint32_t bad = 0;
    for (uint32_t rail = 0; rail < t->rail_count; rail++) {
        const struct pairsearch_node *cell = &results[rail].nodes[index];
        if (is_bad(cell)) {
            node->bad |= UINT64_C(1) << rail;
            bad++;
        } else if (cell->state == PAIRSEARCH_NODE_UNKNOWN) {
            node->unknown |= UINT64_C(1) << rail;
        }
    }
    if (bad == t->rail_count) {
        node->cause = RAILTABLE_NODE;
    } else if (bad > 0) {
        node->cause = RAILTABLE_CARD;
    } else {
        node->cause = node->unknown != 0 ? RAILTABLE_UNKNOWN : RAILTABLE_OK;
    }
}

/* Against the upper median of the rails: of two that differ the faster is the
 * healthy one. */
static void judge_rails(struct railtable *t,
                        const struct pairsearch_result *results)
{
    double medians[RAILTABLE_RAILS_MAX];
    double middle;
    uint32_t known = 0;
    for (uint32_t rail = 0; rail < t->rail_count; rail++) {
        t->rails[rail].median = results[rail].reference.median;
        if (t->rails[rail].median > 0) {
            medians[known++] = t->rails[rail].median;
        }
    }
    gpul_median(&middle, medians, known); /* sorts them */
    for (uint32_t rail = 0; rail < t->rail_count; rail++) {
        struct railtable_rail *r = &t->rails[rail];
        if (r->median > 0) {
            r->ratio = r->median / medians[known / 2];
            r->is_slow = r->ratio < RAIL_PART;
        }
    }
}

int railtable_judge(struct railtable *t,
                    const struct pairsearch_result *results,
                    uint32_t rail_count, uint32_t node_count,
                    struct gpul_error *err)
{
    memset(t, 0, sizeof(*t));
    if (rail_count == 0 || node_count == 0) {
        return gpul_fail(err, GPUL_EINVAL, "%u rails of %u nodes", rail_count,
                         node_count);
    }
    if (rail_count > RAILTABLE_RAILS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT, "%u rails: %d at most", rail_count,
                         RAILTABLE_RAILS_MAX);
    }
    for (uint32_t rail = 0; rail < rail_count; rail++) {
        if (results[rail].node_count != node_count) {
            return gpul_fail(err, GPUL_EINVAL,
                             "rail %u was searched with %u nodes instead of %u",
                             rail, results[rail].node_count, node_count);
        }
    }
    t->nodes = calloc(node_count, sizeof(*t->nodes));
    if (t->nodes == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "%u nodes", node_count);
    }
    t->node_count = node_count;
    t->rail_count = rail_count;
    for (uint32_t i = 0; i < node_count; i++) {
        judge_node(t, results, i);
    }
    judge_rails(t, results);
    return 0;
}

void railtable_release(struct railtable *t)
{
    free(t->nodes);
    memset(t, 0, sizeof(*t));
}
