/* SPDX-License-Identifier: Apache-2.0
 *
 * A small seeded generator for jitter, spreading and simulations: the same
 * seed gives the same numbers on every machine. Not for secrets. Pure.
 *
 * Source: xoshiro256** seeded by splitmix64, D. Blackman and S. Vigna,
 * "Scrambled linear pseudorandom number generators", 2021.
 */
#ifndef GPUL_COMMON_RNG_H
#define GPUL_COMMON_RNG_H

#include <stdint.h>

struct gpul_rng {
    uint64_t state[4]; /* never all zero */
};

/* Any seed will do, 0 included. */
void gpul_rng_init(struct gpul_rng *r, uint64_t seed);

/* 64 uniform bits. */
uint64_t gpul_rng_next(struct gpul_rng *r);

/* Uniform in 0 .. bound-1, without bias; bound > 0. */
uint64_t gpul_rng_below(struct gpul_rng *r, uint64_t bound);

#endif
