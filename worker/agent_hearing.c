/* SPDX-License-Identifier: Apache-2.0
 *
 * What the probes of a self-test say, and what is seen of them. What others
 * wait for goes to the coordinator at once: an ID, a phase, an error.
 */
#include <stdio.h>

#include "worker/agent_internal.h"

static void relay(struct agent *a, const Gpul__Frame *frame)
{
    Gpul__Frame copy = *frame;
    agent_send(a, AGENT_SEND, &copy);
}

/* Text again and again is no progress: only a new phase is. */
static void on_phase(struct agent *a, uint32_t probe, const Gpul__Frame *frame)
{
    struct agent_probe *p = &a->test.probes[probe];
    Gpul__ProbePhase phase = *frame->probe_phase;
    phase.probe_rank = a->test.first_rank + probe;
    if (phase.phase > p->phase) {
        p->phase = phase.phase;
        agent_probes_renew(a, p->phase == GPUL__PROBE_PHASE__PHASE__INIT);
    }
    phase.stage = p->stage;
    p->waits = phase.state == GPUL__PROBE_PHASE__STATE__STATE_WAITS;
    if (p->is_halted) { /* it said this before */
        phase.state = GPUL__PROBE_PHASE__STATE__STATE_STOPPED;
    }
    Gpul__Frame copy = *frame;
    copy.probe_phase = &phase;
    agent_send(a, AGENT_SEND, &copy);
}

/* It goes with what the probe says of itself. */
void agent_probe_stage(struct agent *a, const struct agent_event *event)
{
    if (event->probe < AGENT_PROBES_MAX) {
        a->test.probes[event->probe].stage = event->stage;
    }
}

/* Which kinds of probe may say what. */
static bool may_say(enum agent_probe_kind kind, Gpul__Frame__BodyCase what)
{
    switch (what) {
    case GPUL__FRAME__BODY_PROBE_LISTENING:
        return kind == AGENT_PROBE_HOST;
    case GPUL__FRAME__BODY_PROBE_RESULT:
        return kind == AGENT_PROBE_HOST || kind == AGENT_PROBE_DEVICE;
    case GPUL__FRAME__BODY_PROBE_FACTS:
        return kind == AGENT_PROBE_SCOUT || kind == AGENT_PROBE_WATCH;
    case GPUL__FRAME__BODY_PROBE_ID:
        return kind == AGENT_PROBE_DEVICE;
    case GPUL__FRAME__BODY_SURVEY:
        return kind == AGENT_PROBE_SURVEY;
    case GPUL__FRAME__BODY_PROBE_PHASE: /* a scout's are of no phase */
        return kind == AGENT_PROBE_DEVICE || kind == AGENT_PROBE_SCOUT;
    case GPUL__FRAME__BODY_PAIR_LISTENING:
    case GPUL__FRAME__BODY_TRIAL_RESULT:
        return kind == AGENT_PROBE_PAIRS;
    default:
        return false;
    }
}

/* A stopped process cannot say so itself. */
void agent_probe_halted(struct agent *a, const struct agent_event *event)
{
    struct agent_selftest *t = &a->test;
    uint32_t probe = event->probe;
    if (a->state != AGENT_PROBING ||
        !may_say(t->kind, GPUL__FRAME__BODY_PROBE_PHASE) ||
        probe >= AGENT_PROBES_MAX || !t->probes[probe].is_alive) {
        return;
    }
    t->probes[probe].is_halted = event->signal != 0;
    Gpul__ProbePhase phase;
    gpul__probe_phase__init(&phase);
    phase.probe_rank = t->first_rank + probe;
    phase.phase = t->probes[probe].phase;
    phase.stage = t->probes[probe].stage;
    if (t->probes[probe].is_halted) {
        phase.state = GPUL__PROBE_PHASE__STATE__STATE_STOPPED;
    }
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    agent_send(a, AGENT_SEND, &frame);
}

static void keep_devices(struct agent *a, const Gpul__ProbeFacts *facts)
{
    struct agent_selftest *t = &a->test;
    t->device_count = 0;
    t->is_blind = !agent_clear_can_see(facts);
    for (size_t i = 0; i < facts->n_devices && i < AGENT_PROBES_MAX; i++) {
        const Gpul__Device *from = facts->devices[i];
        struct agent_device *to = &t->devices[t->device_count++];
        to->index = from->index;
        to->memory_used_bytes = from->memory_used_bytes;
        snprintf(to->uuid, sizeof(to->uuid), "%s", from->uuid);
    }
}

static void on_device_result(struct agent *a, uint32_t probe,
                             const Gpul__Frame *frame)
{
    struct agent_selftest *t = &a->test;
    Gpul__ProbeResult result = *frame->probe_result;
    result.probe_rank = t->first_rank + probe;
    result.device_uuid = t->devices[probe].uuid;
    Gpul__Frame copy = *frame;
    copy.probe_result = &result;
    if (result.error[0] == 0 && result.wrong_elements == 0) {
        agent_keep(a, &t->probes[probe].answer, &copy);
        return;
    }
    /* Its abort may take long, and needs the others to abort too. */
    t->has_failed = true;
    agent_send(a, AGENT_SEND, &copy);
}

/* The one answer that a probe is there for. */
static void on_answer(struct agent *a, uint32_t probe, const Gpul__Frame *frame)
{
    bool is_facts = frame->body_case == GPUL__FRAME__BODY_PROBE_FACTS;
    a->test.probes[probe].has_told = true;
    switch (a->test.kind) {
    case AGENT_PROBE_HOST:
    case AGENT_PROBE_SURVEY:
        agent_keep(a, &a->test.probes[probe].answer, frame);
        break;
    case AGENT_PROBE_SCOUT:
        keep_devices(a, frame->probe_facts);
        agent_keep(a, &a->test.probes[probe].answer, frame);
        break;
    case AGENT_PROBE_DEVICE:
        on_device_result(a, probe, frame);
        break;
    case AGENT_PROBE_WATCH:
        if (is_facts) {
            agent_clear_facts(a, frame->probe_facts);
        }
        break;
    case AGENT_PROBE_PAIRS: /* has many */
        break;
    }
}

void agent_probe_message(struct agent *a, const struct agent_event *event)
{
    const Gpul__Frame *frame = event->frame;
    uint32_t probe = event->probe;
    if ((a->state != AGENT_PROBING && a->state != AGENT_CLEARING) ||
        probe >= AGENT_PROBES_MAX || !a->test.probes[probe].is_alive ||
        a->test.probes[probe].has_told || frame->generation != a->generation ||
        !may_say(a->test.kind, frame->body_case)) {
        return;
    }
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_PROBE_LISTENING:
    case GPUL__FRAME__BODY_PROBE_ID:
        relay(a, frame);
        break;
    case GPUL__FRAME__BODY_PROBE_PHASE:
        on_phase(a, probe, frame);
        break;
    case GPUL__FRAME__BODY_PAIR_LISTENING:
    case GPUL__FRAME__BODY_TRIAL_RESULT:
        agent_pair_said(a, frame);
        break;
    default:
        on_answer(a, probe, frame);
    }
}
