/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes through: output and reports to the front end, credit and signals
 * to the nodes.
 */
#include "common/signals.h"
#include "common/units.h"
#include "coordinator/core.h"

/* A node that sends this many times its window ignores credit, and would
 * fill our memory. One is allowed; the slack is for differences of counting.
 */
enum { WINDOW_SLACK = 2 };

static void send_credit(struct rendezvous *r, const struct node *node,
                        uint64_t bytes)
{
    Gpul__Credit credit = GPUL__CREDIT__INIT;
    credit.node_rank = roster_index(&r->roster, node);
    credit.bytes = bytes;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_CREDIT;
    frame.credit = &credit;
    core_send(r, node, &frame);
}

void relay_output(struct rendezvous *r, struct node *node,
                  const Gpul__Output *output)
{
    uint64_t bytes = output->data.len;
    if (!node_has_rank(node, output->rank)) {
        return;
    }
    if (r->is_unheard || !r->job.forwards_output) {
        send_credit(r, node, bytes);
        return;
    }
    if (bytes > WINDOW_SLACK * r->job.window_bytes - node->uncredited_bytes) {
        peers_lose(r, node, "it sent more output than it has credit for");
        return;
    }
    node->uncredited_bytes += bytes;
    r->uncredited_bytes += bytes;
    Gpul__Output copy = *output;
    copy.node_rank = roster_index(&r->roster, node);
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &copy;
    core_tell(r, &frame);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void relay_credit(struct rendezvous *r, const Gpul__Credit *credit)
{
    if (credit->node_rank >= r->roster.count) {
        return;
    }
    struct node *node = &r->roster.nodes[credit->node_rank];
    /* What was sent first is written first. */
    uint64_t orphaned = smaller(credit->bytes, node->orphan_bytes);
    uint64_t bytes = smaller(credit->bytes - orphaned, node->uncredited_bytes);
    hang_hold(r, node);
    node->orphan_bytes -= orphaned;
    node->uncredited_bytes -= bytes;
    r->uncredited_bytes -= orphaned + bytes;
    if (bytes > 0) {
        send_credit(r, node, bytes);
    }
}

void relay_write_off(struct node *node)
{
    node->orphan_bytes += node->uncredited_bytes;
    node->uncredited_bytes = 0;
}

void relay_discard(struct rendezvous *r)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        if (node->uncredited_bytes > 0) {
            send_credit(r, node, node->uncredited_bytes);
            node->uncredited_bytes = 0;
        }
        node->orphan_bytes = 0;
    }
    r->uncredited_bytes = 0;
}

void relay_notice(struct rendezvous *r, struct node *node,
                  const Gpul__Notice *notice)
{
    if (notices_is_new(&r->notices, notice->text)) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, node, "%s", notice->text);
    }
}

void relay_env_report(struct rendezvous *r, struct node *node,
                      const Gpul__EnvReport *report)
{
    bool is_asked =
        r->job.reports_all_ranks || report->rank == r->job.report_rank;
    if (r->phase != PHASE_REPORTING || !is_asked ||
        !node_has_rank(node, report->rank)) {
        return;
    }
    Gpul__EnvReport copy = *report;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_ENV_REPORT;
    frame.env_report = &copy;
    core_tell(r, &frame);
    if (report->is_last) {
        running_reported(r, node, report->rank);
    }
}

bool relay_signal(struct rendezvous *r, uint32_t number)
{
    if (r->job.is_env ||
        (r->phase != PHASE_RUNNING && r->phase != PHASE_DRAINING)) {
        return false;
    }
    Gpul__Signal signal = GPUL__SIGNAL__INIT;
    signal.signal = number;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_SIGNAL;
    frame.signal = &signal;
    core_send_all(r, &frame);
    return true;
}

void relay_warning(struct rendezvous *r)
{
    char name[GPUL_SIGNAL_TEXT_BYTES], left[UNITS_TEXT_BYTES];
    char limit[UNITS_TEXT_BYTES];
    r->warning_at_ms = NEVER_MS;
    if (r->phase >= PHASE_DRAINING) {
        return;
    }
    gpul_format_signal(name, r->job.warning_signal);
    gpul_format_duration(left, r->job.warning_ms);
    gpul_format_duration(limit, r->job.timeout_ms);
    core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL,
                   relay_signal(r, r->job.warning_signal)
                       ? "%s was sent to all ranks: %s are left of the time "
                         "limit of %s"
                       : "%s was not sent, since no rank runs yet: %s are left "
                         "of the time limit of %s",
                   name, left, limit);
}
