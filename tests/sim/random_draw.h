/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws of test_random that are about one subject each.
 */
#ifndef TESTS_SIM_RANDOM_DRAW_H
#define TESTS_SIM_RANDOM_DRAW_H

#include "common/rng.h"
#include "tests/lib/cluster.h"

static inline uint64_t random_below(struct cluster *c, uint64_t bound)
{
    return gpul_rng_below(&c->rng, bound);
}

/* True in `percent` of a hundred draws. */
static inline bool random_chance(struct cluster *c, unsigned percent)
{
    return random_below(c, 100) < percent;
}

/* The nodes have GPUs; something is wrong with them. */
void random_draw_gpus(struct cluster *c);
void random_draw_gpu_faults(struct cluster *c);

/* Ranks that make no step for a while, where the job watches for it. */
void random_draw_stalls(struct cluster *c, struct rank_plan *ranks,
                        size_t count);

#endif
