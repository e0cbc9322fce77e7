/* SPDX-License-Identifier: Apache-2.0
 *
 * The trials between two nodes, docs/check.md: one probe for all of them. The
 * agent passes orders and results on, and kills a probe that does not keep its
 * time; the coordinator hears when it has ended.
 */
#include "worker/agent_internal.h"

/* Beyond what the probe was given: its own word comes first. */
enum { MARGIN_MS = 2000 };

static void give_time(struct agent *a, uint64_t ms)
{
    a->test.deadline_ms = a->now_ms + ms + MARGIN_MS;
}

bool agent_pair_start(struct agent *a, const Gpul__Frame *frame)
{
    if (a->state != AGENT_ASSIGNED || !world_is_complete(&a->world)) {
        return false;
    }
    a->test.idle_ms = frame->pair_start->idle_ms;
    a->test.is_ending = false;
    agent_probes_begin(a, (uint64_t)a->test.idle_ms + MARGIN_MS);
    Gpul__Frame copy = *frame;
    struct agent_action *action = agent_send(a, AGENT_START_PROBE, &copy);
    if (action != NULL) {
        agent_probe_begun(a, action, 0, AGENT_PROBE_PAIRS);
    }
    return true;
}

/* An order, or the end. A probe that has just failed may cross it. */
bool agent_pair_order(struct agent *a, const Gpul__Frame *frame)
{
    bool is_end = frame->body_case == GPUL__FRAME__BODY_PAIR_END;
    if (a->state != AGENT_PROBING) {
        return true;
    }
    if (a->test.kind != AGENT_PROBE_PAIRS || a->test.is_ending) {
        return false;
    }
    Gpul__Frame copy = *frame;
    agent_send(a, AGENT_SEND_PROBES, &copy);
    a->test.is_ending = is_end;
    give_time(a, is_end ? 0 : frame->trial_start->deadline_ms);
    return true;
}

void agent_pair_said(struct agent *a, const Gpul__Frame *frame)
{
    Gpul__Frame copy = *frame;
    agent_send(a, AGENT_SEND, &copy);
    if (!a->test.is_ending) {
        give_time(a, a->test.idle_ms);
    }
}

void agent_pair_ended(struct agent *a, const char *how)
{
    bool is_good = a->test.is_ending && !a->test.has_overrun;
    Gpul__PairEnd end;
    gpul__pair_end__init(&end);
    end.error = agent_text(is_good ? "" : how);
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PAIR_END;
    frame.pair_end = &end;
    agent_send(a, AGENT_SEND, &frame);
}
