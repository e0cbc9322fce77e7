/* SPDX-License-Identifier: Apache-2.0
 *
 * ASSIGNING: a new generation, its places given out, the ports of each node
 * reported back, the roster sent once the addresses stand (linking.c).
 */
#include <signal.h>

#include "coordinator/core.h"

/* What a node may send once it has a place. */
static uint64_t member_mask(const struct rendezvous *r)
{
    uint64_t mask = GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HEARTBEAT) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_NOTICE) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LEAVE) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_READY) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_EXITS) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_IDLE) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LINK_LISTENING) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LINK_REPORT);
    if (r->job.is_env) {
        return mask | GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_ENV_REPORT);
    }
    if (r->job.is_check) {
        mask |= GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_SURVEY) |
                GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_CLOCK_PONG) |
                GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_LISTENING) |
                GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_TRIAL_RESULT) |
                GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_END);
    }
    mask |= GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_OUTPUT) |
            GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_INPUT_CREDIT) |
            GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_STALL);
    if (r->job.self_test != GPUL__SELF_TEST__LEVEL__OFF) {
        mask |= GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_LISTENING) |
                GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_RESULT);
        if (r->job.backend != GPUL__SELF_TEST__BACKEND__BACKEND_HOST) {
            mask |= GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_FACTS) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_ID) |
                    GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_PHASE);
        }
    }
    return mask;
}

static void send_place(struct rendezvous *r, const struct node *node)
{
    Gpul__Assign assign = GPUL__ASSIGN__INIT;
    assign.restart_count = r->outcome.restarts;
    assign.avoid_ports = r->avoid_ports;
    assign.n_avoid_ports = r->avoid_count;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_ASSIGN;
    frame.assign = &assign;
    assign_fill(&assign, &r->roster, node, r->world_size);
    outbox_allow(&r->out, node->conn, member_mask(r));
    core_send(r, node, &frame);
}

static void send_places(struct rendezvous *r)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        node->is_idle = false;
        node->is_resuming = false;
        node->port_base = 0;
        node->probe_port = 0;
        send_place(r, node);
    }
}

void placing_repeat(struct rendezvous *r, const struct node *node)
{
    outbox_send_bytes(&r->out, node->conn, &r->job.frame);
    send_place(r, node);
}

/* Node and rank numbers; false: the job cannot go on, or the step failed. */
static bool find_places(struct rendezvous *r)
{
    struct gpul_error err = {0};
    int rc = assign_places(&r->roster, &r->world_size, &r->job, &err);
    if (rc == GPUL_ENOMEM) {
        outbox_fail(&r->out, rc, err.text);
        return false;
    }
    if (rc == GPUL_ENOTFOUND) {
        outcome_decide(&r->outcome, OUTCOME_CHECK_FAILED, "self_test_failed",
                       NULL, "%s", err.text);
    } else if (rc != 0 ||
               job_check_world(&r->job, &r->roles, r->world_size, &err) != 0) {
        outcome_decide(&r->outcome, OUTCOME_INTERNAL, "usage", NULL, "%s",
                       err.text);
    }
    return !r->outcome.is_decided;
}

void placing_begin(struct rendezvous *r, const char *why)
{
    /* A node keeps its ranks over generations. */
    if (r->generation == 0 && !find_places(r)) {
        if (r->outcome.is_decided) {
            ending_begin(r, 0);
        }
        return;
    }
    core_enter(r, PHASE_ASSIGNING, GPUL_READY_DEADLINE_MS, "%s", why);
    r->generation++;
    r->stop.signal = 0;
    r->is_launched = false;
    gputest_release(r); /* what an earlier generation has found out */
    links_release(&r->links);
    pairtest_release(&r->pairtest);
    core_await_all(r);
    if (r->generation == 1) {
        core_send_all_bytes(r, &r->job.frame);
    }
    send_places(r);
    members_tell(r, GPUL__EVENT__KIND__ASSIGNED);
}

static bool ports_are_valid(const struct node *node, uint32_t port_base)
{
    return port_base >= 1 && port_base <= UINT16_MAX &&
           node->rank_count + GPUL_EXTRA_PORTS <= UINT16_MAX + 1u - port_base;
}

static void send_roster(struct rendezvous *r)
{
    struct gpul_error err = {0};
    gpul_buf_release(&r->roster_frames);
    int rc = assign_encode_roster(&r->roster_frames, &r->roster,
                                  r->config.epoch, r->generation, &err);
    if (rc != 0) {
        outbox_fail(&r->out, rc, err.text);
        return;
    }
    core_send_all_bytes(r, &r->roster_frames);
}

void placing_ready(struct rendezvous *r, struct node *node,
                   const Gpul__Ready *ready)
{
    if (r->phase != PHASE_ASSIGNING || node->has_answered) {
        return;
    }
    const char *error = ready->error;
    if (error[0] == 0 && !ports_are_valid(node, ready->port_base)) {
        error = "the ports it leased are out of range";
    }
    if (error[0] != 0) {
        outcome_decide(&r->outcome, OUTCOME_CHECK_FAILED, "self_test_failed",
                       node, "node %s (%s) cannot take its place: %s",
                       node->name, node_hostname(node), error);
        ending_begin(r, SIGTERM);
        return;
    }
    node->port_base = ready->port_base;
    if (!core_answer(r, node)) {
        return;
    }
    if (r->job.is_check) {
        checking_survey(r, "every node is ready");
    } else {
        linking_begin(r, "every node is ready");
    }
}

void placing_announce(struct rendezvous *r, const char *why)
{
    send_roster(r);
    if (r->job.is_check) {
        pairphase_begin(r, why);
    } else {
        selftest_begin(r, why);
    }
}
