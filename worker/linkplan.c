/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/linkplan.h"

#include <stdlib.h>
#include <string.h>

enum { BYTE_BITS = 8 };

int linkplan_init(struct linkplan *p, uint32_t self, uint32_t node_count,
                  uint32_t own_count, struct gpul_error *err)
{
    *p = (struct linkplan){
        .self = self,
        .node_count = node_count,
        .own_count = own_count,
        .round = 1,
    };
    p->firsts = calloc((size_t)node_count + 1, sizeof(*p->firsts));
    p->reached_from = calloc(node_count, sizeof(*p->reached_from));
    p->is_reached = calloc(node_count, sizeof(*p->is_reached));
    if (p->firsts == NULL || p->reached_from == NULL || p->is_reached == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for addresses of %u nodes", node_count);
    }
    return 0;
}

void linkplan_release(struct linkplan *p)
{
    for (uint32_t i = 0; i < p->endpoint_count; i++) {
        free(p->endpoints[i].address);
    }
    free(p->endpoints);
    free(p->firsts);
    free(p->again);
    free(p->reached_from);
    free(p->is_reached);
    free(p->missed);
    *p = (struct linkplan){0};
}

/* ---- pages --------------------------------------------------------------- */

static uint32_t count_of(const Gpul__LinkPeers *page, uint32_t i)
{
    return page->counts[page->n_counts == 1 ? 0 : i];
}

static int check_page(const struct linkplan *p, const Gpul__LinkPeers *page,
                      struct gpul_error *err)
{
    if (page->page != p->page_next || page->page >= page->page_count ||
        (p->page_count != 0 && p->page_count != page->page_count)) {
        return gpul_fail(err, GPUL_EPROTO, "page %u of %u, expected %u",
                         page->page, page->page_count, p->page_next);
    }
    if (page->first_node != p->nodes_here ||
        page->node_count > p->node_count - p->nodes_here) {
        return gpul_fail(err, GPUL_EPROTO,
                         "page %u has nodes %u+%u, expected %u of %u",
                         page->page, page->first_node, page->node_count,
                         p->nodes_here, p->node_count);
    }
    return 0;
}

static int make_room(struct linkplan *p, size_t more)
{
    uint64_t needed = (uint64_t)p->endpoint_count + more;
    if (needed <= p->endpoint_room) {
        return 0;
    }
    uint64_t room = needed + needed / 2;
    struct linkplan_endpoint *grown =
        realloc(p->endpoints, room * sizeof(*grown));
    if (grown == NULL) {
        return GPUL_ENOMEM;
    }
    memset(grown + p->endpoint_count, 0,
           (room - p->endpoint_count) * sizeof(*grown));
    p->endpoints = grown;
    p->endpoint_room = (uint32_t)room;
    return 0;
}

/* The page has first endpoints of all its nodes, then second ones; here they
 * stand node by node. The names are taken over. */
static void take_endpoints(struct linkplan *p, struct gpul_hostlist *names,
                           const Gpul__LinkPeers *page)
{
    size_t at = 0;
    for (uint32_t i = 0; i < page->node_count; i++) {
        uint32_t first = p->firsts[page->first_node + i];
        p->firsts[page->first_node + i + 1] = first + count_of(page, i);
    }
    for (uint32_t k = 0; k < GPUL_LINKS_MAX; k++) {
        for (uint32_t i = 0; i < page->node_count; i++) {
            if (k >= count_of(page, i)) {
                continue;
            }
            struct linkplan_endpoint *e =
                &p->endpoints[p->firsts[page->first_node + i] + k];
            e->address = names->names[at];
            e->port = (uint16_t)page->ports[at];
            names->names[at++] = NULL;
        }
    }
    p->endpoint_count += (uint32_t)at;
    names->count = 0;
}

/* All of others count as missed until they are reached. */
static int prepare_dials(struct linkplan *p)
{
    uint32_t total = p->endpoint_count;
    p->missed = calloc(total / BYTE_BITS + 1, 1);
    p->again = calloc(total + 1, sizeof(*p->again));
    if (p->missed == NULL || p->again == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < total; i++) {
        bool is_own = i >= p->firsts[p->self] && i < p->firsts[p->self + 1];
        p->missed[i / BYTE_BITS] |= (uint8_t)(!is_own << (i % BYTE_BITS));
        p->endpoints[i].kind = GPUL__LINK_FAILURE__KIND__NOT_TRIED;
    }
    return 0;
}

