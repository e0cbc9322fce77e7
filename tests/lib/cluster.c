/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a cluster: its wires, and the time that passes.
 */
#include "tests/lib/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/fakecheck.h"
#include "tests/lib/fakeinput.h"
#include "tests/lib/fakenode.h"
#include "tests/lib/fakeprobes.h"
#include "tests/lib/fakeranks.h"
#include "tests/lib/simtrace.h"
#include "tests/lib/watch.h"

/* ---- wires ---- */

static uint64_t delay_ms(struct cluster *c)
{
    return c->delay_ms != NULL ? c->delay_ms(c) : 1;
}

/* When something sent now arrives, behind what was sent before. */
static uint64_t arrival_ms(struct cluster *c, uint64_t *last_ms)
{
    uint64_t at_ms = c->now_ms + delay_ms(c);
    *last_ms = at_ms > *last_ms ? at_ms : *last_ms;
    return *last_ms;
}

static struct sim_payload *encode(const Gpul__Frame *frame)
{
    struct gpul_error err = {0};
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    if (gpul_message_encode(&bytes, frame, &err) != 0) {
        fprintf(stderr, "a double's frame: %s\n", err.text);
        abort();
    }
    struct sim_payload *payload = sim_payload_create(bytes.data, bytes.used);
    gpul_buf_release(&bytes);
    return payload;
}

static Gpul__Frame *decode(const struct sim_event *event, enum gpul_peer from)
{
    Gpul__Frame *frame;
    struct gpul_error err = {0};
    const uint8_t *body = event->payload->bytes + event->offset;
    if (gpul_message_decode(&frame, body + GPUL_FRAME_PREFIX_BYTES,
                            event->byte_count - GPUL_FRAME_PREFIX_BYTES, from,
                            &err) != 0) {
        fprintf(stderr, "a frame on the wire: %s\n", err.text);
        abort();
    }
    return frame;
}

static size_t frame_bytes(const uint8_t *bytes)
{
    return GPUL_FRAME_PREFIX_BYTES + ((size_t)bytes[0] << 24 |
                                      (size_t)bytes[1] << 16 |
                                      (size_t)bytes[2] << 8 | (size_t)bytes[3]);
}

/* Put each frame of the payload on its way down. */
static void send_down(struct cluster *c, struct sim_link *link,
                      struct sim_payload *payload)
{
    size_t n;
    for (size_t at = 0; at < payload->byte_count; at += n) {
        n = frame_bytes(payload->bytes + at);
        payload->references++;
        sim_queue_push(
            &c->queue,
            (struct sim_event){.at_ms = arrival_ms(c, &link->last_down_ms),
                               .kind = SIM_TO_NODE,
                               .link = link,
                               .payload = payload,
                               .offset = at,
                               .byte_count = n});
    }
    c->sent_bytes += payload->byte_count;
}

void cluster_send(struct cluster *c, struct sim_link *link,
                  const Gpul__Frame *frame)
{
    if (!link->is_open_here || c->nodes[link->node].is_mute) {
        return;
    }
    struct sim_payload *payload = encode(frame);
    sim_queue_push(&c->queue,
                   (struct sim_event){.at_ms = arrival_ms(c, &link->last_up_ms),
                                      .kind = SIM_TO_COORDINATOR,
                                      .link = link,
                                      .payload = payload,
                                      .byte_count = payload->byte_count});
}

void cluster_hang_up(struct cluster *c, struct sim_link *link)
{
    if (link->is_open_here) {
        link->is_open_here = false;
        sim_queue_push(&c->queue, (struct sim_event){
                                      .at_ms = arrival_ms(c, &link->last_up_ms),
                                      .kind = SIM_LINK_CUT,
                                      .link = link});
    }
}

void cluster_plan(struct cluster *c, enum sim_kind kind, uint32_t node,
                  uint32_t number, uint32_t generation, uint64_t after_ms)
{
    sim_queue_push(&c->queue, (struct sim_event){.at_ms = c->now_ms + after_ms,
                                                 .kind = kind,
                                                 .node = node,
                                                 .number = number,
                                                 .generation = generation});
}

/* ---- the coordinator ---- */

static void listen_for(struct cluster *c, uint32_t limit)
{
    c->conn_limit = limit;
    c->by_conn = calloc(limit, sizeof(struct sim_link *));
    c->free_conns = calloc(limit, sizeof(*c->free_conns));
}

static void free_conn(struct cluster *c, struct sim_link *link)
{
    link->is_open_there = false;
    c->by_conn[link->conn] = NULL;
    c->free_conns[c->free_count++] = link->conn;
}

static void close_conn(struct cluster *c, uint32_t conn)
{
    struct sim_link *link = c->by_conn[conn];
    if (link != NULL) {
        watch_closed(c, conn);
        free_conn(c, link);
        sim_queue_push(
            &c->queue,
            (struct sim_event){.at_ms = arrival_ms(c, &link->last_down_ms),
                               .kind = SIM_LINK_CLOSED,
                               .link = link});
    }
}

