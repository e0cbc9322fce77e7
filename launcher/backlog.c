/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/backlog.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 << 10 };

struct backlog_block {
    struct backlog_block *next;
    size_t size;
    size_t used;
    size_t read;
    uint8_t data[]; /* items, each with its bytes behind it */
};

static struct backlog_block *add_block(struct backlog *b, size_t need)
{
    size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    struct backlog_block *block = malloc(sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    *block = (struct backlog_block){.size = size};
    if (b->first == NULL) {
        b->first = block;
    } else {
        b->last->next = block;
    }
    b->last = block;
    return block;
}

bool backlog_push(struct backlog *b, const struct backlog_item *item)
{
    size_t need = sizeof(*item) + item->n;
    struct backlog_block *block = b->first != NULL ? b->last : NULL;
    if (block == NULL || block->size - block->used < need) {
        block = add_block(b, need);
    }
    if (block == NULL) {
        return false;
    }
    memcpy(block->data + block->used, item, sizeof(*item));
    if (item->n > 0) {
        memcpy(block->data + block->used + sizeof(*item), item->bytes, item->n);
    }
    block->used += need;
    b->bytes += item->n;
    return true;
}

bool backlog_is_empty(const struct backlog *b)
{
    return b->first == NULL ||
           (b->first->read == b->first->used && b->first->next == NULL);
}

bool backlog_pop(struct backlog *b, struct backlog_item *item)
{
    while (b->first != NULL && b->first->read == b->first->used) {
        struct backlog_block *next = b->first->next;
        free(b->first);
        b->first = next;
    }
    struct backlog_block *block = b->first;
    if (block == NULL) {
        return false;
    }
    memcpy(item, block->data + block->read, sizeof(*item));
    item->bytes = block->data + block->read + sizeof(*item);
    block->read += sizeof(*item) + item->n;
    b->bytes -= item->n;
    return true;
}

void backlog_release(struct backlog *b)
{
    while (b->first != NULL) {
        struct backlog_block *next = b->first->next;
        free(b->first);
        b->first = next;
    }
    b->bytes = 0;
}
