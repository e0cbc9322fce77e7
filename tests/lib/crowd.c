/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "proto/limits.h"

static uint32_t body_case(const uint8_t *bytes)
{
    /* The key of the first field: number and wire type 2, as a varint. */
    const uint8_t *key = bytes + GPUL_FRAME_PREFIX_BYTES;
    uint32_t value = key[0] & 0x7fu;
    value |= (key[0] & 0x80u) != 0 ? (uint32_t)(key[1] & 0x7fu) << 7 : 0;
    return value >> 3;
}

static size_t frame_bytes(const uint8_t *bytes)
{
    return GPUL_FRAME_PREFIX_BYTES + ((size_t)bytes[0] << 24 |
                                      (size_t)bytes[1] << 16 |
                                      (size_t)bytes[2] << 8 | (size_t)bytes[3]);
}

static Gpul__Frame *decode(const uint8_t *bytes, enum gpul_peer from)
{
    Gpul__Frame *frame;
    assert_int_equal(
        gpul_message_decode(&frame, bytes + GPUL_FRAME_PREFIX_BYTES,
                            frame_bytes(bytes) - GPUL_FRAME_PREFIX_BYTES, from,
                            NULL),
        0);
    return frame;
}

/* Connection numbers are node numbers here. */
static void look_at_assign(struct crowd *c,
                           const struct rendezvous_action *action)
{
    if (body_case(action->bytes) == GPUL__FRAME__BODY_ASSIGN) {
        Gpul__Frame *frame = decode(action->bytes, GPUL_PEER_COORDINATOR);
        c->first_ranks[action->conn] = frame->assign->first_rank;
        assert_int_equal(frame->assign->rank_count, c->ranks_per_node);
        gpul_message_release(frame);
    }
}

static void look_at_told(struct crowd *c,
                         const struct rendezvous_action *action)
{
    c->told_bytes += action->byte_count;
    if (body_case(action->bytes) == GPUL__FRAME__BODY_JOB_END) {
        Gpul__Frame *frame = decode(action->bytes, GPUL_PEER_DESK);
        c->exit_code = frame->job_end->exit_code;
        c->job_ends++;
        gpul_message_release(frame);
    }
}

static void look_at_sent(struct crowd *c,
                         const struct rendezvous_action *action,
                         size_t receivers)
{
    size_t n;
    for (size_t at = 0; at < action->byte_count; at += n) {
        n = frame_bytes(action->bytes + at);
        c->sends[body_case(action->bytes + at)] += (uint32_t)receivers;
    }
    c->sent_bytes += action->byte_count * receivers;
}

static void look_at(struct crowd *c, const struct rendezvous_action *action)
{
    switch (action->kind) {
    case RENDEZVOUS_SEND:
        look_at_assign(c, action);
        look_at_sent(c, action, 1);
        return;
    case RENDEZVOUS_SEND_MANY:
        look_at_sent(c, action, action->conn_count);
        return;
    case RENDEZVOUS_SEND_OPERATOR:
        look_at_told(c, action);
        return;
    case RENDEZVOUS_FINISH:
        c->is_finished = true;
        return;
    default:
        return;
    }
}

static void step(struct crowd *c, struct rendezvous_event event)
{
    struct rendezvous_actions actions;
    event.now_ms = c->now_ms;
    assert_int_equal(rendezvous_step(c->core, &actions, &event, NULL), 0);
    for (size_t i = 0; i < actions.count; i++) {
        look_at(c, &actions.items[i]);
    }
}

void crowd_say(struct crowd *c, uint32_t node, Gpul__Frame *frame)
{
    frame->epoch = frame->body_case == GPUL__FRAME__BODY_HELLO ? 0 : 1;
    frame->generation = frame->epoch;
    step(c, (struct rendezvous_event){
                .kind = RENDEZVOUS_PEER_MESSAGE, .conn = node, .frame = frame});
}

/* Every node does the same, in a new order. */
void crowd_everybody(struct crowd *c, void (*act)(struct crowd *, uint32_t))
{
    for (uint32_t i = c->node_count; i > 1; i--) {
        uint32_t other = (uint32_t)gpul_rng_below(&c->rng, i);
        uint32_t held = c->order[i - 1];
        c->order[i - 1] = c->order[other];
        c->order[other] = held;
    }
    c->now_ms += 100;
    for (uint32_t i = 0; i < c->node_count; i++) {
        act(c, c->order[i]);
    }
}

