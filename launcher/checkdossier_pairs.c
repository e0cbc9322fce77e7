/* SPDX-License-Identifier: Apache-2.0
 *
 * Pair trials and their verdicts, as docs/record.md has them.
 */
#include <math.h>

#include "launcher/checkdossier.h"

#define GIGA 1e9

static double known(double value)
{
    return value > 0 ? value : NAN;
}

static void add_pair(struct dossier *d, const Gpul__PairRow *row)
{
    struct dossier_pair *out = dossier_add(d, DOSSIER_PAIR);
    if (out == NULL) {
        return;
    }
    out->round = row->round;
    out->rail = dossier_text(d, row->rail);
    out->a = dossier_text(d, row->a);
    out->b = dossier_text(d, row->b);
    out->a_to_b = known(row->a_to_b_gbps * GIGA);
    out->b_to_a = known(row->b_to_a_gbps * GIGA);
    out->round_trip_s = known((double)row->rtt_ns / GIGA);
    out->retransmit_ratio =
        row->segments > 0 ? (double)row->retransmits / (double)row->segments
                          : NAN;
    out->error = dossier_text(d, row->error);
}

static void add_verdict(struct dossier *d, const Gpul__PairVerdict *v)
{
    static const char *const states[] = {
        [GPUL__PAIR_VERDICT__STATE__UNKNOWN] = "unknown",
        [GPUL__PAIR_VERDICT__STATE__OK] = "ok",
        [GPUL__PAIR_VERDICT__STATE__SLOW] = "slow",
        [GPUL__PAIR_VERDICT__STATE__LOSSY] = "lossy",
        [GPUL__PAIR_VERDICT__STATE__BLOCKED] = "blocked",
        [GPUL__PAIR_VERDICT__STATE__UNREACHABLE] = "unreachable",
        [GPUL__PAIR_VERDICT__STATE__CONGESTED] = "congested",
    };
    struct dossier_verdict *out = dossier_add(d, DOSSIER_VERDICT);
    if (out == NULL) {
        return;
    }
    out->what = v->what == GPUL__PAIR_VERDICT__WHAT__NODE ? "node" : "path";
    dossier_append(d, &out->nodes, v->a);
    if (v->b[0] != 0) {
        dossier_append(d, &out->nodes, v->b);
    }
    out->state = states[v->state];
    out->direction = dossier_text(d, v->direction);
    out->rail = dossier_text(d, v->rail);
    out->rounds = v->rounds;
    out->text = dossier_text(d, v->text);
}

void checkdossier_pairs(struct dossier *d, const struct checkbook *book)
{
    for (size_t i = 0; i < book->trial_count; i++) {
        const Gpul__Event *event = book->trials[i];
        for (size_t k = 0; k < event->n_pairs; k++) {
            add_pair(d, event->pairs[k]);
        }
        for (size_t k = 0; k < event->n_verdicts; k++) {
            add_verdict(d, event->verdicts[k]);
        }
    }
}
