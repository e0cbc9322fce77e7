/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ranks of this node leave behind, as the keeper tells it; and what
 * is done about it when there is no keeper any more. Edge.
 */
#ifndef WORKER_REMAINS_H
#define WORKER_REMAINS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "worker/cleanup.h"
#include "worker/keeperwire.h"

struct remains {
    struct cleanup cleanup; /* what the ranks are known by; no generation: */
                            /* there are none */
    char text[GPUL_UNCLEAN_MAX][GPUL_UNCLEAN_BYTES_MAX + 1];
    char *list[GPUL_UNCLEAN_MAX]; /* of what would not die */
    size_t count;
};

/* Call from a child of the keeper that sent this STATE. */
void remains_init(struct remains *r, const char *job_id,
                  const struct keeper_packet *state);

/* New ranks: nothing is left of them yet. */
void remains_begin(struct remains *r, uint32_t generation, uint32_t first_rank,
                   uint32_t rank_count);

/* "pid name" of one that would not die. */
void remains_add(struct remains *r, const char *text);

/* The keeper is gone, and the ranks with it: kill what else carries the job's
 * marker, within CLEANUP_BOUND_MS, and add how much is left. */
void remains_bury(struct remains *r);

#endif
