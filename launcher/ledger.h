/* SPDX-License-Identifier: Apache-2.0
 *
 * Which node's bytes stand where in a stream, so that each gets its credit
 * back when they have left. Pure.
 */
#ifndef LAUNCHER_LEDGER_H
#define LAUNCHER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bytes` of a node have left once `position` bytes of the stream have. */
struct ledger_entry {
    uint64_t position;
    uint32_t node_rank;
    uint64_t bytes;
};

struct ledger {
    struct ledger_entry *items; /* a queue: first .. count-1 */
    size_t first;
    size_t count;
    size_t capacity;
};

/* Positions never fall. Errors: false without memory. */
bool ledger_add(struct ledger *l, const struct ledger_entry *entry);

/* The next entry that has left when `written` bytes have; false: none. */
bool ledger_take(struct ledger *l, uint64_t written,
                 struct ledger_entry *entry);

void ledger_release(struct ledger *l);

#endif
