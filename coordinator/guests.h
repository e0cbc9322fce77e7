/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have shown the key of a node and not said Hello yet, by the
 * name of that node. Pure.
 *
 * A node says Hello with its key, so it has one of these for a moment, and
 * perhaps one that it has given up. Whoever has the key of one node could hold
 * every place of the coordinator otherwise, and keep all others out. O(1) for
 * each connection.
 */
#ifndef COORDINATOR_GUESTS_H
#define COORDINATOR_GUESTS_H

#include <stdint.h>

/* No connection. */
#define GUESTS_NONE UINT32_MAX

struct guest; /* one connection, by its number */

/* All zero: no room for any. */
struct guests {
    struct guest *conns;
    uint32_t *newest; /* of each bucket of names; GUESTS_NONE: none */
    uint32_t mask;    /* buckets less one */
    uint64_t refused; /* that gave way, and were not told of yet */
    uint64_t next_line_ms;
};

/* Room for connections 0 .. count-1. 0 or GPUL_ENOMEM; released in any case. */
int guests_init(struct guests *g, uint32_t count);
void guests_release(struct guests *g);

/* A connection that is none of these shows the key of this node. Returns the
 * oldest of that name, taken out already, if there are more than
 * GPUL_GUESTS_OF_NAME_MAX now: close it. GUESTS_NONE: all may stay. */
uint32_t guests_enter(struct guests *g, uint32_t conn, const char *name);

/* It has said Hello, or is closed; nothing happens if it is none. */
void guests_leave(struct guests *g, uint32_t conn);

/* One was closed. Returns how many were since this was last more than 0, once
 * in GPUL_STRANGER_LINE_MS: to be logged. */
uint64_t guests_refused(struct guests *g, uint64_t now_ms);

#endif
