/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakenode.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/fakecheck.h"
#include "tests/lib/fakeinput.h"
#include "tests/lib/fakelinks.h"
#include "tests/lib/fakepairs.h"
#include "tests/lib/fakeprobes.h"
#include "tests/lib/fakeranks.h"

enum { REDIAL_MS = 20, BACKLOG_MS = 1 };

static struct fake_node *node_of(struct cluster *c, uint32_t index)
{
    return &c->nodes[index];
}

Gpul__Frame fake_frame(const struct fake_node *node)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = 1;
    frame.generation = node->generation;
    return frame;
}

void fake_send(struct cluster *c, const struct fake_node *node,
               const Gpul__Frame *frame)
{
    if (node->link != NULL) {
        cluster_send(c, node->link, frame);
    }
}

/* ---- joining ---- */

static void send_hello(struct cluster *c, struct fake_node *node)
{
    Gpul__Facts facts = GPUL__FACTS__INIT;
    facts.hostname = wire_text(node->hostname);
    facts.boot_id = wire_text(node->boot_id);
    facts.address = wire_text(node->address);
    facts.cores = 1;
    facts.gpus = node->gpus;
    facts.network_namespace = node->network_namespace;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    hello.protocol_min = node->protocol_min;
    hello.protocol_max = node->protocol_max;
    hello.version = wire_text("0.1.0");
    hello.job_id = wire_text(node->job_id);
    hello.node_name = wire_text(node->name);
    hello.instance = node->instance;
    hello.facts = &facts;
    hello.attach = node->attach;
    hello.held_generation = node->held_generation;
    hello.held_attempt = node->held_generation;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    fake_send(c, node, &frame);
}

void fake_dial(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    if (node->state != FAKE_AWAY || node->is_mute || node->is_dead) {
        return;
    }
    node->link = cluster_connect(c, index);
    if (node->link == NULL) {
        if (!c->is_finished) {
            cluster_plan(c, SIM_DIAL, index, 0, 0, BACKLOG_MS);
        }
        return;
    }
    node->state = FAKE_HELLO;
    send_hello(c, node);
}

static void leave(struct fake_node *node)
{
    node->state = FAKE_AWAY;
    node->link = NULL;
    node->generation = 0;
    node->ranks_alive = 0;
    node->rank_alive = 0;
    node->held_generation = 0;
}

void fake_closed(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    bool is_early = node->state == FAKE_HELLO || node->state == FAKE_MEMBER;
    bool comes_back = node->redials && is_early && node->generation == 0 &&
                      node->refusal == 0;
    leave(node);
    if (comes_back) {
        node->instance += 1000000;
        node->attach = 0;
        cluster_plan(c, SIM_DIAL, index, 0, 0, REDIAL_MS);
    }
}

void fake_die(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    struct sim_link *link = node->link;
    if (link == NULL) {
        node->is_mute = true; /* and will not dial */
    } else if (node->dies_silently) {
        node->is_mute = true;
    } else {
        cluster_hang_up(c, link);
        fake_closed(c, index);
    }
}

/* ---- running ---- */

static void report_environment(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    Gpul__EnvEntry entry = GPUL__ENV_ENTRY__INIT;
    Gpul__EnvEntry *list = &entry;
    entry.name.data = (uint8_t *)(uintptr_t) "RANK";
    entry.name.len = 4;
    entry.action = GPUL__ENV_ENTRY__ACTION__SET;
    Gpul__EnvReport report = GPUL__ENV_REPORT__INIT;
    report.entries = &list;
    report.n_entries = 1;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_ENV_REPORT;
    frame.env_report = &report;
    for (uint32_t i = 0; i < node->rank_count; i++) {
        report.rank = node->first_rank + i;
        report.is_last = false;
        fake_send(c, node, &frame);
        report.is_last = true;
        fake_send(c, node, &frame);
    }
    node->state = FAKE_RUNNING;
    cluster_plan(c, SIM_NODE_TIMER, index, FAKE_IDLE, node->generation, 1);
}

static void say_notice(struct cluster *c, struct fake_node *node,
                       const char *text)
{
    if (text != NULL) {
        Gpul__Notice notice = GPUL__NOTICE__INIT;
        notice.text = wire_text(text);
        Gpul__Frame frame = fake_frame(node);
        frame.body_case = GPUL__FRAME__BODY_NOTICE;
        frame.notice = &notice;
        fake_send(c, node, &frame);
    }
}

static void launch(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    say_notice(c, node, node->notice);
    if (node->is_stale && node->generation > 1) {
        struct rank_plan fate = {.code = 5};
        node->generation--;
        fake_send_exit(c, node, node->first_rank, &fate);
        node->generation++;
    }
    if (c->job.mode != GPUL__JOB__MODE__ENV) {
        fake_ranks_launch(c, index);
    } else if (!node->never_reports) {
        report_environment(c, index);
    }
}

/* ---- messages ---- */

