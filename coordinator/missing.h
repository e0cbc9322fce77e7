/* SPDX-License-Identifier: Apache-2.0
 *
 * "node[1-10] and 90 more": naming the nodes that something waits for. Pure.
 */
#ifndef COORDINATOR_MISSING_H
#define COORDINATOR_MISSING_H

#include "coordinator/roster.h"
#include "coordinator/text.h"

enum { MISSING_NAMES_MAX = 10 };

/* Is this node to be named? `arg` is the caller's. */
typedef bool (*missing_fn)(const struct roster *r, uint32_t node_rank,
                           const void *arg);

/* Write the names of the nodes that `lacks` is true for: the first ten,
 * folded, then a count. Returns how many there are. Without memory for the
 * names, or where nobody knows them yet, only the count is given. */
uint32_t missing_names(struct text *out, const struct roster *r,
                       missing_fn lacks, const void *arg);

#endif
