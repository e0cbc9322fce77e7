/* SPDX-License-Identifier: Apache-2.0
 *
 * A hundred thousand ranks join, get their places, pass the self-test, are
 * launched, end and leave, in one process: the rendezvous alone, without
 * wires, fed in an order drawn from a seed. Counts and memory are asserted;
 * time is only printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/rng.h"
#include "coordinator/rendezvous.h"
#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/memory.h"

/* What the rendezvous may hold for a node at most, its share of a step's
 * actions and of the roster included. */
enum { NODE_BYTES_MAX = 1024, FIXED_BYTES_MAX = 4 << 20 };

struct crowd {
    struct rendezvous *core;
    uint32_t node_count;
    uint32_t ranks_per_node;
    uint32_t *order;       /* in which the nodes act, drawn anew each time */
    uint32_t *first_ranks; /* by node, as assigned */
    struct gpul_rng rng;
    uint64_t now_ms;

    uint32_t sends[32]; /* by body case, each receiver counted */
    uint64_t sent_bytes;
    uint64_t told_bytes;
    uint32_t exit_code;
    uint32_t job_ends;
    bool is_finished;
};

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

static void say(struct crowd *c, uint32_t node, Gpul__Frame *frame)
{
    frame->epoch = frame->body_case == GPUL__FRAME__BODY_HELLO ? 0 : 1;
    frame->generation = frame->epoch;
    step(c, (struct rendezvous_event){
                .kind = RENDEZVOUS_PEER_MESSAGE, .conn = node, .frame = frame});
}

/* Every node does the same, in a new order. */
static void everybody(struct crowd *c, void (*act)(struct crowd *, uint32_t))
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
static void join(struct crowd *c, uint32_t node)
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
    say(c, node, &frame);
}

static void get_ready(struct crowd *c, uint32_t node)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    ready.port_base = 10000 + node % 8 * 100;
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    say(c, node, &frame);
}

static void start_listening(struct crowd *c, uint32_t node)
{
    Gpul__ProbeListening listening = GPUL__PROBE_LISTENING__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    listening.address = wire_text("10.0.0.1");
    listening.port = 30000 + node % 8;
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    say(c, node, &frame);
}

static void pass(struct crowd *c, uint32_t node)
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
    say(c, node, &frame);
}

static void end_ranks(struct crowd *c, uint32_t node)
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
        say(c, node, &frame);
    }
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    say(c, node, &frame);
}

static void leave(struct crowd *c, uint32_t node)
{
    step(c, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                      .conn = node});
}

static void send_job(struct crowd *c)
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

static void crowd_init(struct crowd *c, uint32_t node_count,
                       uint32_t ranks_per_node)
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

/* node7 before node66: the rank order is that of the numbers. */
static void check_counts(const struct crowd *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        assert_int_equal(c->first_ranks[i], i * c->ranks_per_node);
    }
    assert_int_equal(c->sends[GPUL__FRAME__BODY_WELCOME], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_JOB], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_ASSIGN], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_START], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_CONNECT], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_LAUNCH], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_FINISH], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_STOP], 0);
    assert_int_equal(c->job_ends, 1);
    assert_int_equal(c->exit_code, 0);
    assert_true(c->is_finished);
}

static void run_crowd(uint32_t node_count, uint32_t ranks_per_node)
{
    struct crowd c;
    crowd_init(&c, node_count, ranks_per_node);
    memory_watch(); /* what the crowd itself holds does not count */
    uint64_t start_ns = gpul_clock_ns();
    struct rendezvous_config config = {
        .epoch = 1, .seed = 7, .version = "0.1.0"};
    assert_int_equal(rendezvous_create(&c.core, &config, 0, NULL), 0);
    send_job(&c);
    everybody(&c, join);
    everybody(&c, get_ready);
    everybody(&c, start_listening);
    everybody(&c, pass);
    rendezvous_check(c.core);
    everybody(&c, end_ranks);
    everybody(&c, leave);
    check_counts(&c);
    size_t peak = memory_peak();
    printf("%u nodes of %u: %.2f s, peak %.1f MiB (%.0f B a node), "
           "%.0f B to each node, %.1f MiB to the front end\n",
           node_count, ranks_per_node,
           (double)(gpul_clock_ns() - start_ns) / 1e9, (double)peak / (1 << 20),
           (double)peak / node_count, (double)c.sent_bytes / node_count,
           (double)c.told_bytes / (1 << 20));
    assert_true(peak < (size_t)node_count * NODE_BYTES_MAX + FIXED_BYTES_MAX);
    rendezvous_destroy(c.core);
    assert_int_equal(memory_held(), 0);
    free(c.order);
    free(c.first_ranks);
}

/* 12,500 nodes of 8 GPUs. */
static void test_eight_a_node(void **state)
{
    (void)state;
    run_crowd(12500, 8);
}

/* 100,000 nodes of one. */
static void test_one_a_node(void **state)
{
    (void)state;
    run_crowd(100000, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_a_node),
        cmocka_unit_test(test_one_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
