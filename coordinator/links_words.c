/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that do not reach each other, in words.
 */
#include <string.h>

#include "common/units.h"
#include "coordinator/links.h"

enum {
    BYTE_BITS = 8,
    /* Nodes without an address whose pairs are looked for. */
    BAD_NODES_MAX = 64,
    /* Ten pairs of the longest names do not fit a text. */
    TAIL_BYTES = 128,
};

static bool has_missed(const struct links *l, const struct link_node *from,
                       uint32_t to, uint32_t endpoint)
{
    uint32_t bit = l->firsts[to] + endpoint;
    return from->missed != NULL &&
           (from->missed[bit / BYTE_BITS] >> (bit % BYTE_BITS) & 1u) != 0;
}

/* NULL: no more is known of it. */
static const struct link_failure *find_failure(const struct links *l,
                                               uint32_t from, uint32_t to,
                                               uint32_t endpoint)
{
    const struct link_node *node = &l->nodes[from];
    for (uint32_t i = 0; i < node->failure_count; i++) {
        const struct link_failure *f = &node->failures[i];
        if (f->node_rank == to && f->endpoint == endpoint) {
            return f;
        }
    }
    return NULL;
}

/* Why `from` has not reached this endpoint. */
static void append_kind(struct text *out, const struct links *l, uint32_t from,
                        uint32_t to, uint32_t endpoint, const struct roster *r)
{
    static const char *const words[] = {
        [GPUL__LINK_FAILURE__KIND__NONE] = "failed",
        [GPUL__LINK_FAILURE__KIND__REFUSED] = "connection refused",
        [GPUL__LINK_FAILURE__KIND__TIMED_OUT] = "timed out",
        [GPUL__LINK_FAILURE__KIND__UNREACHABLE] = "unreachable",
        [GPUL__LINK_FAILURE__KIND__OTHER_MACHINE] =
            "another machine answers there",
        [GPUL__LINK_FAILURE__KIND__CLOSED] = "closed without an answer",
        [GPUL__LINK_FAILURE__KIND__NOT_TRIED] = "not tried",
    };
    const struct link_failure *found = find_failure(l, from, to, endpoint);
    uint32_t other = found != NULL ? found->answered_by : 0;
    if (other == from + 1) {
        text_append(out, "it reaches itself there");
    } else if (other > 0) {
        text_append(out, "node %s answers there", r->nodes[other - 1].name);
    } else {
        text_append(out, "%s", words[found != NULL ? found->kind : 0]);
    }
}

/* How many of the endpoints of `to` has `from` reached; and the first one. */
static uint32_t count_reached(const struct links *l, uint32_t from, uint32_t to,
                              uint32_t *first)
{
    uint32_t count = 0;
    for (uint32_t i = l->nodes[to].count; i > 0; i--) {
        if (!has_missed(l, &l->nodes[from], to, i - 1)) {
            *first = i - 1;
            count++;
        }
    }
    return count;
}

/* Does it work the other way? */
static void append_back(struct text *out, const struct links *l, uint32_t from,
                        uint32_t to, const struct roster *r)
{
    uint32_t first;
    const struct link_node *node = &l->nodes[to];
    if (node->has_missed && node->missed == NULL) {
        return; /* not kept */
    }
    text_append(out, "; %s -> %s %s", r->nodes[to].name, r->nodes[from].name,
                count_reached(l, to, from, &first) > 0 ? "works" : "fails too");
}

static void append_pair(struct text *out, const struct links *l, uint32_t from,
                        uint32_t to, uint32_t endpoint, const struct roster *r)
{
    uint32_t first;
    const struct link_endpoint *e = &l->nodes[to].endpoints[endpoint];
    text_append(out, "%s -> %s (%s, %s): ", r->nodes[from].name,
                r->nodes[to].name, e->address, link_name(e));
    append_kind(out, l, from, to, endpoint, r);
    if (count_reached(l, from, to, &first) > 0) {
        e = &l->nodes[to].endpoints[first];
        text_append(out, ", but %s, %s works", e->address, link_name(e));
    }
    append_back(out, l, from, to, r);
}

/* The endpoint that the fewest have missed. Returns how many have. */
static uint32_t least_missed(const struct link_node *node, uint32_t *endpoint)
{
    *endpoint = 0;
    for (uint32_t i = 1; i < node->count; i++) {
        if (node->endpoints[i].missed < node->endpoints[*endpoint].missed) {
            *endpoint = i;
        }
    }
    return node->endpoints[*endpoint].missed;
}

/* Was the time over before it could be dialled, and by no other? What was put
 * off for a node that was reached by another endpoint was not late. */
