/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/arena.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/error.h"

enum {
    CHUNK_BYTES_MIN = 512,
    ALIGNMENT_MAX = 16,
    LARGE_PART = 8, /* over 1/8 of the next chunk an object is large */
};

struct gpul_arena_chunk {
    struct gpul_arena_chunk *next;
    size_t used;
    size_t capacity;
    _Alignas(ALIGNMENT_MAX) uint8_t data[];
};

void gpul_arena_init(struct gpul_arena *a, size_t budget_bytes,
                     size_t first_bytes)
{
    *a = (struct gpul_arena){
        .budget_left = budget_bytes,
        .chunk_bytes =
            first_bytes < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : first_bytes,
    };
}

void gpul_arena_release(struct gpul_arena *a)
{
    while (a->chunks != NULL) {
        struct gpul_arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
}

/* A chunk of `capacity` bytes that is paid from the budget; NULL if it does
 * not cover it. */
static struct gpul_arena_chunk *create_chunk(struct gpul_arena *a,
                                             size_t capacity)
{
    const size_t header = sizeof(struct gpul_arena_chunk);
    if (a->budget_left < header || capacity > a->budget_left - header) {
        a->status = GPUL_ELIMIT;
        return NULL;
    }
    struct gpul_arena_chunk *chunk = malloc(header + capacity);
    if (chunk == NULL) {
        a->status = GPUL_ENOMEM;
        return NULL;
    }
    *chunk = (struct gpul_arena_chunk){.capacity = capacity};
    a->budget_left -= header + capacity;
    a->chunk_bytes += capacity;
    return chunk;
}

/* A large object has a chunk of its own, behind the one in use, so that the
 * rest of that one is not lost. */
static void *alloc_large(struct gpul_arena *a, size_t n)
{
    struct gpul_arena_chunk *chunk = create_chunk(a, n);
    if (chunk == NULL) {
        return NULL;
    }
    struct gpul_arena_chunk **behind =
        a->chunks == NULL ? &a->chunks : &a->chunks->next;
    chunk->next = *behind;
    *behind = chunk;
    chunk->used = n;
    return chunk->data;
}

/* A new chunk to go on with: as large as wanted, as small as the budget makes
 * it. */
static struct gpul_arena_chunk *next_chunk(struct gpul_arena *a, size_t n)
{
    const size_t header = sizeof(struct gpul_arena_chunk);
    size_t capacity = a->chunk_bytes;
    if (a->budget_left < header + capacity) {
        capacity = a->budget_left < header ? n : a->budget_left - header;
    }
    struct gpul_arena_chunk *chunk =
        create_chunk(a, capacity > n ? capacity : n);
    if (chunk != NULL) {
        chunk->next = a->chunks;
        a->chunks = chunk;
    }
    return chunk;
}

/* The size of an object is a multiple of its alignment, so the lowest set
 * bit of n is alignment enough; strings of odd length are packed tightly. */
static size_t aligned(size_t used, size_t n)
{
    size_t alignment = n & (~n + 1);
    if (alignment == 0 || alignment > ALIGNMENT_MAX) {
        alignment = ALIGNMENT_MAX;
    }
    return (used + alignment - 1) & ~(alignment - 1);
}

void *gpul_arena_alloc(struct gpul_arena *a, size_t n)
{
    struct gpul_arena_chunk *chunk = a->chunks;
    size_t start = chunk == NULL ? 0 : aligned(chunk->used, n);
    if (chunk == NULL || start > chunk->capacity ||
        n > chunk->capacity - start) {
        if (n > a->chunk_bytes / LARGE_PART) {
            return alloc_large(a, n);
        }
        chunk = next_chunk(a, n);
        start = 0;
    }
    if (chunk == NULL) {
        return NULL;
    }
    chunk->used = start + n;
    return chunk->data + start;
}

static void *allocator_alloc(void *arena, size_t n)
{
    return gpul_arena_alloc(arena, n);
}

static void allocator_free(void *arena, void *object)
{
    (void)arena;
    (void)object;
}

ProtobufCAllocator gpul_arena_allocator(struct gpul_arena *a)
{
    return (ProtobufCAllocator){
        .alloc = allocator_alloc,
        .free = allocator_free,
        .allocator_data = a,
    };
}
