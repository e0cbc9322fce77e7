/* SPDX-License-Identifier: Apache-2.0
 *
 * What the coordinator says. Every message is judged by epoch, generation
 * and state before it is obeyed; one that fits nowhere ends the connection.
 */
#include <signal.h>

#include "proto/limits.h"
#include "worker/agent_internal.h"

enum { SIGNAL_MAX = 64 };

/* A fault of the coordinator: nothing it says can be trusted any more. */
static void fault(struct agent *a, const char *why)
{
    agent_leave(a, AGENT_EXIT_FAILED, "the coordinator at %s sent %s",
                a->config.coordinator, why);
    agent_send_leave(a, !agent_is_busy(a));
    agent_lost(a, why);
}

static void unexpected(struct agent *a, const Gpul__Frame *frame)
{
    const struct gpul_message_rule *rule =
        gpul_message_rule((uint32_t)frame->body_case);
    struct gpul_error err;
    gpul_fail(&err, GPUL_EPROTO, "%s out of place",
              rule != NULL ? rule->name : "a message");
    fault(a, err.text);
}

/* A deep copy through the wire form; NULL without memory. */
static ProtobufCMessage *copy_message(struct agent *a,
                                      const ProtobufCMessage *message)
{
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, GPUL_JOB_BYTES_MAX);
    ProtobufCMessage *copy = NULL;
    uint8_t *room =
        gpul_buf_extend(&bytes, protobuf_c_message_get_packed_size(message));
    if (room != NULL) {
        size_t n = protobuf_c_message_pack(message, room);
        copy = protobuf_c_message_unpack(message->descriptor, NULL, n, room);
    }
    a->has_failed |= copy == NULL;
    gpul_buf_release(&bytes);
    return copy;
}

/* ---- joining ------------------------------------------------------------ */

static void on_welcome(struct agent *a, const Gpul__Frame *frame)
{
    const Gpul__Welcome *welcome = frame->welcome;
    if (a->state != AGENT_HELLO) {
        if (!a->is_leaving) {
            unexpected(a, frame);
        }
        return;
    }
    if (welcome->protocol < GPUL_PROTOCOL_MIN ||
        welcome->protocol > GPUL_PROTOCOL) {
        fault(a, "a protocol version that this worker did not offer");
        return;
    }
    agent_move(a, AGENT_MEMBER);
    a->epoch = frame->epoch;
    a->heartbeat_ms =
        welcome->heartbeat_ms != 0 ? welcome->heartbeat_ms : GPUL_HEARTBEAT_MS;
    a->lease_ms = welcome->lease_ms != 0 ? welcome->lease_ms : GPUL_LEASE_MS;
    a->join_deadline_ms = AGENT_NEVER;
    a->beat_at_ms = a->now_ms + a->heartbeat_ms;
    a->lease_deadline_ms = a->now_ms + a->lease_ms;
    agent_emit(a, AGENT_ATTACHED);
}

static void on_refuse(struct agent *a, const Gpul__Refuse *refuse)
{
    agent_leave(a, AGENT_EXIT_FAILED, "refused by the coordinator at %s: %s",
                a->config.coordinator, refuse->text);
    agent_lost(a, refuse->text);
}

static void on_ack(struct agent *a)
{
    if (a->lease_deadline_ms != AGENT_NEVER) {
        a->lease_deadline_ms = a->now_ms + a->lease_ms;
    }
}

/* ---- a generation ------------------------------------------------------- */

static void on_job(struct agent *a, const Gpul__Frame *frame)
{
    if (a->state != AGENT_MEMBER) {
        unexpected(a, frame);
        return;
    }
    ProtobufCMessage *copy = copy_message(a, &frame->job->base);
    if (a->job != NULL) {
        gpul__job__free_unpacked(a->job, NULL);
    }
    a->job = (Gpul__Job *)copy;
}

static bool is_sound(const Gpul__Assign *assign)
{
    return assign->node_rank < assign->node_count &&
           assign->node_count <= GPUL_NODES_MAX && assign->rank_count > 0 &&
           assign->rank_count <= GPUL_RANKS_PER_NODE_MAX &&
           assign->world_size <= GPUL_RANKS_MAX &&
           assign->rank_count <= assign->world_size &&
           assign->first_rank <= assign->world_size - assign->rank_count;
}

/* Held ranks have their ports; all others get some. */
static void take_place(struct agent *a)
{
    agent_move(a, AGENT_ASSIGNED);
    a->port_base = 0;
    a->test.device_count = 0;
    if (!agent_is_place_held(a, a->generation)) {
        a->is_held = false;
        a->awaits_ports = true;
        agent_emit(a, AGENT_LEASE_PORTS);
    }
}