int linkplan_add(struct linkplan *p, const Gpul__LinkPeers *page,
                 struct gpul_error *err)
{
    struct gpul_hostlist names;
    gpul_hostlist_init(&names);
    int rc = check_page(p, page, err);
    if (rc == 0) {
        rc = gpul_hostlist_expand(&names, page->addresses, page->n_ports, err);
        rc = rc == GPUL_EINVAL || rc == GPUL_ELIMIT ? GPUL_EPROTO : rc;
    }
    if (rc == 0 && names.count != page->n_ports) {
        rc = gpul_fail(err, GPUL_EPROTO,
                       "page %u has %zu addresses for %zu "
                       "endpoints",
                       page->page, names.count, page->n_ports);
    }
    if (rc == 0) {
        rc = make_room(p, page->n_ports);
    }
    if (rc == 0) {
        take_endpoints(p, &names, page);
        p->nodes_here += page->node_count;
        p->page_next = page->page + 1;
        p->page_count = page->page_count;
        p->dial_ms = page->deadline_ms;
    }
    gpul_hostlist_release(&names);
    if (rc == 0 && p->page_next == p->page_count) {
        rc = p->nodes_here == p->node_count
                 ? prepare_dials(p)
                 : gpul_fail(err, GPUL_EPROTO, "%u of %u nodes", p->nodes_here,
                             p->node_count);
    }
    return rc == GPUL_ENOMEM ? gpul_fail(err, rc, "addresses of the nodes")
                             : rc;
}

bool linkplan_is_complete(const struct linkplan *p)
{
    return p->page_count != 0 && p->page_next == p->page_count;
}

/* ---- dials --------------------------------------------------------------- */

