/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test: one probe over host memory; or a scout that looks at the
 * GPUs, and then one probe on each of them. docs/gpu-self-test.md tells the
 * story.
 *
 * What ends a wait for others goes to the coordinator at once: an ID, a
 * phase, an error. A good answer waits until its process has ended, since
 * only then is nothing of it left.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "worker/agent_internal.h"

enum {
    /* The probe over host memory and the scout keep their own deadlines;
     * this is for one that hangs. */
    MARGIN_MS = 2000,
    /* A probe on a device gives itself a moment more than its phase may
     * take, in which the coordinator is to say Stop; then it aborts. */
    DEVICE_MARGIN_MS = 7000,
    /* After the time that a probe has for its abort. */
    KILL_MARGIN_MS = 1000,
};

void agent_selftest_init(struct agent_selftest *t)
{
    t->deadline_ms = AGENT_NEVER;
    t->clear_deadline_ms = AGENT_NEVER;
    t->look_at_ms = AGENT_NEVER;
    gpul_buf_init(&t->scout_start,
                  GPUL_PROBE_BEGIN_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        gpul_buf_init(&t->probes[i].answer,
                      GPUL_PROBE_FACTS_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    }
}

void agent_selftest_release(struct agent_selftest *t)
{
    gpul_buf_release(&t->scout_start);
    for (uint32_t i = 0; i < AGENT_PROBES_MAX; i++) {
        gpul_buf_release(&t->probes[i].answer);
    }
}

/* ---- starting ------------------------------------------------------------ */

void agent_probe_begun(struct agent *a, struct agent_action *start,
                       uint32_t probe, enum agent_probe_kind kind)
{
    struct agent_probe *p = &a->test.probes[probe];
    start->probe = probe;
    start->kind = kind;
    p->is_alive = true;
    p->has_told = false;
    p->is_halted = false;
    p->waits = false;
    p->stage = 0;
    p->phase = GPUL__PROBE_PHASE__PHASE__NONE;
    gpul_buf_clear(&p->answer);
    a->test.kind = kind;
    a->test.alive++;
}

void agent_probes_begin(struct agent *a, uint64_t deadline_ms)
{
    struct agent_selftest *t = &a->test;
    agent_move(a, AGENT_PROBING);
    t->is_connected = false;
    t->has_overrun = false;
    t->has_failed = false;
    t->has_ids = false;
    t->is_stopped = false;
    t->deadline_ms = a->now_ms + deadline_ms;
}

bool agent_probe_start(struct agent *a, const Gpul__Frame *frame)
{
    const Gpul__ProbeStart *start = frame->probe_start;
    bool is_scout = start->backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    /* A probe on GPUs gets the environment of a rank, which the roster is
     * needed for. */
    if (a->state != AGENT_ASSIGNED || a->port_base == 0 ||
        (is_scout && !world_is_complete(&a->world))) {
        return false;
    }
    agent_probes_begin(a, (uint64_t)start->deadline_ms + MARGIN_MS);
    if (is_scout) {
        a->test.device_count = 0;
        a->test.scout_ms = start->deadline_ms;
        agent_keep(a, &a->test.scout_start, frame);
    }
    Gpul__Frame copy = *frame;
    struct agent_action *action = agent_send(a, AGENT_START_PROBE, &copy);
    if (action != NULL) {
        agent_probe_begun(a, action, 0,
                          is_scout ? AGENT_PROBE_SCOUT : AGENT_PROBE_HOST);
    }
    return true;
}

/* A probe that has just failed may cross this message: then it is late. */
bool agent_probe_connect(struct agent *a, const Gpul__Frame *frame)
{
    if (a->state != AGENT_PROBING) {
        return true;
    }
    if (a->test.kind != AGENT_PROBE_HOST) {
        return false;
    }
    Gpul__Frame copy = *frame;
    agent_send(a, AGENT_SEND_PROBES, &copy);
    a->test.is_connected = true;
    a->test.deadline_ms =
        a->now_ms + frame->probe_connect->deadline_ms + MARGIN_MS;
    return true;
}

/* Each phase but coll may last as long as two of them: what a probe waits
 * for may begin when the phase of another is almost over. */
void agent_probes_renew(struct agent *a, bool is_coll)
{
    struct agent_selftest *t = &a->test;
    uint64_t ms = is_coll ? t->coll_ms : 2 * (uint64_t)t->phase_ms;
    t->deadline_ms = a->now_ms + ms + t->abort_ms + DEVICE_MARGIN_MS;
}

/* That the other nodes reach this one by; "" if it is not known. */
static char *find_interface(const struct agent *a)
{
    const Gpul__Facts *facts = a->config.facts;
    const char *address = a->world.addresses.names[a->assign->node_rank];
    for (size_t i = 0; i < facts->n_interfaces; i++) {
        if (strcmp(facts->interfaces[i]->address, address) == 0) {
            return facts->interfaces[i]->name;
        }
    }
    return agent_text("");
}

static void start_on_device(struct agent *a, const Gpul__ProbeBegin *whole,
                            uint32_t i)
{
    Gpul__ProbeBegin begin = *whole;
    begin.first_rank += i;
    begin.rank_count = 1;
    begin.device_uuid = a->test.devices[i].uuid;
    begin.device_index = a->test.devices[i].index;
    begin.interface = find_interface(a);
    begin.debug_file =
        agent_text(a->job->log_dir[0] != 0 ? AGENT_NCCL_LOG : "");
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_BEGIN;
    frame.probe_begin = &begin;
    struct agent_action *action = agent_send(a, AGENT_START_PROBE, &frame);
    if (action != NULL) {
        agent_probe_begun(a, action, i, AGENT_PROBE_DEVICE);
        action->rank = begin.first_rank;
    }
}

bool agent_probe_begin(struct agent *a, const Gpul__Frame *frame)
{
    const Gpul__ProbeBegin *begin = frame->probe_begin;
    struct agent_selftest *t = &a->test;
    if (a->state != AGENT_ASSIGNED || begin->rank_count > t->device_count) {
        return false;
    }
    t->first_rank = begin->first_rank;
    t->phase_ms = begin->self_test->listen_deadline_ms;
    t->coll_ms = begin->self_test->run_deadline_ms;
    t->abort_ms = begin->abort_deadline_ms;
    agent_probes_begin(a, 0);
    agent_probes_renew(a, false);
    for (uint32_t i = 0; i < begin->rank_count; i++) {
        start_on_device(a, begin, i);
    }
    return true;
}

/* As with ProbeConnect, the probes may all have failed meanwhile. */
bool agent_probe_ids(struct agent *a, const Gpul__Frame *frame)
{
    if (a->state != AGENT_PROBING) {
        return true;
    }
    if (a->test.kind != AGENT_PROBE_DEVICE || a->test.has_ids) {
        return false;
    }
    Gpul__Frame copy = *frame;
    agent_send(a, AGENT_SEND_PROBES, &copy);
    a->test.has_ids = true;
    return true;
}

/* ---- the end of a probe -------------------------------------------------- */

/* The phase that a probe on a device was in. */
static const char *phase_name(const struct agent *a, uint32_t probe)
{
    switch (a->test.probes[probe].phase) {
    case GPUL__PROBE_PHASE__PHASE__NONE:
        return "cuda";
    case GPUL__PROBE_PHASE__PHASE__CUDA:
        return a->test.has_ids ? "init" : "uid";
    case GPUL__PROBE_PHASE__PHASE__INIT:
        return "coll";
    default:
        return "end";
    }
}

static void send_result(struct agent *a, uint32_t probe, const char *why)
{
    struct agent_selftest *t = &a->test;
    Gpul__ProbeResult result;
    gpul__probe_result__init(&result);
    result.error = agent_text(why);
    if (t->kind == AGENT_PROBE_HOST) {
        result.phase = agent_text(t->is_connected ? "coll" : "init");
    } else {
        result.phase = agent_text(phase_name(a, probe));
        result.probe_rank = t->first_rank + probe;
        result.device_uuid = t->devices[probe].uuid;
        /* All are killed for the one that hangs. */
        result.is_remote = t->has_overrun && t->probes[probe].waits &&
                           !t->probes[probe].is_halted;
        t->has_failed = true;
    }
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    agent_send(a, AGENT_SEND, &frame);
}

static void send_no_facts(struct agent *a, const char *why)
{
    char text[GPUL_TEXT_BYTES_MAX];
    snprintf(text, sizeof(text),
             "the process that looks at the GPUs failed: %s", why);
    Gpul__Library unknown = GPUL__LIBRARY__INIT;
    Gpul__ProbeFacts facts;
    gpul__probe_facts__init(&facts);
    facts.error = text;
    facts.nccl = facts.cuda = facts.nvml = &unknown;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &facts;
    agent_send(a, AGENT_SEND, &frame);
}

static void report(struct agent *a, uint32_t probe, const char *how)
{
    struct agent_probe *p = &a->test.probes[probe];
    if (p->answer.used > 0) {
        agent_send_bytes(a, AGENT_SEND, &p->answer);
        gpul_buf_clear(&p->answer);
        return;
    }
    if (p->has_told) {
        return;
    }
    if (a->test.has_overrun) {
        how = "it did not end in time and was killed";
    }
    if (a->test.kind == AGENT_PROBE_SCOUT) {
        send_no_facts(a, how);
    } else if (a->test.kind == AGENT_PROBE_PAIRS) {
        agent_pair_ended(a, how);
    } else if (a->test.kind == AGENT_PROBE_SURVEY) {
        agent_survey_failed(a, how);
    } else {
        send_result(a, probe, how);
    }
}

void agent_probe_ended(struct agent *a, const struct agent_event *event)
{
    struct agent_selftest *t = &a->test;
    uint32_t probe = event->probe;
    if (probe >= AGENT_PROBES_MAX || !t->probes[probe].is_alive) {
        return;
    }
    t->probes[probe].is_alive = false;
    t->alive--;
    if (t->alive == 0) {
        t->deadline_ms = AGENT_NEVER;
        a->abandon_at_ms = AGENT_NEVER;
    }
    agent_add_unclean(a, event->unclean, event->unclean_count);
    if (a->state == AGENT_CLEARING) {
        agent_clear_looked(a, event->text);
    } else if (a->state == AGENT_PROBING) {
        report(a, probe, event->text);
        if (t->alive == 0 && t->kind == AGENT_PROBE_DEVICE && !t->has_failed) {
            agent_clear_begin(a);
        } else if (t->alive == 0) {
            agent_move(a, AGENT_ASSIGNED);
        }
    }
}

/* ---- stopping ------------------------------------------------------------ */

static void send_stop(struct agent *a)
{
    Gpul__Stop stop;
    gpul__stop__init(&stop);
    stop.signal = SIGTERM;
    stop.grace_ms = a->test.abort_ms;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_STOP;
    frame.stop = &stop;
    agent_send(a, AGENT_SEND_PROBES, &frame);
}

static void kill_probes(struct agent *a)
{
    agent_emit(a, AGENT_KILL_PROBES);
    a->test.deadline_ms = AGENT_NEVER;
    a->abandon_at_ms =
        agent_earlier(a->abandon_at_ms, a->now_ms + AGENT_GIVE_UP_MS);
}

void agent_stop_probes(struct agent *a, bool at_once)
{
    struct agent_selftest *t = &a->test;
    if (t->kind != AGENT_PROBE_DEVICE || at_once) {
        kill_probes(a);
    } else if (!t->is_stopped && a->abandon_at_ms == AGENT_NEVER) {
        t->is_stopped = true;
        send_stop(a);
        t->deadline_ms = a->now_ms + t->abort_ms + KILL_MARGIN_MS;
    }
}

void agent_probes_tick(struct agent *a)
{
    if (agent_is_due(a, &a->test.deadline_ms)) {
        a->test.has_overrun = true;
        kill_probes(a);
    }
    agent_clear_tick(a);
}