static void on_assign(struct agent *a, const Gpul__Frame *frame)
{
    const Gpul__Assign *assign = frame->assign;
    if (a->job == NULL ||
        (a->state != AGENT_MEMBER && a->state != AGENT_ASSIGNED)) {
        unexpected(a, frame);
        return;
    }
    if (!is_sound(assign)) {
        fault(a, "a place that is not in the world");
        return;
    }
    if (a->has_ranks && !agent_is_place_held(a, frame->generation)) {
        fault(a, "a new generation while ranks of another run here");
        return;
    }
    ProtobufCMessage *copy = copy_message(a, &assign->base);
    if (a->assign != NULL) {
        gpul__assign__free_unpacked(a->assign, NULL);
    }
    a->assign = (Gpul__Assign *)copy;
    if (world_begin(&a->world, assign->node_count, assign->world_size, NULL)) {
        a->has_failed = true;
        return;
    }
    a->generation = frame->generation;
    take_place(a);
}

/* The ports of held ranks are in the roster only. */
static void renew_ports(struct agent *a)
{
    a->port_base = a->world.port_bases[a->assign->node_rank];
    agent_emit(a, AGENT_RENEW_PORTS)->port_base = a->port_base;
}

static void on_roster(struct agent *a, const Gpul__Frame *frame)
{
    if (a->state != AGENT_ASSIGNED || (a->port_base == 0 && !a->is_held)) {
        unexpected(a, frame);
        return;
    }
    struct gpul_error err;
    int rc = world_add(&a->world, frame->roster, &err);
    if (rc == 0 && world_is_complete(&a->world)) {
        if (a->is_held) {
            renew_ports(a);
        }
        rc = world_check_node(&a->world, a->assign->node_rank,
                              a->assign->first_rank, a->assign->rank_count,
                              a->port_base, &err);
    }
    if (rc == GPUL_ENOMEM) {
        a->has_failed = true;
    } else if (rc != 0) {
        gpul_wrap(&err, rc, "a bad roster");
        fault(a, err.text);
    }
}

/* ---- running ------------------------------------------------------------ */

void agent_launch(struct agent *a)
{
    if (a->job->mode == GPUL__JOB__MODE__ENV) {
        agent_emit(a, AGENT_REPORT_ENV);
        return;
    }
    agent_move(a, AGENT_RUNNING);
    a->has_ranks = true; /* held ones may be gone: that is told again */
    a->has_output = true;
    a->is_held = false;
    a->ranks_ended = 0;
    agent_emit(a, AGENT_START_RANKS);
}

static void on_launch(struct agent *a, const Gpul__Frame *frame)
{
    bool is_clearing = a->state == AGENT_CLEARING && !a->test.has_launch;
    if ((a->state != AGENT_ASSIGNED && !is_clearing) ||
        !world_is_complete(&a->world)) {
        unexpected(a, frame);
        return;
    }
    a->attempt = frame->launch->attempt;
    if (is_clearing) {
        a->test.has_launch = true;
    } else {
        agent_launch(a);
    }
}

static void on_stop(struct agent *a, const Gpul__Stop *stop)
{
    int signal = SIGTERM;
    if (stop->signal > 0 && stop->signal <= SIGNAL_MAX) {
        signal = (int)stop->signal;
    }
    if (a->state < AGENT_MEMBER) {
        return;
    }
    if (a->is_held) {
        a->generation = a->config.held.generation;
    }
    agent_stop(a, signal, stop->grace_ms);
    agent_discard_after(a, stop->grace_ms);
    /* Idle follows once nothing is alive, which may be now. */
    agent_move(a, AGENT_STOPPING);
}

static void on_finish(struct agent *a, const Gpul__Finish *finish)
{
    agent_leave(a, AGENT_EXIT_OK, "%s", "");
    a->removes_logs = !finish->keeps_logs;
    if (a->has_output) {
        agent_emit(a, AGENT_DISCARD_OUTPUT);
    }
    agent_stop(a, SIGKILL, 0);
}

/* ---- dispatch ----------------------------------------------------------- */

/* Ranks that have ended meanwhile do not need it. */
static void on_signal(struct agent *a, const Gpul__Signal *signal)
{
    if (a->has_ranks) {
        agent_emit(a, AGENT_PASS_SIGNAL)->signal = (int)signal->signal;
    }
}

static void on_input(struct agent *a, const Gpul__Input *input)
{
    bool will_start = a->state == AGENT_CLEARING && a->test.has_launch;
    if (a->has_ranks || will_start) {
        agent_emit(a, AGENT_FEED)->input = input;
    }
}