static void take_place(struct cluster *c, uint32_t index,
                       const Gpul__Frame *frame)
{
    struct fake_node *node = node_of(c, index);
    bool is_held = node->held_generation == frame->generation;
    if ((node->ranks_alive > 0 && !is_held) || node->state != FAKE_MEMBER) {
        fprintf(stderr, "%s: a second generation while one lives\n",
                node->name);
        abort();
    }
    node->state = FAKE_ASSIGNED;
    node->generation = frame->generation;
    node->node_rank = frame->assign->node_rank;
    node->first_rank = frame->assign->first_rank;
    node->rank_count = frame->assign->rank_count;
    if (!node->never_ready) {
        cluster_plan(c, SIM_NODE_TIMER, index, FAKE_READY, node->generation,
                     node->ready_ms);
    }
}

static void stop(struct cluster *c, uint32_t index, const Gpul__Stop *message)
{
    struct fake_node *node = node_of(c, index);
    if (node->state == FAKE_MEMBER) {
        return; /* idle already */
    }
    node->state = FAKE_STOPPING;
    node->stop_signal = message->signal;
    bool is_kill = message->signal == SIGKILL;
    cluster_plan(c, SIM_NODE_TIMER, index,
                 node->ranks_alive > 0 ? FAKE_STOPPED : FAKE_IDLE,
                 node->generation, is_kill ? 1 : node->stop_ms);
}

static void plan_answer(struct cluster *c, uint32_t index, bool never,
                        enum fake_timer timer, uint64_t after_ms)
{
    if (!never) {
        cluster_plan(c, SIM_NODE_TIMER, index, timer,
                     node_of(c, index)->generation, after_ms);
    }
}

static void start_probe(struct cluster *c, uint32_t index,
                        const Gpul__ProbeStart *start)
{
    struct fake_node *node = node_of(c, index);
    if (start->backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL) {
        plan_answer(c, index, node->never_facts && node->scout_state == 0,
                    FAKE_FACTS, node->listen_ms);
    } else {
        plan_answer(c, index, node->never_listens, FAKE_LISTENING,
                    node->listen_ms);
    }
}

/* It knows nothing of having been let in. */
static void lose_welcome(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    cluster_hang_up(c, node->link);
    node->link = NULL;
    node->state = FAKE_AWAY;
    cluster_plan(c, SIM_DIAL, index, 0, 0, REDIAL_MS);
}

void fake_message(struct cluster *c, uint32_t index, const Gpul__Frame *frame)
{
    struct fake_node *node = node_of(c, index);
    if (frame->body_case == node->dies_at) {
        node->dies_at = 0;
        fake_die(c, index);
        return;
    }
    if (frame->generation < node->generation) {
        return;
    }
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_WELCOME:
        if (node->loses_welcome > 0 && --node->loses_welcome == 0) {
            lose_welcome(c, index);
            return;
        }
        node->state = FAKE_MEMBER;
        plan_answer(c, index, false, FAKE_BEAT, frame->welcome->heartbeat_ms);
        return;
    case GPUL__FRAME__BODY_REFUSE:
        node->refusal = frame->refuse->reason;
        return;
    case GPUL__FRAME__BODY_ASSIGN:
        take_place(c, index, frame);
        return;
    case GPUL__FRAME__BODY_SURVEY_START:
        plan_answer(c, index, node->never_surveys, FAKE_SURVEY,
                    node->survey_ms);
        return;
    case GPUL__FRAME__BODY_CLOCK_PING:
        if (!node->never_pongs) {
            fake_pong(c, index, frame->clock_ping);
        }
        return;
    case GPUL__FRAME__BODY_LINK_START:
        plan_answer(c, index, node->never_links, FAKE_LINKS, node->listen_ms);
        return;
    case GPUL__FRAME__BODY_LINK_PEERS:
        plan_answer(c, index,
                    node->never_dials_links ||
                        frame->link_peers->page + 1 <
                            frame->link_peers->page_count,
                    FAKE_DIALED, node->probe_ms);
        return;
    case GPUL__FRAME__BODY_PAIR_START:
        plan_answer(c, index, node->never_pairs, FAKE_PAIRS, node->listen_ms);
        return;
    case GPUL__FRAME__BODY_TRIAL_START:
        fake_pairs_order(c, index, frame->trial_start);
        return;
    case GPUL__FRAME__BODY_PAIR_END:
        plan_answer(c, index, node->never_ends_pairs, FAKE_PAIRS_OVER,
                    node->listen_ms);
        return;
    case GPUL__FRAME__BODY_PROBE_START:
        start_probe(c, index, frame->probe_start);
        return;
    case GPUL__FRAME__BODY_PROBE_BEGIN:
        fake_probes_begin(c, index, frame->probe_begin);
        return;
    case GPUL__FRAME__BODY_PROBE_IDS:
        fake_probes_connect(c, index, frame->probe_ids);
        return;
    case GPUL__FRAME__BODY_PROBE_CONNECT:
        plan_answer(c, index, node->never_results, FAKE_RESULT, node->probe_ms);
        return;
    case GPUL__FRAME__BODY_LAUNCH:
        launch(c, index);
        return;
    case GPUL__FRAME__BODY_STOP:
        stop(c, index, frame->stop);
        return;
    case GPUL__FRAME__BODY_CREDIT:
        node->credit_bytes += frame->credit->bytes;
        return;
    case GPUL__FRAME__BODY_INPUT:
        fake_input(c, index, frame->input);
        return;
    case GPUL__FRAME__BODY_SIGNAL:
        node->last_signal = frame->signal->signal;
        return;
    case GPUL__FRAME__BODY_FINISH:
        say_notice(c, node, node->goodbye);
        cluster_hang_up(c, node->link);
        leave(node);
        return;
    default:
        return;
    }
}

