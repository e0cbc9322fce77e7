/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/links.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"

enum {
    BYTE_BITS = 8,
    /* Addresses of a page, unfolded, with their ports as varints. */
    PAGE_BYTES_MAX = GPUL_FRAME_BYTES_MAX - 8192,
    PORT_BYTES = 3,
};

int links_init(struct links *l, uint32_t node_count)
{
    *l = (struct links){.node_count = node_count};
    gpul_buf_init(&l->frames, (size_t)GPUL_NODES_MAX * GPUL_LINKS_MAX *
                                  (GPUL_ADDRESS_BYTES_MAX + PORT_BYTES));
    l->nodes = calloc(node_count, sizeof(*l->nodes));
    l->firsts = calloc((size_t)node_count + 1, sizeof(*l->firsts));
    return l->nodes != NULL && l->firsts != NULL ? 0 : GPUL_ENOMEM;
}

static void free_lines(char **lines, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(lines[i]);
    }
    free(lines);
}

static void release_node(struct link_node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        free(node->endpoints[i].address);
    }
    free_lines(node->rejected, node->rejected_count);
    free(node->endpoints);
    free(node->missed);
    free(node->failures);
}

void links_release(struct links *l)
{
    for (uint32_t i = 0; l->nodes != NULL && i < l->node_count; i++) {
        release_node(&l->nodes[i]);
    }
    free(l->nodes);
    free(l->firsts);
    gpul_buf_release(&l->frames);
    *l = (struct links){0};
}

const char *link_name(const struct link_endpoint *e)
{
    return e->address + e->name_at;
}

const char *link_kind(const struct link_endpoint *e)
{
    return e->address + e->kind_at;
}

/* ---- candidates ---------------------------------------------------------- */

/* Its three strings in one block, which `address` owns. */
static int copy_endpoint(struct link_endpoint *out,
                         const Gpul__LinkInterface *from)
{
    size_t address_bytes = strlen(from->address) + 1;
    size_t name_bytes = strlen(from->name) + 1;
    size_t kind_bytes = strlen(from->kind) + 1;
    char *block = malloc(address_bytes + name_bytes + kind_bytes);
    if (block == NULL) {
        return GPUL_ENOMEM;
    }
    *out = (struct link_endpoint){
        .address = block,
        .name_at = (uint8_t)address_bytes,
        .kind_at = (uint8_t)(address_bytes + name_bytes),
        .mbits = from->mbits,
        .port = (uint16_t)from->port,
        .is_rdma = from->is_rdma,
        .is_tunnel = from->is_tunnel,
        .is_ipv6 = strchr(from->address, ':') != NULL,
    };
    memcpy(block, from->address, address_bytes);
    memcpy(block + out->name_at, from->name, name_bytes);
    memcpy(block + out->kind_at, from->kind, kind_bytes);
    return 0;
}

/* "docker0 172.17.0.1 (bridge): why" */
static char *format_line(const char *name, const char *address,
                         const char *kind, const char *why)
{
    struct text line;
    text_format(&line, "%s %s%s%s%s: %s", name, address,
                kind[0] != 0 ? " (" : "", kind, kind[0] != 0 ? ")" : "", why);
    line.bytes[text_whole_bytes(line.bytes, GPUL_REJECTED_BYTES_MAX)] = 0;
    return text_copy(line.bytes);
}

static int add_rejected(struct link_node *node, const Gpul__LinkInterface *from)
{
    char *line =
        format_line(from->name, from->address, from->kind, from->rejection);
    if (line == NULL) {
        return GPUL_ENOMEM;
    }
    node->rejected[node->rejected_count++] = line;
    return 0;
}

/* As much as it takes: there may be a hundred thousand of them. */
static int make_room(struct link_node *node,
                     const Gpul__LinkListening *listening)
{
    size_t candidates = 0;
    for (size_t i = 0; i < listening->n_interfaces; i++) {
        candidates += listening->interfaces[i]->rejection[0] == 0;
    }
    size_t lines = listening->n_interfaces - candidates;
    lines = lines < GPUL_REJECTED_MAX ? lines : GPUL_REJECTED_MAX;
    if (lines > 0) {
        node->rejected = calloc(lines, sizeof(*node->rejected));
    }
    node->endpoints =
        calloc(candidates > 0 ? candidates : 1, sizeof(*node->endpoints));
    return node->endpoints == NULL || (lines > 0 && node->rejected == NULL)
               ? GPUL_ENOMEM
               : 0;
}

