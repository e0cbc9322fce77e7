/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets which ranks, which nodes share a host, and how all of them are
 * told where everybody is. Pure.
 */
#ifndef COORDINATOR_ASSIGN_H
#define COORDINATOR_ASSIGN_H

#include "common/buf.h"
#include "coordinator/job.h"
#include "coordinator/roster.h"

/* Give every node its ranks, without gaps in node order, and its place among
 * the nodes of its host: nodes with the same host name and boot id share one.
 * Every node must have said Hello. Errors, each with a sentence:
 * GPUL_ENOTFOUND: a node lacks what its place needs (no GPU while one rank
 * per GPU was asked for).
 * GPUL_ELIMIT: more ranks than GPUL_RANKS_MAX. GPUL_ENOMEM. */
int assign_places(struct roster *r, uint32_t *world_size, const struct job *job,
                  struct gpul_error *err);

/* Fill the place of one node into a message; avoid_ports stays the caller's.
 */
void assign_fill(Gpul__Assign *out, const struct roster *r,
                 const struct node *node, uint32_t world_size);

/* Append the roster as Roster frames, each within its maximum, with as many
 * pages as it takes. Every node must be Ready. Errors: as
 * gpul_message_encode; `out` is then to be cleared. */
int assign_encode_roster(struct gpul_buf *out, const struct roster *r,
                         uint32_t epoch, uint32_t generation,
                         struct gpul_error *err);

#endif