/* ---- timers ---- */

static void send_ready(struct cluster *c, struct fake_node *node)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    ready.port_base = 20000;
    if (node->ready_error != NULL) {
        ready.error = wire_text(node->ready_error);
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    fake_send(c, node, &frame);
}

static void send_listening(struct cluster *c, struct fake_node *node)
{
    Gpul__ProbeListening listening = GPUL__PROBE_LISTENING__INIT;
    listening.address = wire_text(node->address);
    listening.port = 30000;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    fake_send(c, node, &frame);
}

static void send_result(struct cluster *c, struct fake_node *node)
{
    Gpul__ProbeRow row = GPUL__PROBE_ROW__INIT;
    Gpul__ProbeRow *rows = &row;
    row.bytes = 1 << 20;
    row.count = 1 << 18;
    row.iterations = 5;
    row.min_ns = node->probe_ns / 2;
    row.median_ns = node->probe_ns;
    row.max_ns = node->probe_ns * 2;
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    result.rows = &rows;
    result.n_rows = 1;
    result.phase = wire_text("coll");
    result.wrong_elements = node->wrong_elements;
    result.first_wrong_offset = node->wrong_elements > 0 ? 4711 : 0;
    result.first_wrong_bytes = node->wrong_elements > 0 ? row.bytes : 0;
    if (node->probe_error != NULL) {
        result.error = wire_text(node->probe_error);
        result.is_remote = node->probe_is_remote;
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    fake_send(c, node, &frame);
    if (node->probe_repents) {
        result.error = wire_text("");
        fake_send(c, node, &frame);
    }
}

static void send_idle(struct cluster *c, struct fake_node *node)
{
    Gpul__Idle idle = GPUL__IDLE__INIT;
    char *unclean = wire_text(node->unclean);
    if (unclean != NULL) {
        idle.unclean = &unclean;
        idle.n_unclean = 1;
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    node->state = FAKE_MEMBER;
    fake_send(c, node, &frame);
}

static void beat(struct cluster *c, uint32_t index)
{
    struct fake_node *node = node_of(c, index);
    Gpul__Heartbeat heartbeat = GPUL__HEARTBEAT__INIT;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT;
    frame.heartbeat = &heartbeat;
    fake_send(c, node, &frame);
    cluster_plan(c, SIM_NODE_TIMER, index, FAKE_BEAT, 0, GPUL_HEARTBEAT_MS);
}

void fake_timer(struct cluster *c, uint32_t index, enum fake_timer timer,
                uint32_t generation)
{
    struct fake_node *node = node_of(c, index);
    if (node->state == FAKE_AWAY || node->is_mute) {
        return;
    }
    if (timer == FAKE_BEAT) {
        beat(c, index);
        return;
    }
    bool is_busy = node->state == FAKE_RUNNING || node->state == FAKE_STOPPING;
    if (generation != node->generation ||
        (node->state != FAKE_ASSIGNED && !is_busy)) {
        return;
    }
    if (timer == FAKE_STOPPED) {
        fake_ranks_stop(c, index);
    } else if (timer == FAKE_INPUT && is_busy) {
        fake_input_take(c, index);
    } else if (timer == FAKE_IDLE && is_busy && !node->never_idle &&
               node->ranks_alive == 0) {
        send_idle(c, node);
    } else if (node->state != FAKE_ASSIGNED) {
        return; /* stopped meanwhile */
    } else if (timer == FAKE_READY) {
        send_ready(c, node);
    } else if (timer == FAKE_SURVEY) {
        fake_survey(c, index);
    } else if (timer == FAKE_LINKS) {
        fake_links_listen(c, index);
    } else if (timer == FAKE_DIALED) {
        fake_links_report(c, index);
    } else if (timer == FAKE_PAIRS) {
        fake_pairs_listen(c, index);
    } else if (timer == FAKE_TRIAL) {
        fake_pairs_tell(c, index);
    } else if (timer == FAKE_PAIRS_OVER) {
        fake_pairs_end(c, index);
    } else if (timer == FAKE_FACTS && node->never_facts) {
        fake_scout_hang(c, index);
        plan_answer(c, index, false, FAKE_FACTS, SAY_EVERY_MS);
    } else if (timer == FAKE_FACTS) {
        fake_scout(c, index);
    } else if (timer == FAKE_LISTENING) {
        send_listening(c, node);
    } else if (timer == FAKE_RESULT) {
        send_result(c, node);
    }
}