static void give_credit(struct cluster *c, const Gpul__Output *output)
{
    Gpul__Credit credit = GPUL__CREDIT__INIT;
    credit.node_rank = output->node_rank;
    credit.bytes = output->data.len;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_CREDIT;
    frame.credit = &credit;
    c->output_bytes += output->data.len;
    if (c->gives_credit) {
        cluster_operate(c, c->now_ms, &frame);
    }
}

/* The front end reads what it was sent at once. */
static void operator_reads(struct cluster *c,
                           const struct rendezvous_action *action)
{
    struct sim_payload *payload =
        sim_payload_create(action->bytes, action->byte_count);
    struct sim_event event = {.payload = payload,
                              .byte_count = payload->byte_count};
    Gpul__Frame *frame = decode(&event, GPUL_PEER_DESK);
    trace_operator_frame(c, frame);
    watch_told(c, frame);
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_OUTPUT:
        give_credit(c, frame->output);
        break;
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        fake_input_granted(c, frame->input_credit);
        break;
    case GPUL__FRAME__BODY_ENV_REPORT:
        c->report_count++;
        break;
    case GPUL__FRAME__BODY_JOB_END:
        c->job_end_count++;
        c->exit_code = frame->job_end->exit_code;
        break;
    default:
        break;
    }
    gpul_message_release(frame);
    sim_payload_release(payload);
}

/* Shown and judged once, however many get it. */
static void look_at_sent(struct cluster *c,
                         const struct rendezvous_action *action)
{
    size_t n;
    if (!c->is_traced && c->watch == NULL) {
        return;
    }
    struct sim_payload *payload =
        sim_payload_create(action->bytes, action->byte_count);
    for (size_t at = 0; at < payload->byte_count; at += n) {
        n = frame_bytes(payload->bytes + at);
        struct sim_event event = {
            .payload = payload, .offset = at, .byte_count = n};
        Gpul__Frame *frame = decode(&event, GPUL_PEER_COORDINATOR);
        bool is_for_all = action->kind == RENDEZVOUS_SEND_MANY;
        struct sim_link *link = is_for_all ? NULL : c->by_conn[action->conn];
        WATCH_RULE(c, c->watch == NULL || is_for_all || link != NULL,
                   "something is sent to a connection that was closed");
        trace_node_frame(c, link, frame);
        watch_sent(c, link, frame);
        gpul_message_release(frame);
    }
    sim_payload_release(payload);
}

static void send_action(struct cluster *c,
                        const struct rendezvous_action *action)
{
    bool is_one = action->kind == RENDEZVOUS_SEND;
    const uint32_t *conns = is_one ? &action->conn : action->conns;
    size_t count = is_one ? 1 : action->conn_count;
    struct sim_payload *payload =
        sim_payload_create(action->bytes, action->byte_count);
    look_at_sent(c, action);
    for (size_t i = 0; i < count; i++) {
        if (c->by_conn[conns[i]] != NULL) {
            send_down(c, c->by_conn[conns[i]], payload);
        }
    }
    sim_payload_release(payload);
}

static void apply(struct cluster *c, const struct rendezvous_action *action)
{
    switch (action->kind) {
    case RENDEZVOUS_LISTEN:
        listen_for(c, action->limit);
        break;
    case RENDEZVOUS_SEND:
    case RENDEZVOUS_SEND_MANY:
        send_action(c, action);
        break;
    case RENDEZVOUS_SEND_OPERATOR:
        operator_reads(c, action);
        break;
    case RENDEZVOUS_ALLOW:
        break;
    case RENDEZVOUS_CLOSE:
        close_conn(c, action->conn);
        break;
    case RENDEZVOUS_LOG:
        cluster_note(c, "%s", action->text);
        break;
    case RENDEZVOUS_FINISH:
        cluster_note(c, "finish %d", action->exit_code);
        c->is_finished = true;
        c->finish_code = action->exit_code;
        break;
    }
}

static void step(struct cluster *c, struct rendezvous_event event)
{
    struct rendezvous_actions actions;
    struct gpul_error err = {0};
    event.now_ms = c->now_ms;
    event.real_ns = fake_real_ns(c->now_ms);
    watch_before(c, &event);
    if (rendezvous_step(c->core, &actions, &event, &err) != 0) {
        fprintf(stderr, "the step failed: %s\n", err.text);
        abort();
    }
    c->step_count++;
    for (size_t i = 0; i < actions.count; i++) {
        apply(c, &actions.items[i]);
    }
    watch_after(c, &event);
}

struct sim_link *cluster_connect(struct cluster *c, uint32_t node)
{
    bool has_room = c->free_count > 0 || c->conn_used < c->conn_limit;
    if (!has_room || c->is_finished) {
        return NULL;
    }
    struct sim_link *link = calloc(1, sizeof(*link));
    link->conn =
        c->free_count > 0 ? c->free_conns[--c->free_count] : c->conn_used++;
    link->node = node;
    link->is_open_here = true;
    link->is_open_there = true;
    link->next = c->links;
    c->links = link;
    c->by_conn[link->conn] = link;
    char address[64];
    snprintf(address, sizeof(address), "10.9.0.%u", node);
    step(c, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_OPENED,
                                      .conn = link->conn,
                                      .text = address,
                                      .name = c->nodes[node].name});
    return link;
}

