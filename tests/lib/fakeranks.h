/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a double, and the keeper that owns them: they live on when an
 * agent dies, and die with the keeper.
 */
#ifndef TESTS_LIB_FAKERANKS_H
#define TESTS_LIB_FAKERANKS_H

#include "tests/lib/cluster.h"

/* One exit report of the node's generation. */
void fake_send_exit(struct cluster *c, struct fake_node *node, uint32_t rank,
                    const struct rank_plan *fate);

/* Launch: start all ranks, or take over those that the keeper has. */
void fake_ranks_launch(struct cluster *c, uint32_t node);

/* The ranks that are left end by the signal of the Stop. */
void fake_ranks_stop(struct cluster *c, uint32_t node);

void fake_rank_end(struct cluster *c, uint32_t node, uint32_t rank,
                   uint32_t generation);

/* The agent tells that this rank makes no step, or that it goes on. */
void fake_rank_stall(struct cluster *c, uint32_t node, uint32_t rank,
                     uint32_t generation, bool is_over);

/* The agent dies; its keeper starts another. */
void fake_crash(struct cluster *c, uint32_t node);

/* The keeper dies, its ranks with it; the agent leaves. */
void fake_keeper_die(struct cluster *c, uint32_t node);

#endif
