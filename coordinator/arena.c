/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 64 << 10 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *a)
{
    a->blocks = NULL;
}

void arena_release(struct arena *a)
{
    while (a->blocks != NULL) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

void arena_clear(struct arena *a)
{
    struct arena_block *kept = NULL;
    while (a->blocks != NULL) {
        struct arena_block *next = a->blocks->next;
        if (kept == NULL && a->blocks->capacity == BLOCK_BYTES) {
            kept = a->blocks;
            kept->used = 0;
            kept->next = NULL;
        } else {
            free(a->blocks);
        }
        a->blocks = next;
    }
    a->blocks = kept;
}

static int add_block(struct arena *a, size_t n)
{
    size_t capacity = n > BLOCK_BYTES ? n : BLOCK_BYTES;
    struct arena_block *block = malloc(sizeof(*block) + capacity);
    if (block == NULL) {
        return -1;
    }
    block->next = a->blocks;
    block->used = 0;
    block->capacity = capacity;
    a->blocks = block;
    return 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
    const size_t unit = alignof(max_align_t);
    if (n > SIZE_MAX / 2) {
        return NULL;
    }
    size_t rounded = (n + unit - 1) / unit * unit;
    if (a->blocks == NULL || rounded > a->blocks->capacity - a->blocks->used) {
        if (add_block(a, rounded) != 0) {
            return NULL;
        }
    }
    void *piece = a->blocks->data + a->blocks->used;
    a->blocks->used += rounded;
    return piece;
}