/* ---- what happens ---- */

static void up(struct cluster *c, const struct sim_event *event)
{
    if (event->link->is_open_there) {
        Gpul__Frame *frame = decode(event, GPUL_PEER_NODE);
        step(c, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_MESSAGE,
                                          .conn = event->link->conn,
                                          .frame = frame});
        gpul_message_release(frame);
    }
}

static void down(struct cluster *c, const struct sim_event *event)
{
    struct sim_link *link = event->link;
    if (link->is_open_here && !c->nodes[link->node].is_mute &&
        c->nodes[link->node].link == link) {
        Gpul__Frame *frame = decode(event, GPUL_PEER_COORDINATOR);
        fake_message(c, link->node, frame);
        gpul_message_release(frame);
    }
}

static void cut(struct cluster *c, struct sim_link *link)
{
    if (link->is_open_there) {
        free_conn(c, link);
        step(c, (struct rendezvous_event){.kind = RENDEZVOUS_PEER_CLOSED,
                                          .conn = link->conn});
    }
}

static void closed(struct cluster *c, struct sim_link *link)
{
    if (link->is_open_here) {
        link->is_open_here = false;
        if (c->nodes[link->node].link == link) {
            fake_closed(c, link->node);
        }
    }
}

static void from_operator(struct cluster *c, const struct sim_event *event)
{
    if (c->has_operator) {
        Gpul__Frame *frame = decode(event, GPUL_PEER_OPERATOR);
        step(c, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_MESSAGE,
                                          .frame = frame});
        gpul_message_release(frame);
    }
}

static void happen(struct cluster *c, const struct sim_event *event)
{
    switch (event->kind) {
    case SIM_DIAL:
        fake_dial(c, event->node);
        break;
    case SIM_TO_COORDINATOR:
        up(c, event);
        break;
    case SIM_TO_NODE:
        down(c, event);
        break;
    case SIM_LINK_CUT:
        cut(c, event->link);
        break;
    case SIM_LINK_CLOSED:
        closed(c, event->link);
        break;
    case SIM_FROM_OPERATOR:
        from_operator(c, event);
        break;
    case SIM_OPERATOR_GONE:
        c->has_operator = false;
        step(c, (struct rendezvous_event){.kind = RENDEZVOUS_OPERATOR_CLOSED});
        break;
    case SIM_NODE_TIMER:
        fake_timer(c, event->node, (enum fake_timer)event->number,
                   event->generation);
        break;
    case SIM_RANK_STALLS:
    case SIM_RANK_RESUMES:
        fake_rank_stall(c, event->node, event->number, event->generation,
                        event->kind == SIM_RANK_RESUMES);
        break;
    case SIM_RANK_END:
        fake_rank_end(c, event->node, event->number, event->generation);
        break;
    case SIM_PROBE:
        fake_probe_step(c, event->node, event->number, event->generation);
        break;
    case SIM_NODE_DIES:
        fake_die(c, event->node);
        break;
    case SIM_AGENT_CRASHES:
        fake_crash(c, event->node);
        break;
    case SIM_KEEPER_DIES:
        fake_keeper_die(c, event->node);
        break;
    }
}

void cluster_run(struct cluster *c, uint64_t until_ms)
{
    while (!c->is_finished) {
        uint64_t planned_ms = UINT64_MAX;
        uint64_t tick_ms = rendezvous_next_deadline_ms(c->core);
        sim_queue_peek(&c->queue, &planned_ms);
        uint64_t next_ms = planned_ms <= tick_ms ? planned_ms : tick_ms;
        if (next_ms > until_ms) {
            return;
        }
        c->now_ms = next_ms > c->now_ms ? next_ms : c->now_ms;
        if (planned_ms <= tick_ms) {
            struct sim_event event;
            sim_queue_pop(&c->queue, &event);
            happen(c, &event);
            sim_payload_release(event.payload);
        } else {
            step(c, (struct rendezvous_event){.kind = RENDEZVOUS_TICK});
        }
    }
}

void cluster_settle(struct cluster *c)
{
    struct sim_event event;
    while (sim_queue_pop(&c->queue, &event)) {
        c->now_ms = event.at_ms > c->now_ms ? event.at_ms : c->now_ms;
        if (event.kind == SIM_TO_NODE) {
            down(c, &event);
        } else if (event.kind == SIM_LINK_CLOSED) {
            closed(c, event.link);
        }
        sim_payload_release(event.payload);
    }
}

/* ---- the front end ---- */

void cluster_operate(struct cluster *c, uint64_t at_ms,
                     const Gpul__Frame *frame)
{
    struct sim_payload *payload = encode(frame);
    sim_queue_push(&c->queue,
                   (struct sim_event){.at_ms = at_ms,
                                      .kind = SIM_FROM_OPERATOR,
                                      .payload = payload,
                                      .byte_count = payload->byte_count});
}