int links_add(struct links *l, uint32_t node_rank, const char *joined,
              const Gpul__LinkListening *listening)
{
    struct link_node *node = &l->nodes[node_rank];
    int rc = 0;
    assert(node->endpoints == NULL);
    node->chosen = LINKS_NONE;
    if (make_room(node, listening) != 0) {
        return GPUL_ENOMEM;
    }
    for (size_t i = 0; i < listening->n_interfaces && rc == 0; i++) {
        const Gpul__LinkInterface *interface = listening->interfaces[i];
        if (interface->rejection[0] != 0) {
            rc = node->rejected_count < GPUL_REJECTED_MAX
                     ? add_rejected(node, interface)
                     : 0;
        } else {
            struct link_endpoint *e = &node->endpoints[node->count];
            rc = copy_endpoint(e, interface);
            e->is_joined = strcmp(interface->address, joined) == 0;
            node->count += rc == 0;
        }
    }
    return rc;
}

/* ---- the pages ----------------------------------------------------------- */

/* Nodes first .. end-1 fit one page. */
static uint32_t page_end(const struct links *l, uint32_t first)
{
    size_t bytes = 0;
    uint32_t end = first;
    while (end < l->node_count && end - first < GPUL_LINK_PAGE_NODES_MAX) {
        const struct link_node *node = &l->nodes[end];
        for (uint32_t i = 0; i < node->count; i++) {
            bytes += strlen(node->endpoints[i].address) + 1 + PORT_BYTES;
        }
        if (bytes > PAGE_BYTES_MAX) {
            break;
        }
        end++;
    }
    assert(end > first);
    return end;
}

/* One page's lists, before they are encoded. */
struct page {
    char *addresses[GPUL_LINK_PAGE_NODES_MAX * GPUL_LINKS_MAX]; /* borrowed */
    uint32_t ports[GPUL_LINK_PAGE_NODES_MAX * GPUL_LINKS_MAX];
    uint32_t counts[GPUL_LINK_PAGE_NODES_MAX];
    struct gpul_buf text;
};

static void fill_counts(Gpul__LinkPeers *message, struct page *page,
                        const struct links *l)
{
    bool is_even = true;
    for (uint32_t i = 0; i < message->node_count; i++) {
        page->counts[i] = l->nodes[message->first_node + i].count;
        is_even = is_even && page->counts[i] == page->counts[0];
    }
    message->counts = page->counts;
    message->n_counts = is_even ? 1 : message->node_count;
}

/* First endpoints of all nodes, then second ones: those of a network stand
 * together, and fold. */
static size_t fill_endpoints(struct page *page, const Gpul__LinkPeers *message,
                             const struct links *l)
{
    size_t n = 0;
    for (uint32_t k = 0; k < GPUL_LINKS_MAX; k++) {
        for (uint32_t i = 0; i < message->node_count; i++) {
            const struct link_node *node = &l->nodes[message->first_node + i];
            if (k < node->count) {
                page->addresses[n] = node->endpoints[k].address;
                page->ports[n++] = node->endpoints[k].port;
            }
        }
    }
    return n;
}

static int encode_page(struct links *l, Gpul__Frame *frame, struct page *page,
                       struct gpul_error *err)
{
    Gpul__LinkPeers *message = frame->link_peers;
    fill_counts(message, page, l);
    size_t n = fill_endpoints(page, message, l);
    struct gpul_hostlist list = {.names = page->addresses, .count = n};
    gpul_buf_clear(&page->text);
    int rc = gpul_hostlist_fold(&page->text, &list, 0, n);
    const char *text = rc == 0 ? gpul_buf_text(&page->text) : NULL;
    if (text == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for addresses");
    }
    message->addresses = wire_text(text);
    message->ports = page->ports;
    message->n_ports = n;
    return gpul_message_encode(&l->frames, frame, err);
}