static uint32_t node_of(const struct linkplan *p, uint32_t endpoint)
{
    uint32_t low = 0;
    uint32_t high = p->node_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (p->firsts[middle] <= endpoint) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The endpoint of number `pass` that is next in turn. False: there is none. */
static bool next_of_pass(const struct linkplan *p, uint32_t pass,
                         uint32_t *round, uint32_t *node, uint32_t *endpoint)
{
    while (*round < p->node_count) {
        *node = (uint32_t)(((uint64_t)p->self + *round) % p->node_count);
        ++*round;
        *endpoint = p->firsts[*node] + pass;
        if (*endpoint < p->firsts[*node + 1]) {
            return true;
        }
    }
    return false;
}

static void begin_pass(struct linkplan *p)
{
    p->pass++;
    p->round = 1;
    p->silent = 0;
    p->has_answer = false;
}

/* Is the network of this pass silent? A few more dials will tell. */
static bool is_in_doubt(const struct linkplan *p)
{
    return p->in_flight > 0 && p->silent > 0 &&
           p->silent < LINKPLAN_SILENT_MAX && !p->has_answer;
}

/* The next one of the first tries. False: there is none left. */
static bool next_first(struct linkplan *p, uint32_t *node, uint32_t *endpoint)
{
    for (; p->pass < GPUL_LINKS_MAX; begin_pass(p)) {
        if (p->silent >= LINKPLAN_SILENT_MAX && p->round < p->node_count) {
            p->put_off[p->pass] = p->round;
            p->has_rest = true;
        } else if (next_of_pass(p, p->pass, &p->round, node, endpoint)) {
            return true;
        }
    }
    return false;
}

/* Of those that were put off. None before it is known whom the first tries have
 * reached. */
static bool next_rest(struct linkplan *p, uint32_t *node, uint32_t *endpoint)
{
    if (p->has_rest && p->in_flight > 0) {
        return false;
    }
    p->has_rest = false;
    for (; p->rest_pass < GPUL_LINKS_MAX; p->rest_pass++, p->rest_round = 0) {
        if (p->put_off[p->rest_pass] == 0) {
            continue;
        }
        if (p->rest_round == 0) {
            p->rest_round = p->put_off[p->rest_pass];
        }
        while (next_of_pass(p, p->rest_pass, &p->rest_round, node, endpoint)) {
            if (!p->is_reached[*node]) {
                return true;
            }
        }
    }
    return false;
}

/* Nodes that were reached by another endpoint meanwhile can do without. */
static bool next_again(struct linkplan *p, uint32_t *node, uint32_t *endpoint)
{
    while (p->again_next < p->again_count) {
        *endpoint = p->again[p->again_next++];
        *node = node_of(p, *endpoint);
        if (!p->is_reached[*node]) {
            return true;
        }
    }
    return false;
}

bool linkplan_next(struct linkplan *p, struct linkplan_dial *out)
{
    if (p->in_flight == LINKPLAN_DIALS_MAX || is_in_doubt(p)) {
        return false;
    }
    *out = (struct linkplan_dial){0};
    if (!next_first(p, &out->node, &out->endpoint) &&
        !next_rest(p, &out->node, &out->endpoint)) {
        out->is_repeated =
            !p->has_rest && next_again(p, &out->node, &out->endpoint);
        if (!out->is_repeated) {
            return false;
        }
    }
    const struct linkplan_endpoint *e = &p->endpoints[out->endpoint];
    out->address = e->address;
    out->port = e->port;
    out->bound_ms =
        p->is_reached[out->node] ? LINKPLAN_SPARE_DIAL_MS : LINKPLAN_DIAL_MS;
    p->in_flight++;
    return true;
}

/* Something, if not the right node, is there: or is the whole network dumb? */
static void note_answer(struct linkplan *p, const struct linkplan_dial *dial,
                        bool is_silent)
{
    if (dial->endpoint - p->firsts[dial->node] == p->pass) {
        p->silent = is_silent ? p->silent + 1 : 0;
        p->has_answer = p->has_answer || !is_silent;
    }
}

void linkplan_reached(struct linkplan *p, const struct linkplan_dial *dial,
                      uint8_t source)
{
    uint32_t i = dial->endpoint;
    p->in_flight--;
    note_answer(p, dial, false);
    p->missed[i / BYTE_BITS] &= (uint8_t) ~(1u << (i % BYTE_BITS));
    p->is_reached[dial->node] = true;
    if (source < p->own_count) {
        p->reached_from[dial->node] |= (uint8_t)(1u << source);
    }
}

void linkplan_failed(struct linkplan *p, const struct linkplan_dial *dial,
                     Gpul__LinkFailure__Kind kind, uint32_t answered_by)
{
    struct linkplan_endpoint *e = &p->endpoints[dial->endpoint];
    p->in_flight--;
    note_answer(p, dial,
                kind == GPUL__LINK_FAILURE__KIND__TIMED_OUT ||
                    kind == GPUL__LINK_FAILURE__KIND__UNREACHABLE);
    e->kind = (uint8_t)kind;
    e->answered_by = answered_by;
    if (!dial->is_repeated) {
        p->again[p->again_count++] = dial->endpoint;
    }
}

bool linkplan_is_over(const struct linkplan *p)
{
    return linkplan_is_complete(p) && p->in_flight == 0 &&
           (p->pass == GPUL_LINKS_MAX || p->node_count == 1) &&
           (p->rest_pass == GPUL_LINKS_MAX || p->node_count == 1) &&
           p->again_next == p->again_count;
}

/* ---- the report ---------------------------------------------------------- */

/* What kept this node from nodes that it has not reached at all comes first:
 * there is not room for everything. */
static void list_failures(Gpul__LinkReport *out, struct linkplan *p,
                          bool is_reached)
{
    for (uint32_t node = 0; node < p->node_count; node++) {
        if (p->is_reached[node] != is_reached) {
            continue;
        }
        for (uint32_t i = p->firsts[node]; i < p->firsts[node + 1]; i++) {
            if ((p->missed[i / BYTE_BITS] >> (i % BYTE_BITS) & 1u) == 0) {
                continue;
            }
            out->failure_count++;
            if (out->n_failures == GPUL_LINK_FAILURES_MAX) {
                continue;
            }
            Gpul__LinkFailure *f = &p->failures[out->n_failures];
            p->failure_list[out->n_failures++] = f;
            gpul__link_failure__init(f);
            f->node_rank = node;
            f->endpoint = i - p->firsts[node];
            f->kind = (Gpul__LinkFailure__Kind)p->endpoints[i].kind;
            f->answered_by = p->endpoints[i].answered_by;
        }
    }
}

void linkplan_fill(Gpul__LinkReport *out, struct linkplan *p)
{
    gpul__link_report__init(out);
    list_failures(out, p, false);
    list_failures(out, p, true);
    out->failures = p->failure_list;
    if (out->failure_count > 0) {
        out->missed.data = p->missed;
        out->missed.len =
            ((size_t)p->endpoint_count + BYTE_BITS - 1) / BYTE_BITS;
    }
    memset(p->nodes_from, 0, sizeof(p->nodes_from));
    for (uint32_t node = 0; node < p->node_count; node++) {
        for (uint32_t k = 0; k < p->own_count; k++) {
            p->nodes_from[k] += p->reached_from[node] >> k & 1u;
        }
    }
    out->reached_from = p->nodes_from;
    out->n_reached_from = p->own_count;
}
