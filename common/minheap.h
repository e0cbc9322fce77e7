/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadlines: (time, id) pairs, earliest first, each id at most once and
 * movable in O(log n). Pure.
 */
#ifndef GPUL_COMMON_MINHEAP_H
#define GPUL_COMMON_MINHEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpul_minheap {
    struct gpul_minheap_item *items;
    uint32_t *places; /* id -> index in items + 1; 0: not in the heap */
    size_t count;
    size_t id_count; /* ids are 0 .. id_count-1 */
};

struct gpul_minheap_item {
    uint64_t key;
    uint32_t id;
};

/* Room for ids 0..id_count-1. Returns 0 or GPUL_ENOMEM. */
int gpul_minheap_init(struct gpul_minheap *h, size_t id_count);
void gpul_minheap_release(struct gpul_minheap *h);

/* Insert the id or move it to a new key. */
void gpul_minheap_set(struct gpul_minheap *h, uint32_t id, uint64_t key);

/* Nothing happens if it is not there. */
void gpul_minheap_remove(struct gpul_minheap *h, uint32_t id);

/* Earliest item; false if the heap is empty. Ties: lowest id first. */
bool gpul_minheap_peek(const struct gpul_minheap *h, uint64_t *key,
                       uint32_t *id);

#endif
