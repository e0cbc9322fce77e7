/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for what one step hands out: allocated piece by piece, never moved,
 * given back as a whole. Pure.
 */
#ifndef COORDINATOR_ARENA_H
#define COORDINATOR_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);

/* Forget all pieces. One block of ordinary size is kept for the next step,
 * so a quiet job allocates nothing. */
void arena_clear(struct arena *a);

/* `n` bytes, aligned for any type, valid until clear; NULL without memory. */
void *arena_alloc(struct arena *a, size_t n);

#endif