static void number_endpoints(struct links *l)
{
    for (uint32_t i = 0; i < l->node_count; i++) {
        l->firsts[i + 1] = l->firsts[i] + l->nodes[i].count;
    }
}

static uint32_t count_pages(const struct links *l)
{
    uint32_t pages = 0;
    for (uint32_t first = 0; first < l->node_count; pages++) {
        first = page_end(l, first);
    }
    return pages;
}

int links_encode(struct links *l, uint32_t epoch, uint32_t generation,
                 uint32_t deadline_ms, struct gpul_error *err)
{
    Gpul__LinkPeers message = GPUL__LINK_PEERS__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = epoch;
    frame.generation = generation;
    frame.body_case = GPUL__FRAME__BODY_LINK_PEERS;
    frame.link_peers = &message;
    struct page *page = malloc(sizeof(*page));
    if (page == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for addresses");
    }
    gpul_buf_init(&page->text, GPUL_FRAME_BYTES_MAX);
    number_endpoints(l);
    message.deadline_ms = deadline_ms;
    message.page_count = count_pages(l);
    int rc = 0;
    for (uint32_t first = 0; rc == 0 && first < l->node_count; message.page++) {
        uint32_t end = page_end(l, first);
        message.first_node = first;
        message.node_count = end - first;
        rc = encode_page(l, &frame, page, err);
        first = end;
    }
    gpul_buf_release(&page->text);
    free(page);
    return rc;
}

/* ---- reports ------------------------------------------------------------- */

static bool is_sound(const struct links *l, uint32_t node_rank,
                     const Gpul__LinkReport *report)
{
    uint32_t total = l->firsts[l->node_count];
    size_t bytes = ((size_t)total + BYTE_BITS - 1) / BYTE_BITS;
    const uint8_t *bits = report->missed.data;
    if (report->missed.len != 0 && report->missed.len != bytes) {
        return false;
    }
    for (uint32_t i = total; report->missed.len != 0 && i < bytes * BYTE_BITS;
         i++) {
        if ((bits[i / BYTE_BITS] >> (i % BYTE_BITS) & 1u) != 0) {
            return false;
        }
    }
    for (size_t i = 0; i < report->n_failures; i++) {
        const Gpul__LinkFailure *f = report->failures[i];
        if (f->node_rank >= l->node_count ||
            f->endpoint >= l->nodes[f->node_rank].count ||
            f->answered_by > l->node_count) {
            return false;
        }
    }
    return report->n_reached_from <= l->nodes[node_rank].count;
}

/* Count what it has missed of others. */
static void count_missed(struct links *l, uint32_t node_rank,
                         const uint8_t *bits)
{
    uint32_t end = 0;
    for (uint32_t node = 0; node < l->node_count; node++) {
        for (uint32_t i = l->firsts[node]; i < l->firsts[node + 1]; i++) {
            bool is_missed = (bits[i / BYTE_BITS] >> (i % BYTE_BITS) & 1u) != 0;
            l->nodes[node].endpoints[i - l->firsts[node]].missed +=
                is_missed && node != node_rank;
        }
        end = l->firsts[node + 1];
    }
    assert(end == l->firsts[l->node_count]);
}

static int keep_failures(struct link_node *node, const Gpul__LinkReport *report)
{
    node->failures = calloc(report->n_failures, sizeof(*node->failures));
    if (node->failures == NULL) {
        return GPUL_ENOMEM;
    }
    for (size_t i = 0; i < report->n_failures; i++) {
        const Gpul__LinkFailure *f = report->failures[i];
        node->failures[node->failure_count++] = (struct link_failure){
            .node_rank = f->node_rank,
            .answered_by = f->answered_by,
            .endpoint = (uint8_t)f->endpoint,
            .kind = (uint8_t)f->kind,
        };
    }
    return 0;
}