static bool is_late(const struct links *l, uint32_t from, uint32_t to,
                    uint32_t endpoint)
{
    uint32_t first;
    const struct link_failure *f = find_failure(l, from, to, endpoint);
    return f != NULL && f->kind == GPUL__LINK_FAILURE__KIND__NOT_TRIED &&
           count_reached(l, from, to, &first) == 0;
}

struct pairs {
    uint32_t shown;
    uint32_t late; /* of these */
    uint64_t total;
    uint32_t bad_nodes;
};

/* Put it behind the others, if it fits. */
static void show_pair(struct links *l, struct text *out, struct pairs *p,
                      uint32_t from, uint32_t to, uint32_t endpoint,
                      const struct roster *r)
{
    struct text pair = {0};
    append_pair(&pair, l, from, to, endpoint, r);
    if (p->shown == LINKS_PAIRS_SHOWN ||
        strlen(out->bytes) + strlen(pair.bytes) + TAIL_BYTES >
            GPUL_TEXT_BYTES_MAX) {
        return;
    }
    text_append(out, "%s%s", p->shown > 0 ? ". " : "", pair.bytes);
    p->shown++;
    p->late += is_late(l, from, to, endpoint);
    l->nodes[from].is_involved = true;
    l->nodes[to].is_involved = true;
}

/* Neither reaches the other, and that was said the other way round. */
static bool is_known(const struct links *l, uint32_t from, uint32_t to)
{
    uint32_t first;
    return from < to && l->nodes[to].missed != NULL &&
           count_reached(l, from, to, &first) == 0 &&
           count_reached(l, to, from, &first) == 0;
}

static void show_pairs_of(struct links *l, struct text *out, struct pairs *p,
                          uint32_t to, const struct roster *r)
{
    uint32_t endpoint;
    uint32_t missed = least_missed(&l->nodes[to], &endpoint);
    if (missed == 0) {
        return;
    }
    p->total += missed;
    if (p->bad_nodes++ == BAD_NODES_MAX) {
        p->bad_nodes = BAD_NODES_MAX;
        return;
    }
    for (uint32_t i = 0; i < l->node_count && p->shown < LINKS_PAIRS_SHOWN;
         i++) {
        if (i == to || !has_missed(l, &l->nodes[i], to, endpoint)) {
            continue;
        }
        if (is_known(l, i, to)) {
            p->total--;
        } else {
            show_pair(l, out, p, i, to, endpoint, r);
        }
    }
}

bool links_next_pair(const struct links *l, struct text *out,
                     struct links_pair *pair, const struct roster *r)
{
    for (; pair->to < l->node_count; pair->to++, pair->next = 0) {
        uint32_t endpoint;
        if (least_missed(&l->nodes[pair->to], &endpoint) == 0) {
            continue;
        }
        for (; pair->next < l->node_count; pair->next++) {
            uint32_t from = pair->next;
            if (from == pair->to ||
                !has_missed(l, &l->nodes[from], pair->to, endpoint) ||
                is_known(l, from, pair->to)) {
                continue;
            }
            text_format(out, "%s", "");
            append_pair(out, l, from, pair->to, endpoint, r);
            pair->from = from;
            pair->next++;
            return true;
        }
    }
    return false;
}

/* Each has an address of some family, but not all of one. */
static void explain_families(struct links *l, struct text *out,
                             const struct roster *r)
{
    const char *names[2] = {NULL, NULL}; /* reached by that family only */
    for (uint32_t i = 0; i < l->node_count; i++) {
        bool has[2] = {false, false};
        struct link_node *node = &l->nodes[i];
        for (uint32_t k = 0; k < node->count; k++) {
            const struct link_endpoint *e = &node->endpoints[k];
            has[e->is_ipv6] = has[e->is_ipv6] || e->missed == 0;
        }
        if (has[0] != has[1] && names[has[1]] == NULL) {
            names[has[1]] = r->nodes[i].name;
            node->is_involved = true;
        }
    }
    text_format(out,
                "no family of addresses serves all nodes: %s is reached by "
                "IPv4 only, %s by IPv6 only",
                names[0] != NULL ? names[0] : "one",
                names[1] != NULL ? names[1] : "another");
}

void links_explain(struct links *l, struct text *out, const struct roster *r)
{
    struct pairs p = {0};
    text_format(out, "nodes do not reach each other: ");
    for (uint32_t i = 0; i < l->node_count; i++) {
        show_pairs_of(l, out, &p, i, r);
    }
    if (p.total == 0) {
        explain_families(l, out, r);
    } else if (p.total > p.shown) {
        text_append(out, "%s%llu %spair%s", p.shown > 0 ? "; and " : "",
                    (unsigned long long)(p.total - p.shown),
                    p.shown > 0 ? "more " : "", gpul_plural(p.total - p.shown));
    }
    if (p.late > 0) {
        text_append(out, "; the time was over: --self-test-timeout gives it "
                         "longer");
    }
}
