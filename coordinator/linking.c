/* SPDX-License-Identifier: Apache-2.0
 *
 * LINKS and DIALING: every node says where it listens, all of them dial each
 * other, and each gets the address that it was reached by. docs/links.md.
 *
 * Happy path: linking_begin -> linking_listening of each node ->
 * linking_report of each node -> placing_announce.
 */
#include <signal.h>

#include "coordinator/core.h"

static void out_of_memory(struct rendezvous *r)
{
    outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for addresses");
}

/* The bound of each of the two phases, and what the nodes are given of it. */
uint32_t linking_bound_ms(const struct rendezvous *r)
{
    return r->job.listen_deadline_ms > 0 ? r->job.listen_deadline_ms
                                         : GPUL_READY_DEADLINE_MS;
}

static uint32_t node_bound_ms(const struct rendezvous *r)
{
    uint32_t bound_ms = linking_bound_ms(r);
    uint32_t half_ms = bound_ms / 2;
    return bound_ms - (half_ms < PROBE_SLACK_MS ? half_ms : PROBE_SLACK_MS);
}

/* Ranks that are started again keep the addresses that they had. */
static bool is_wanted(const struct rendezvous *r)
{
    return r->launches == 0 && (r->roster.is_spread || r->job.wants_interface);
}

void linking_begin(struct rendezvous *r, const char *why)
{
    if (!is_wanted(r)) {
        placing_announce(r, why);
        return;
    }
    core_enter(r, PHASE_LINKS, linking_bound_ms(r), "%s", why);
    core_await_all(r);
    links_release(&r->links);
    if (links_init(&r->links, r->roster.count) != 0) {
        out_of_memory(r);
        return;
    }
    Gpul__LinkStart start = GPUL__LINK_START__INIT;
    start.token = selftest_token(r);
    start.deadline_ms = node_bound_ms(r);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_LINK_START;
    frame.link_start = &start;
    core_send_all(r, &frame);
}

static void fail(struct rendezvous *r, const struct node *node,
                 const struct text *why)
{
    if (r->job.is_check) {
        checking_unlinked(r, node, why->bytes);
        return;
    }
    outcome_decide(&r->outcome, OUTCOME_CHECK_FAILED, "links_failed", node,
                   "%s", why->bytes);
    ending_begin(r, SIGTERM);
}

static void start_dials(struct rendezvous *r)
{
    struct gpul_error err = {0};
    int rc = links_encode(&r->links, r->config.epoch, r->generation,
                          node_bound_ms(r), &err);
    if (rc != 0) {
        outbox_fail(&r->out, rc, err.text);
        return;
    }
    core_enter(r, PHASE_DIALING, linking_bound_ms(r),
               "every node has told where it "
               "listens");
    core_await_all(r);
    core_send_all_bytes(r, &r->links.frames);
}

void linking_listening(struct rendezvous *r, struct node *node,
                       const Gpul__LinkListening *listening)
{
    uint32_t node_rank = roster_index(&r->roster, node);
    if (r->phase != PHASE_LINKS || node->has_answered) {
        return;
    }
    if (links_add(&r->links, node_rank, node->address, listening) != 0) {
        out_of_memory(r);
    } else if (listening->error[0] != 0) {
        struct text why;
        text_format(&why, "node %s (%s) has no address for the others: %s",
                    node->name, node_hostname(node), listening->error);
        r->links.nodes[node_rank].is_involved = true;
        members_tell(r, GPUL__EVENT__KIND__LINKS_FAILED);
        fail(r, node, &why);
    } else if (core_answer(r, node)) {
        start_dials(r);
    }
}

/* Every node's own, from now on. */
static int take_addresses(struct rendezvous *r)
{
    int rc = links_list_candidates(&r->links);
    for (uint32_t i = 0; i < r->roster.count && rc == 0; i++) {
        const struct link_endpoint *e = links_chosen(&r->links, i);
        if (e != NULL) {
            rc = roster_set_address(&r->roster.nodes[i], e->address);
        }
    }
    return rc;
}

static void conclude(struct rendezvous *r)
{
    bool is_good = links_choose(&r->links);
    if (is_good && take_addresses(r) == 0) {
        members_tell(r, GPUL__EVENT__KIND__LINKS);
        links_release(&r->links);
        placing_announce(r, "every node was reached by all others");
    } else if (is_good || links_list_candidates(&r->links) != 0) {
        out_of_memory(r);
    } else {
        struct text why;
        links_explain(&r->links, &why, &r->roster);
        members_tell(r, GPUL__EVENT__KIND__LINKS_FAILED);
        fail(r, NULL, &why);
    }
}

void linking_report(struct rendezvous *r, struct node *node,
                    const Gpul__LinkReport *report)
{
    if (r->phase != PHASE_DIALING || node->has_answered) {
        return;
    }
    int rc = links_report(&r->links, roster_index(&r->roster, node), report);
    if (rc == GPUL_EPROTO) {
        peers_lose(r, node, "it reported on addresses that there are not");
    } else if (rc != 0) {
        out_of_memory(r);
    } else if (core_answer(r, node)) {
        conclude(r);
    }
}
