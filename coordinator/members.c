/* SPDX-License-Identifier: Apache-2.0
 *
 * Which node has which place and address, for the front end, in pages.
 */
#include <assert.h>
#include <string.h>

#include "coordinator/core.h"

enum {
    /* A page must fit a frame whatever the names. */
    MEMBERS_BYTES_MAX = GPUL_FRAME_BYTES_MAX - 4096,
    MEMBER_FIXED_BYTES = 64,
    LINE_FIXED_BYTES = 4,
};

static bool is_told(const struct rendezvous *r, Gpul__Event__Kind kind,
                    uint32_t index)
{
    return kind != GPUL__EVENT__KIND__LINKS_FAILED ||
           r->links.nodes[index].is_involved;
}

/* Returns about how many bytes it takes. */
static size_t fill(Gpul__Member *out, const struct rendezvous *r,
                   Gpul__Event__Kind kind, uint32_t index)
{
    const struct node *node = &r->roster.nodes[index];
    size_t bytes = MEMBER_FIXED_BYTES + strlen(node->name) +
                   strlen(node->hostname) + strlen(node->address);
    gpul__member__init(out);
    out->node_name = wire_text(node->name);
    out->hostname = node->hostname;
    out->address = node->address;
    out->node_rank = index;
    out->first_rank = node->first_rank;
    out->rank_count = node->rank_count;
    out->gpus = node->gpus;
    if (kind == GPUL__EVENT__KIND__ASSIGNED) {
        return bytes;
    }
    const struct link_node *links = &r->links.nodes[index];
    const struct link_endpoint *chosen = links_chosen(&r->links, index);
    bool is_good = kind == GPUL__EVENT__KIND__LINKS && chosen != NULL;
    out->interface = wire_text(is_good ? link_name(chosen) : "");
    out->rejected = r->links.nodes[index].rejected;
    out->n_rejected = links->rejected_count;
    for (uint32_t i = 0; i < links->rejected_count; i++) {
        bytes += strlen(links->rejected[i]) + LINE_FIXED_BYTES;
    }
    return bytes;
}

/* Nodes first .. end-1 in one event; returns end. */
static uint32_t tell_page(struct rendezvous *r, Gpul__Event__Kind kind,
                          uint32_t first)
{
    Gpul__Member members[GPUL_MEMBERS_PAGE_MAX];
    Gpul__Member *pointers[GPUL_MEMBERS_PAGE_MAX];
    size_t bytes = 0;
    uint32_t n = 0;
    uint32_t end = first;
    while (n < GPUL_MEMBERS_PAGE_MAX && end < r->roster.count) {
        if (is_told(r, kind, end)) {
            bytes += fill(&members[n], r, kind, end);
            if (bytes > MEMBERS_BYTES_MAX) {
                break;
            }
            pointers[n] = &members[n];
            n++;
        }
        end++;
    }
    assert(end > first);
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = kind;
    event.have = end;
    event.need = r->roster.count;
    event.members = pointers;
    event.n_members = n;
    if (n > 0) {
        core_tell_event(r, &event);
    }
    return end;
}

void members_tell(struct rendezvous *r, Gpul__Event__Kind kind)
{
    for (uint32_t next = 0; next < r->roster.count;) {
        next = tell_page(r, kind, next);
    }
}
