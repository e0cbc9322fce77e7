/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the watch that judges who is away, who is back and who is lost.
 */
#ifndef TESTS_LIB_WATCHAWAY_H
#define TESTS_LIB_WATCHAWAY_H

#include "tests/lib/watch.h"

/* `conn` is closed: by the node, or by the coordinator's doing, which a node
 * survives only if its next agent is the reason. */
void watch_see_closed(struct cluster *c, uint32_t conn, bool is_by_itself);

/* The next agent of a node that has its place is welcomed. */
void watch_see_return(struct cluster *c, struct watch_node *node);

/* The processes of whoever holds the place of that name have ended. */
void watch_hear_gone(struct cluster *c, const char *name);

/* A tick comes: whose time is over is lost. */
void watch_lose_overdue(struct cluster *c);

#endif
