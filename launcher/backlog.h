/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for a slow reader, as it came and in its order. Pure.
 *
 * Not bounded here: the nodes' output windows bound it. Items are packed into
 * blocks, since a rank that writes a byte at a time makes very many of them.
 */
#ifndef LAUNCHER_BACKLOG_H
#define LAUNCHER_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum backlog_kind {
    BACKLOG_OUTPUT = 1, /* a rank's bytes */
    BACKLOG_FINISH = 2, /* its lines end here */
    BACKLOG_TEXT = 3,   /* our own words */
    BACKLOG_DATA = 4,   /* asked for */
};

struct backlog_item {
    const uint8_t *bytes;
    uint32_t n;
    uint32_t rank; /* these three: of BACKLOG_OUTPUT */
    uint32_t node_rank;
    uint8_t stream;
    uint8_t kind;
};

struct backlog_block;

struct backlog {
    struct backlog_block *first;
    struct backlog_block *last;
    size_t bytes; /* of all items */
};

/* Add a copy of the item and of its bytes at the end. Errors: false without
 * memory. */
bool backlog_push(struct backlog *b, const struct backlog_item *item);

bool backlog_is_empty(const struct backlog *b);

/* The oldest item, and true; false: there is none. Its bytes are good until
 * the next call of this function. */
bool backlog_pop(struct backlog *b, struct backlog_item *item);

void backlog_release(struct backlog *b);

#endif
