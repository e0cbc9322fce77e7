/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rng.h"

#include <assert.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void gpul_rng_init(struct gpul_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->state[i] = splitmix64(&seed);
    }
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t gpul_rng_next(struct gpul_rng *r)
{
    uint64_t *s = r->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t gpul_rng_below(struct gpul_rng *r, uint64_t bound)
{
    assert(bound > 0);
    /* The values below 2^64 mod bound would come up once too often. */
    uint64_t surplus = (0 - bound) % bound;
    uint64_t x;
    do {
        x = gpul_rng_next(r);
    } while (x < surplus);
    return x % bound;
}
