/* SPDX-License-Identifier: Apache-2.0
 *
 * Training that hangs: what the nodes say of it becomes one report for the
 * user, and the end of the job if that was asked for.
 */
#include <signal.h>

#include "common/units.h"
#include "coordinator/core.h"

static void tell(struct rendezvous *r, const struct stalls_report *report)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__STALL;
    event.have = report->count;
    event.need = r->ranks_left;
    event.text = wire_text(report->text.bytes);
    event.ranks = wire_text(report->ranks.bytes);
    if (report->node != NULL) {
        event.node_name = wire_text(report->node->name);
        event.hostname = wire_text(node_hostname(report->node));
    }
    core_tell_event(r, &event);
}

static void tell_resumed(struct rendezvous *r, uint64_t silence_ms)
{
    char duration[UNITS_TEXT_BYTES];
    struct text text;
    Gpul__Event event = GPUL__EVENT__INIT;
    gpul_format_duration(duration, silence_ms);
    text_format(&text, "training goes on after %s", duration);
    event.kind = GPUL__EVENT__KIND__STALL;
    event.need = r->ranks_left;
    event.text = text.bytes;
    core_tell_event(r, &event);
}

void hang_stall(struct rendezvous *r, const struct node *node,
                const Gpul__Stall *stall)
{
    uint64_t silence_ms = 0;
    if (r->phase != PHASE_RUNNING || r->job.hang == GPUL__HANG__WATCH__OFF) {
        return;
    }
    for (size_t i = 0; i < stall->n_rows; i++) {
        const Gpul__StallRow *row = stall->rows[i];
        if (node_has_rank(node, row->rank) &&
            !running_has_ended(r, row->rank) &&
            stalls_take(&r->stalls, r->world_size, row, r->now_ms,
                        &silence_ms)) {
            tell_resumed(r, silence_ms);
        }
    }
    stalls_check(&r->stalls, r->ranks_left, r->now_ms);
}

/* The user has the report: the reason is a sentence of its own. A rank that
 * somebody has stopped may go on. */
static void stop(struct rendezvous *r, const struct stalls_report *report)
{
    if (report->are_all_stopped) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL,
                       "the job is not stopped, since all its ranks are "
                       "stopped by a signal");
        return;
    }
    outcome_decide(&r->outcome, OUTCOME_INFRASTRUCTURE, "hang", report->node,
                   "%s", report->verdict.bytes);
    ending_begin(r, SIGTERM);
}

/* Half a window: under a slow reader a node is never long without credit. */
void hang_hold(struct rendezvous *r, const struct node *node)
{
    if (node->uncredited_bytes >= r->job.window_bytes / 2) {
        stalls_hold(&r->stalls, r->now_ms);
    }
}

void hang_tick(struct rendezvous *r)
{
    struct stalls_report report;
    if (hang_due_ms(r) > r->now_ms) {
        return;
    }
    for (uint32_t i = 0; i < r->roster.count; i++) {
        hang_hold(r, &r->roster.nodes[i]);
    }
    if (stalls_put_off(&r->stalls, r->now_ms)) {
        return;
    }
    stalls_report(&r->stalls, &r->roster, r->ranks_left, r->now_ms, &report);
    tell(r, &report);
    if (r->job.hang_stops_job) {
        stop(r, &report);
    }
}

uint64_t hang_due_ms(const struct rendezvous *r)
{
    return r->phase == PHASE_RUNNING ? stalls_due_ms(&r->stalls) : NEVER_MS;
}
