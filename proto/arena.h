/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one decoded message: taken from a budget, given back as a
 * whole. protobuf-c turns two hostile bytes into dozens, so a decode must
 * not be able to take more than the receiver decided beforehand. Pure.
 */
#ifndef GPUL_PROTO_ARENA_H
#define GPUL_PROTO_ARENA_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct gpul_arena {
    struct gpul_arena_chunk *chunks; /* newest first */
    size_t chunk_bytes;              /* wanted size of the next chunk */
    size_t budget_left;              /* bytes that may still be allocated */
    int status; /* 0, or why the last alloc failed: GPUL_ELIMIT, GPUL_ENOMEM */
};

/* Nothing is allocated yet; `first_bytes` is a guess of what will be asked
 * for. All chunks together, headers included, stay within `budget_bytes`. */
void gpul_arena_init(struct gpul_arena *a, size_t budget_bytes,
                     size_t first_bytes);

/* Give everything back. */
void gpul_arena_release(struct gpul_arena *a);

/* `n` bytes, aligned for any object of that size; NULL when the budget
 * (GPUL_ELIMIT) or the memory (GPUL_ENOMEM) is used up. */
void *gpul_arena_alloc(struct gpul_arena *a, size_t n);

/* The arena as protobuf-c wants it: freeing one object does nothing. The
 * result is valid as long as `a` is. */
ProtobufCAllocator gpul_arena_allocator(struct gpul_arena *a);

#endif
