/* SPDX-License-Identifier: Apache-2.0
 *
 * The phase PAIRING of mode CHECK: pairs of nodes are measured. A part of
 * coordinator/core.h, which includes it; docs/check.md, "Pair trials".
 */
#ifndef COORDINATOR_PAIRPHASE_H
#define COORDINATOR_PAIRPHASE_H

#include "coordinator/pairtest.h"
#include "coordinator/rendezvous.h"
#include "coordinator/roster.h"

/* Every address stands: measure pairs of nodes, if there are any. */
void pairphase_begin(struct rendezvous *r, const char *why);
void pairphase_listening(struct rendezvous *r, struct node *node,
                         const Gpul__PairListening *listening);
void pairphase_result(struct rendezvous *r, struct node *node,
                      const Gpul__TrialResult *result);
void pairphase_ended(struct rendezvous *r, struct node *node,
                     const Gpul__PairEnd *end);

/* Of the present wait; and what those have done who are not missing. */
uint32_t pairphase_bound_ms(const struct rendezvous *r);
const char *pairphase_doing(const struct rendezvous *r);

/* ---- what the user hears of it: pairreport.c ---- */

/* The trials of a round that is over. */
void pairreport_round(struct rendezvous *r);

/* What they say of each node and path; findings. */
void pairreport_verdicts(struct rendezvous *r);

/* There were none; `is_wanting`: though there should have been. */
void pairreport_skipped(struct rendezvous *r, const char *why, bool is_wanting);

#endif
