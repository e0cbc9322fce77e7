/* SPDX-License-Identifier: Apache-2.0 */
#include "common/minheap.h"

#include <assert.h>
#include <stdlib.h>

#include "common/error.h"

int gpul_minheap_init(struct gpul_minheap *h, size_t id_count)
{
    assert(id_count < UINT32_MAX);
    *h = (struct gpul_minheap){.id_count = id_count};
    size_t n = id_count > 0 ? id_count : 1;
    h->items = calloc(n, sizeof(*h->items));
    h->places = calloc(n, sizeof(*h->places));
    if (h->items == NULL || h->places == NULL) {
        gpul_minheap_release(h);
        return GPUL_ENOMEM;
    }
    return 0;
}

void gpul_minheap_release(struct gpul_minheap *h)
{
    free(h->items);
    free(h->places);
    *h = (struct gpul_minheap){0};
}

static bool is_before(const struct gpul_minheap_item *a,
                      const struct gpul_minheap_item *b)
{
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

static void put(struct gpul_minheap *h, size_t at,
                struct gpul_minheap_item item)
{
    h->items[at] = item;
    h->places[item.id] = (uint32_t)at + 1;
}

/* Move an item that may be too early or too late for `at` to its place. */
static void settle(struct gpul_minheap *h, size_t at,
                   struct gpul_minheap_item item)
{
    while (at > 0 && is_before(&item, &h->items[(at - 1) / 2])) {
        put(h, at, h->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->count) {
            break;
        }
        if (child + 1 < h->count &&
            is_before(&h->items[child + 1], &h->items[child])) {
            child++;
        }
        if (!is_before(&h->items[child], &item)) {
            break;
        }
        put(h, at, h->items[child]);
        at = child;
    }
    put(h, at, item);
}

void gpul_minheap_set(struct gpul_minheap *h, uint32_t id, uint64_t key)
{
    assert(id < h->id_count);
    size_t at = h->places[id] != 0 ? h->places[id] - 1 : h->count++;
    settle(h, at, (struct gpul_minheap_item){.key = key, .id = id});
}

void gpul_minheap_remove(struct gpul_minheap *h, uint32_t id)
{
    assert(id < h->id_count);
    if (h->places[id] == 0) {
        return;
    }
    size_t at = h->places[id] - 1;
    h->places[id] = 0;
    h->count--;
    if (at < h->count) {
        settle(h, at, h->items[h->count]);
    }
}

bool gpul_minheap_peek(const struct gpul_minheap *h, uint64_t *key,
                       uint32_t *id)
{
    if (h->count == 0) {
        return false;
    }
    *key = h->items[0].key;
    *id = h->items[0].id;
    return true;
}