/* Eight nodes a host, each host with an address of its own. */
void crowd_join(struct crowd *c, uint32_t node)
{
    char name[32];
    char host[32];
    char address[32];
    uint32_t number = node / 8;
    snprintf(name, sizeof(name), "node%u", node);
    snprintf(host, sizeof(host), "host%u", number);
    snprintf(address, sizeof(address), "10.%u.%u.%u", number >> 16,
             number >> 8 & 255u, number & 255u);
    Gpul__Facts facts = GPUL__FACTS__INIT;
    facts.hostname = host;
    facts.boot_id = wire_text("6a9c9e43-6b51-4d2f-9b5e-6fd8d1b8a1c0");
    facts.address = address;
    facts.gpus = c->has_gpus ? c->ranks_per_node : 0;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    hello.protocol_min = GPUL_PROTOCOL_MIN;
    hello.protocol_max = GPUL_PROTOCOL;
    hello.job_id = wire_text("job");
    hello.node_name = name;
    hello.facts = &facts;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    step(c, (struct rendezvous_event){
                .kind = RENDEZVOUS_PEER_OPENED, .conn = node, .text = address});
    crowd_say(c, node, &frame);
}

void crowd_get_ready(struct crowd *c, uint32_t node)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    ready.port_base = 10000 + node % 8 * 100;
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    crowd_say(c, node, &frame);
}

void crowd_start_listening(struct crowd *c, uint32_t node)
{
    Gpul__ProbeListening listening = GPUL__PROBE_LISTENING__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    listening.address = wire_text("10.0.0.1");
    listening.port = 30000 + node % 8;
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    crowd_say(c, node, &frame);
}

void crowd_pass(struct crowd *c, uint32_t node)
{
    Gpul__ProbeRow row = GPUL__PROBE_ROW__INIT;
    Gpul__ProbeRow *rows = &row;
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    row.bytes = 1 << 20;
    row.count = 1 << 18;
    row.iterations = 5;
    row.median_ns = 1000000 + node;
    result.rows = &rows;
    result.n_rows = 1;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    crowd_say(c, node, &frame);
}

void crowd_end_ranks(struct crowd *c, uint32_t node)
{
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    Gpul__Exits exits = GPUL__EXITS__INIT;
    Gpul__Idle idle = GPUL__IDLE__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    exits.exits = &list;
    exits.n_exits = 1;
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    for (uint32_t i = 0; i < c->ranks_per_node; i++) {
        one.rank = c->first_ranks[node] + i;
        crowd_say(c, node, &frame);
    }
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    crowd_say(c, node, &frame);
}

void crowd_leave(struct crowd *c, uint32_t node)
{
    step(c, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                      .conn = node});
}

void crowd_send_job(struct crowd *c)
{
    char names[32];
    char *list = names;
    snprintf(names, sizeof(names), "node[0-%u]", c->node_count - 1);
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    Gpul__Command command = GPUL__COMMAND__INIT;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    self_test.listen_deadline_ms = 20000;
    self_test.run_deadline_ms = 60000;
    job.job_id = wire_text("job");
    job.mode = GPUL__JOB__MODE__RUN;
    job.node_count = c->node_count;
    job.ranks_per_node = c->ranks_per_node;
    job.node_names = &list;
    job.n_node_names = 1;
    job.join_timeout_ms = 600000;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    step(c, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                      .frame = &frame});
}

void crowd_init(struct crowd *c, uint32_t node_count, uint32_t ranks_per_node)
{
    *c = (struct crowd){.node_count = node_count,
                        .ranks_per_node = ranks_per_node};
    c->order = calloc(node_count, sizeof(*c->order));
    c->first_ranks = calloc(node_count, sizeof(*c->first_ranks));
    assert_true(c->order != NULL && c->first_ranks != NULL);
    for (uint32_t i = 0; i < node_count; i++) {
        c->order[i] = i;
    }
    gpul_rng_init(&c->rng, node_count);
}
