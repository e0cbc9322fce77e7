/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ledger.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 64 };

static bool make_room(struct ledger *l)
{
    if (l->count < l->capacity) {
        return true;
    }
    if (l->first > l->capacity / 2) {
        l->count -= l->first;
        memmove(l->items, l->items + l->first, l->count * sizeof(*l->items));
        l->first = 0;
        return true;
    }
    size_t capacity = l->capacity == 0 ? CAPACITY_MIN : l->capacity * 2;
    struct ledger_entry *grown =
        realloc(l->items, capacity * sizeof(*l->items));
    if (grown == NULL) {
        return false;
    }
    l->items = grown;
    l->capacity = capacity;
    return true;
}

bool ledger_add(struct ledger *l, const struct ledger_entry *entry)
{
    if (!make_room(l)) {
        return false;
    }
    l->items[l->count++] = *entry;
    return true;
}

bool ledger_take(struct ledger *l, uint64_t written, struct ledger_entry *entry)
{
    if (l->first == l->count || l->items[l->first].position > written) {
        return false;
    }
    *entry = l->items[l->first++];
    if (l->first == l->count) {
        l->first = l->count = 0;
    }
    return true;
}

void ledger_release(struct ledger *l)
{
    free(l->items);
    *l = (struct ledger){0};
}