/* Messages that belong to one generation; the others hold at any time. */
#define FENCED                                                                 \
    (GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_ASSIGN) |                              \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_ROSTER) |                              \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_SURVEY_START) |                        \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_CLOCK_PING) |                          \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LINK_START) |                          \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LINK_PEERS) |                          \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_START) |                         \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_CONNECT) |                       \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_BEGIN) |                         \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PROBE_IDS) |                           \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_START) |                          \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_TRIAL_START) |                         \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_PAIR_END) |                            \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_LAUNCH) |                              \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_SIGNAL) |                              \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_INPUT) |                               \
     GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_STOP))

/* Older than what this agent has seen: to be ignored. */
static bool is_stale(const struct agent *a, const Gpul__Frame *frame)
{
    if (frame->epoch < a->epoch) {
        return true;
    }
    if ((FENCED & GPUL_MESSAGE_BIT(frame->body_case)) == 0) {
        return false;
    }
    return frame->body_case == GPUL__FRAME__BODY_ASSIGN
               ? frame->generation <= a->generation
               : frame->generation < a->generation;
}

/* Only Assign opens a generation, only Stop may run ahead of one. */
static bool is_ahead(const struct agent *a, const Gpul__Frame *frame)
{
    return (FENCED & GPUL_MESSAGE_BIT(frame->body_case)) != 0 &&
           frame->body_case != GPUL__FRAME__BODY_ASSIGN &&
           frame->body_case != GPUL__FRAME__BODY_STOP &&
           frame->generation > a->generation;
}

/* The messages of the self-test, and before it; false: one of them is out of
 * place. */
static bool obey_test(struct agent *a, const Gpul__Frame *frame)
{
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_SURVEY_START:
        return agent_survey_start(a, frame->survey_start);
    case GPUL__FRAME__BODY_CLOCK_PING:
        return agent_clock_ping(a, frame->clock_ping);
    case GPUL__FRAME__BODY_LINK_START:
        return agent_link_start(a, frame->link_start);
    case GPUL__FRAME__BODY_LINK_PEERS:
        return agent_link_peers(a, frame->link_peers);
    case GPUL__FRAME__BODY_PAIR_START:
        return agent_pair_start(a, frame);
    case GPUL__FRAME__BODY_TRIAL_START:
    case GPUL__FRAME__BODY_PAIR_END:
        return agent_pair_order(a, frame);
    case GPUL__FRAME__BODY_PROBE_START:
        return agent_probe_start(a, frame);
    case GPUL__FRAME__BODY_PROBE_CONNECT:
        return agent_probe_connect(a, frame);
    case GPUL__FRAME__BODY_PROBE_BEGIN:
        return agent_probe_begin(a, frame);
    case GPUL__FRAME__BODY_PROBE_IDS:
        return agent_probe_ids(a, frame);
    default:
        return false;
    }
}

static void obey(struct agent *a, const Gpul__Frame *frame)
{
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_JOB:
        on_job(a, frame);
        break;
    case GPUL__FRAME__BODY_ASSIGN:
        on_assign(a, frame);
        break;
    case GPUL__FRAME__BODY_ROSTER:
        on_roster(a, frame);
        break;
    case GPUL__FRAME__BODY_LAUNCH:
        on_launch(a, frame);
        break;
    case GPUL__FRAME__BODY_STOP:
        on_stop(a, frame->stop);
        break;
    case GPUL__FRAME__BODY_FINISH:
        on_finish(a, frame->finish);
        break;
    case GPUL__FRAME__BODY_SIGNAL:
        on_signal(a, frame->signal);
        break;
    case GPUL__FRAME__BODY_INPUT:
        on_input(a, frame->input);
        break;
    case GPUL__FRAME__BODY_CREDIT:
        agent_emit(a, AGENT_CREDIT)->bytes = frame->credit->bytes;
        break;
    case GPUL__FRAME__BODY_HEARTBEAT_ACK:
        on_ack(a);
        break;
    default:
        if (!obey_test(a, frame)) {
            unexpected(a, frame);
        }
    }
}

void agent_receive(struct agent *a, const Gpul__Frame *frame)
{
    if (!a->is_connected || is_stale(a, frame)) {
        return;
    }
    if (frame->body_case == GPUL__FRAME__BODY_WELCOME) {
        on_welcome(a, frame);
    } else if (frame->body_case == GPUL__FRAME__BODY_REFUSE) {
        on_refuse(a, frame->refuse);
    } else if (a->state == AGENT_HELLO || is_ahead(a, frame)) {
        unexpected(a, frame);
    } else {
        a->epoch = frame->epoch;
        obey(a, frame);
    }
}
