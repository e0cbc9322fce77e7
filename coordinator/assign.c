/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/assign.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/units.h"
#include "coordinator/text.h"
#include "proto/limits.h"

/* What the encoded entries of a page may take, addresses unfolded: the rest
 * of the frame is for its other fields. */
enum { PAGE_BYTES_MAX = GPUL_FRAME_BYTES_MAX - 1024 };
/* A port and a rank count as varints. */
enum { PORT_BYTES = 3, RANK_COUNT_BYTES = 2 };

static int count_ranks(struct roster *r, uint32_t *world_size,
                       const struct job *job, struct gpul_error *err)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct node *node = &r->nodes[i];
        uint32_t ranks =
            job->ranks_per_node > 0 ? job->ranks_per_node : node->gpus;
        if (ranks == 0) {
            return gpul_fail(err, GPUL_ENOTFOUND,
                             "node %s (%s) has no GPU and one rank per GPU "
                             "was asked for; leave the node out, or give "
                             "--per-node a number",
                             node->name, node_hostname(node));
        }
        if (ranks > GPUL_RANKS_PER_NODE_MAX || ranks > GPUL_RANKS_MAX - next) {
            return gpul_fail(err, GPUL_ELIMIT,
                             "node %s would hold %u rank%s from rank %u on; "
                             "at most %u a node and %u in all are possible",
                             node->name, ranks, gpul_plural(ranks), next,
                             GPUL_RANKS_PER_NODE_MAX, GPUL_RANKS_MAX);
        }
        node->first_rank = next;
        node->rank_count = ranks;
        next += ranks;
    }
    *world_size = next;
    return 0;
}

static int compare_host_ids(const struct node *a, const struct node *b)
{
    int order = strcmp(a->hostname, b->hostname);
    return order != 0 ? order : strcmp(a->boot_id, b->boot_id);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct node *const *left = a;
    const struct node *const *right = b;
    int order = compare_host_ids(*left, *right);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

/* `nodes` are all on one host, in node order. */
static void place_on_host(struct node **nodes, uint32_t count)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < count; i++) {
        ranks += nodes[i]->rank_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        nodes[i]->host_node_index = i;
        nodes[i]->host_node_count = count;
        nodes[i]->host_rank_count = ranks;
    }
}

static int group_by_host(struct roster *r, struct gpul_error *err)
{
    struct node **sorted = malloc(r->count * sizeof(struct node *));
    if (sorted == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for %u nodes",
                         r->count);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        sorted[i] = &r->nodes[i];
    }
    qsort(sorted, r->count, sizeof(struct node *), compare_hosts);
    r->host_count = 0;
    uint32_t first = 0;
    for (uint32_t i = 1; i <= r->count; i++) {
        if (i == r->count || compare_host_ids(sorted[first], sorted[i]) != 0) {
            place_on_host(sorted + first, i - first);
            r->host_count++;
            first = i;
        }
    }
    free(sorted);
    return 0;
}

/* Are there several networks that the nodes see? */
static bool is_spread(const struct roster *r)
{
    for (uint32_t i = 1; i < r->count; i++) {
        if (compare_host_ids(&r->nodes[0], &r->nodes[i]) != 0 ||
            r->nodes[0].network_namespace != r->nodes[i].network_namespace) {
            return true;
        }
    }
    return false;
}

int assign_places(struct roster *r, uint32_t *world_size, const struct job *job,
                  struct gpul_error *err)
{
    assert(r->joined == r->count);
    int rc = count_ranks(r, world_size, job, err);
    if (rc == 0) {
        rc = group_by_host(r, err);
    }
    r->is_spread = is_spread(r);
    return rc;
}

void assign_fill(Gpul__Assign *out, const struct roster *r,
                 const struct node *node, uint32_t world_size)
{
    out->node_rank = roster_index(r, node);
    out->node_count = r->count;
    out->first_rank = node->first_rank;
    out->rank_count = node->rank_count;
    out->world_size = world_size;
    out->host_rank_count = node->host_rank_count;
    out->host_node_index = node->host_node_index;
    out->host_node_count = node->host_node_count;
    out->host_count = r->host_count;
}

/* Nodes first .. end-1 fit one page. */
static uint32_t page_end(const struct roster *r, uint32_t first)
{
    size_t bytes = 0;
    uint32_t end = first;
    while (end < r->count && end - first < GPUL_ROSTER_PAGE_NODES_MAX) {
        bytes += strlen(r->nodes[end].address) + 1;
        bytes += PORT_BYTES + RANK_COUNT_BYTES;
        if (bytes > PAGE_BYTES_MAX) {
            break;
        }
        end++;
    }
    assert(end > first);
    return end;
}

static uint32_t count_pages(const struct roster *r)
{
    uint32_t pages = 0;
    for (uint32_t first = 0; first < r->count; pages++) {
        first = page_end(r, first);
    }
    return pages;
}

/* One page's lists, before they are encoded. */
struct page {
    char *addresses[GPUL_ROSTER_PAGE_NODES_MAX]; /* borrowed from the roster */
    uint32_t port_bases[GPUL_ROSTER_PAGE_NODES_MAX];
    uint32_t rank_counts[GPUL_ROSTER_PAGE_NODES_MAX];
};

/* Where all are equal, one stands for all. */
static size_t distinct_count(const uint32_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (values[i] != values[0]) {
            return count;
        }
    }
    return 1;
}

static int encode_page(struct gpul_buf *out, Gpul__Frame *frame,
                       struct gpul_buf *addresses, struct page *page,
                       const struct roster *r, struct gpul_error *err)
{
    Gpul__Roster *message = frame->roster;
    uint32_t count = message->node_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct node *node = &r->nodes[message->first_node + i];
        page->addresses[i] = node->address;
        page->port_bases[i] = node->port_base;
        page->rank_counts[i] = node->rank_count;
    }
    struct gpul_hostlist list = {.names = page->addresses, .count = count};
    gpul_buf_clear(addresses);
    int rc = gpul_hostlist_fold(addresses, &list, 0, count);
    const char *text = rc == 0 ? gpul_buf_text(addresses) : NULL;
    if (text == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for the roster");
    }
    message->addresses = wire_text(text);
    message->port_bases = page->port_bases;
    message->n_port_bases = distinct_count(page->port_bases, count);
    message->rank_counts = page->rank_counts;
    message->n_rank_counts = distinct_count(page->rank_counts, count);
    return gpul_message_encode(out, frame, err);
}

int assign_encode_roster(struct gpul_buf *out, const struct roster *r,
                         uint32_t epoch, uint32_t generation,
                         struct gpul_error *err)
{
    Gpul__Roster message = GPUL__ROSTER__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = epoch;
    frame.generation = generation;
    frame.body_case = GPUL__FRAME__BODY_ROSTER;
    frame.roster = &message;
    struct page *page = malloc(sizeof(*page));
    if (page == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for the roster");
    }
    struct gpul_buf addresses;
    gpul_buf_init(&addresses, GPUL_FRAME_BYTES_MAX);
    int rc = 0;
    message.page_count = count_pages(r);
    for (uint32_t first = 0; rc == 0 && first < r->count; message.page++) {
        uint32_t end = page_end(r, first);
        message.first_node = first;
        message.node_count = end - first;
        rc = encode_page(out, &frame, &addresses, page, r, err);
        first = end;
    }
    gpul_buf_release(&addresses);
    free(page);
    return rc;
}
