/* SPDX-License-Identifier: Apache-2.0
 *
 * Pair trials of doubles of agents: where their probes listen, and what comes
 * of each trial.
 */
#ifndef TESTS_LIB_FAKEPAIRS_H
#define TESTS_LIB_FAKEPAIRS_H

#include "tests/lib/cluster.h"

/* The probe of a node says where it listens. */
void fake_pairs_listen(struct cluster *c, uint32_t index);

/* An order has come: it is carried out after trial_ms. */
void fake_pairs_order(struct cluster *c, uint32_t index,
                      const Gpul__TrialStart *start);

/* It was: the result goes. */
void fake_pairs_tell(struct cluster *c, uint32_t index);

/* The probe has ended. */
void fake_pairs_end(struct cluster *c, uint32_t index);

#endif
