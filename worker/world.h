/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is where in this generation: the roster, put together from its pages
 * and checked. Pure.
 *
 * Pages come in order over one connection, so page k continues where page
 * k-1 ended; anything else is a fault of the sender.
 */
#ifndef WORKER_WORLD_H
#define WORKER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hostlist.h"
#include "proto/message.h"

struct world {
    uint32_t node_count;
    uint32_t world_size;
    /* By node rank, of the nodes whose pages are here. */
    struct gpul_hostlist addresses;
    uint16_t *port_bases;
    uint32_t *rank_counts;
    uint32_t *first_ranks;
    uint32_t rank_total; /* sum of rank_counts */
    uint32_t page_next;
    uint32_t page_count; /* 0 before the first page */
};

/* A world without allocations; release may be called on it. */
void world_init(struct world *w);
void world_release(struct world *w);

/* Forget the old generation and make room for a new one. node_count is
 * 1..GPUL_NODES_MAX, else GPUL_EPROTO. Also GPUL_ENOMEM. */
int world_begin(struct world *w, uint32_t node_count, uint32_t world_size,
                struct gpul_error *err);

/* Take the next page. Errors: GPUL_EPROTO saying what does not fit,
 * GPUL_ENOMEM; the world is then good for release or begin only. */
int world_add(struct world *w, const Gpul__Roster *page,
              struct gpul_error *err);

/* All pages are here. */
bool world_is_complete(const struct world *w);

/* Does a complete world agree with what this node knows of itself? Errors:
 * GPUL_EPROTO with both values. */
int world_check_node(const struct world *w, uint32_t node_rank,
                     uint32_t first_rank, uint32_t rank_count,
                     uint16_t port_base, struct gpul_error *err);

#endif
