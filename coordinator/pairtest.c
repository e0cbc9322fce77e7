/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pairtest.h"

#include <assert.h>
#include <stdlib.h>

int pairtest_init(struct pairtest *t, uint32_t node_count,
                  struct gpul_error *err)
{
    const struct pairsearch_config config = {.node_count = node_count};
    *t = (struct pairtest){.node_count = node_count};
    int rc = pairsearch_create(&t->search, &config, err);
    if (rc != 0) {
        return rc;
    }
    t->nodes = calloc(node_count, sizeof(*t->nodes));
    if (t->nodes == NULL) {
        pairtest_release(t);
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for pair trials");
    }
    t->step = PAIRTEST_OPENING;
    return 0;
}

void pairtest_release(struct pairtest *t)
{
    for (uint32_t i = 0; t->nodes != NULL && i < t->node_count; i++) {
        trial_side_clear(&t->nodes[i].side);
    }
    free(t->nodes);
    pairsearch_destroy(t->search);
    *t = (struct pairtest){0};
}

static void begin_pair(struct pairtest *t, uint32_t node, uint32_t partner)
{
    t->nodes[node].partner = partner;
    t->nodes[node].has_told = false;
    t->left++;
}

bool pairtest_next(struct pairtest *t)
{
    if (!pairsearch_next(t->search, &t->round)) {
        return false;
    }
    t->step = PAIRTEST_ROUND;
    t->trial++;
    t->left = 0;
    for (uint32_t i = 0; i < t->node_count; i++) {
        t->nodes[i].partner = PAIRTEST_RESTS;
        t->nodes[i].has_told = true;
        trial_side_clear(&t->nodes[i].side);
    }
    for (uint32_t i = 0; i < t->round.count; i++) {
        const struct pairing_pair *pair = &t->round.pairs[i];
        begin_pair(t, pair->a, pair->b);
        begin_pair(t, pair->b, pair->a);
        t->nodes[pair->a].dials_first = true;
        t->nodes[pair->b].dials_first = false;
    }
    return true;
}

int pairtest_tell(struct pairtest *t, uint32_t node_rank,
                  const Gpul__TrialResult *result)
{
    struct pairtest_node *node = &t->nodes[node_rank];
    if (t->step != PAIRTEST_ROUND || node->has_told ||
        result->trial != t->trial) {
        return 0;
    }
    int rc = trial_side_set(&node->side, result);
    if (rc != 0) {
        return rc;
    }
    node->has_told = true;
    t->left--;
    return t->left == 0;
}

static double rate_of(const struct pairtest *t, uint32_t receiver)
{
    return trial_rate(&t->nodes[receiver].side.receiving);
}

/* What is usual, by the first round in which anything could be measured. */
static int find_reference(struct pairtest *t)
{
    uint32_t n = 0;
    double *rates = calloc((size_t)t->round.count * 2 + 1, sizeof(*rates));
    if (rates == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < t->round.count; i++) {
        double a = rate_of(t, t->round.pairs[i].a);
        double b = rate_of(t, t->round.pairs[i].b);
        if (a > 0) {
            rates[n++] = a;
        }
        if (b > 0) {
            rates[n++] = b;
        }
    }
    t->reference = trial_median(rates, n);
    free(rates);
    return 0;
}

int pairtest_finish(struct pairtest *t, struct gpul_error *err)
{
    assert(t->step == PAIRTEST_ROUND && t->left == 0);
    if (t->reference <= 0 && find_reference(t) != 0) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for pair trials");
    }
    for (uint32_t i = 0; i < t->round.count; i++) {
        const struct trial_side *a = &t->nodes[t->round.pairs[i].a].side;
        const struct trial_side *b = &t->nodes[t->round.pairs[i].b].side;
        struct pairsearch_measure measure;
        trial_figure(&measure.a_to_b, &a->sending, &b->receiving, t->reference);
        trial_figure(&measure.b_to_a, &b->sending, &a->receiving, t->reference);
        pairsearch_report(t->search, i, &measure);
    }
    return 0;
}
