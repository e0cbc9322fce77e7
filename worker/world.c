/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/world.h"

#include <stdlib.h>

#include "proto/limits.h"

void world_init(struct world *w)
{
    *w = (struct world){0};
    gpul_hostlist_init(&w->addresses);
}

void world_release(struct world *w)
{
    gpul_hostlist_release(&w->addresses);
    free(w->port_bases);
    free(w->rank_counts);
    free(w->first_ranks);
    world_init(w);
}

int world_begin(struct world *w, uint32_t node_count, uint32_t world_size,
                struct gpul_error *err)
{
    world_release(w);
    if (node_count == 0 || node_count > GPUL_NODES_MAX) {
        return gpul_fail(err, GPUL_EPROTO, "a world of %u nodes", node_count);
    }
    w->port_bases = calloc(node_count, sizeof(*w->port_bases));
    w->rank_counts = calloc(node_count, sizeof(*w->rank_counts));
    w->first_ranks = calloc(node_count, sizeof(*w->first_ranks));
    if (w->port_bases == NULL || w->rank_counts == NULL ||
        w->first_ranks == NULL) {
        world_release(w);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for roster of %u nodes", node_count);
    }
    w->node_count = node_count;
    w->world_size = world_size;
    return 0;
}

/* Lists of a page hold one value for all its nodes, or one for each. */
static bool fits_page(size_t n, const Gpul__Roster *page)
{
    return n == 1 || n == page->node_count;
}

static uint32_t value_of(const uint32_t *values, size_t n, uint32_t index)
{
    return values[n == 1 ? 0 : index];
}

static int check_page(const struct world *w, const Gpul__Roster *page,
                      struct gpul_error *err)
{
    uint32_t here = (uint32_t)w->addresses.count;
    if (page->page != w->page_next || page->page >= page->page_count ||
        (w->page_count != 0 && w->page_count != page->page_count)) {
        return gpul_fail(err, GPUL_EPROTO, "roster page %u of %u, expected %u",
                         page->page, page->page_count, w->page_next);
    }
    if (page->first_node != here || page->node_count == 0 ||
        page->node_count > w->node_count - here) {
        return gpul_fail(err, GPUL_EPROTO,
                         "roster page %u has nodes %u+%u, expected %u of %u",
                         page->page, page->first_node, page->node_count, here,
                         w->node_count);
    }
    if (!fits_page(page->n_port_bases, page) ||
        !fits_page(page->n_rank_counts, page)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "roster page %u: %zu ports and %zu rank counts for "
                         "%u nodes",
                         page->page, page->n_port_bases, page->n_rank_counts,
                         page->node_count);
    }
    return 0;
}

static int add_node(struct world *w, uint32_t node, uint32_t port_base,
                    uint32_t rank_count, struct gpul_error *err)
{
    if (rank_count == 0 || rank_count > w->world_size - w->rank_total) {
        return gpul_fail(
            err, GPUL_EPROTO, "node %u has %u ranks, %u of %u are left", node,
            rank_count, w->world_size - w->rank_total, w->world_size);
    }
    if (port_base == 0 || port_base > UINT16_MAX ||
        rank_count + GPUL_EXTRA_PORTS > UINT16_MAX + 1u - port_base) {
        return gpul_fail(err, GPUL_EPROTO, "node %u has ports %u+%u", node,
                         port_base, rank_count + GPUL_EXTRA_PORTS);
    }
    w->port_bases[node] = (uint16_t)port_base;
    w->rank_counts[node] = rank_count;
    w->first_ranks[node] = w->rank_total;
    w->rank_total += rank_count;
    return 0;
}

int world_add(struct world *w, const Gpul__Roster *page, struct gpul_error *err)
{
    int rc = check_page(w, page, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpul_hostlist_expand(&w->addresses, page->addresses, w->node_count,
                              err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "roster page %u", page->page);
    }
    if (w->addresses.count != page->first_node + page->node_count) {
        return gpul_fail(err, GPUL_EPROTO,
                         "roster page %u has %zu addresses for %u nodes",
                         page->page, w->addresses.count - page->first_node,
                         page->node_count);
    }
    for (uint32_t i = 0; i < page->node_count && rc == 0; i++) {
        rc = add_node(w, page->first_node + i,
                      value_of(page->port_bases, page->n_port_bases, i),
                      value_of(page->rank_counts, page->n_rank_counts, i), err);
    }
    w->page_count = page->page_count;
    w->page_next = page->page + 1;
    if (rc == 0 && w->page_next == w->page_count &&
        (w->addresses.count != w->node_count ||
         w->rank_total != w->world_size)) {
        rc = gpul_fail(err, GPUL_EPROTO,
                       "the roster has %zu of %u nodes and %u of %u ranks",
                       w->addresses.count, w->node_count, w->rank_total,
                       w->world_size);
    }
    return rc;
}

bool world_is_complete(const struct world *w)
{
    return w->page_count != 0 && w->page_next == w->page_count;
}

int world_check_node(const struct world *w, uint32_t node_rank,
                     uint32_t first_rank, uint32_t rank_count,
                     uint16_t port_base, struct gpul_error *err)
{
    if (node_rank >= w->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "node rank %u of %u nodes",
                         node_rank, w->node_count);
    }
    if (w->first_ranks[node_rank] != first_rank ||
        w->rank_counts[node_rank] != rank_count ||
        w->port_bases[node_rank] != port_base) {
        return gpul_fail(err, GPUL_EPROTO,
                         "the roster gives this node ranks %u+%u and port %u, "
                         "it has %u+%u and %u",
                         w->first_ranks[node_rank], w->rank_counts[node_rank],
                         w->port_bases[node_rank], first_rank, rank_count,
                         port_base);
    }
    return 0;
}