static int keep_report(struct links *l, struct link_node *node,
                       const Gpul__LinkReport *report)
{
    size_t bytes =
        report->missed.len + report->n_failures * sizeof(struct link_failure);
    node->has_missed = true;
    if (bytes > LINKS_KEPT_BYTES_MAX - l->kept_bytes) {
        return 0;
    }
    l->kept_bytes += bytes;
    node->missed = malloc(report->missed.len);
    if (node->missed == NULL) {
        return GPUL_ENOMEM;
    }
    memcpy(node->missed, report->missed.data, report->missed.len);
    return report->n_failures > 0 ? keep_failures(node, report) : 0;
}

int links_report(struct links *l, uint32_t node_rank,
                 const Gpul__LinkReport *report)
{
    struct link_node *node = &l->nodes[node_rank];
    if (!is_sound(l, node_rank, report)) {
        return GPUL_EPROTO;
    }
    gpul_buf_release(&l->frames); /* they have arrived */
    for (size_t i = 0; i < report->n_reached_from; i++) {
        node->endpoints[i].reached_from = report->reached_from[i];
    }
    if (report->missed.len == 0) {
        return 0;
    }
    count_missed(l, node_rank, report->missed.data);
    return keep_report(l, node, report);
}

/* ---- the choice ---------------------------------------------------------- */

/* Is `a` to be taken rather than `b`, which the node has named before it? */
static bool is_better(const struct link_endpoint *a,
                      const struct link_endpoint *b)
{
    if (a->reached_from != b->reached_from) {
        return a->reached_from > b->reached_from;
    }
    if (a->is_tunnel != b->is_tunnel) {
        return b->is_tunnel;
    }
    if (a->is_rdma != b->is_rdma) {
        return a->is_rdma;
    }
    if (a->mbits != b->mbits) {
        return a->mbits > b->mbits;
    }
    return a->is_joined && !b->is_joined;
}

static uint8_t pick(const struct link_node *node, bool is_ipv6)
{
    uint8_t best = LINKS_NONE;
    for (uint8_t i = 0; i < node->count; i++) {
        const struct link_endpoint *e = &node->endpoints[i];
        if (e->missed == 0 && e->is_ipv6 == is_ipv6 &&
            (best == LINKS_NONE || is_better(e, &node->endpoints[best]))) {
            best = i;
        }
    }
    return best;
}

static bool choose_family(struct links *l, bool is_ipv6)
{
    bool has_all = true;
    for (uint32_t i = 0; i < l->node_count; i++) {
        l->nodes[i].chosen = pick(&l->nodes[i], is_ipv6);
        has_all = has_all && l->nodes[i].chosen != LINKS_NONE;
    }
    return has_all;
}

bool links_choose(struct links *l)
{
    return choose_family(l, false) || choose_family(l, true);
}

const struct link_endpoint *links_chosen(const struct links *l,
                                         uint32_t node_rank)
{
    const struct link_node *node = &l->nodes[node_rank];
    return node->chosen == LINKS_NONE ? NULL : &node->endpoints[node->chosen];
}

/* ---- lines for the user -------------------------------------------------- */

static char *candidate_line(const struct link_endpoint *e)
{
    struct text why;
    if (e->missed == 0) {
        text_format(&why, "can be used, another is better");
    } else {
        text_format(&why, "%u other node%s did not reach it", e->missed,
                    e->missed == 1 ? "" : "s");
    }
    return format_line(link_name(e), e->address, link_kind(e), why.bytes);
}

static int list_of_node(struct link_node *node)
{
    char **lines =
        calloc(node->count + node->rejected_count + 1, sizeof(*lines));
    uint32_t count = 0;
    if (lines == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (i == node->chosen) {
            continue;
        }
        lines[count] = candidate_line(&node->endpoints[i]);
        if (lines[count] == NULL) {
            free_lines(lines, count);
            return GPUL_ENOMEM;
        }
        count++;
    }
    for (uint32_t i = 0; i < node->rejected_count; i++) {
        lines[count++] = node->rejected[i];
    }
    while (count > GPUL_REJECTED_MAX) {
        free(lines[--count]);
    }
    free(node->rejected);
    node->rejected = lines;
    node->rejected_count = count;
    return 0;
}

int links_list_candidates(struct links *l)
{
    int rc = 0;
    for (uint32_t i = 0; i < l->node_count && rc == 0; i++) {
        rc = list_of_node(&l->nodes[i]);
    }
    return rc;
}
