/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/agent.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/signals.h"
#include "common/units.h"
#include "proto/limits.h"
#include "worker/agent_internal.h"

int agent_create(struct agent **out, const struct agent_config *config,
                 uint64_t now_ms, struct gpul_error *err)
{
    struct agent *a = calloc(1, sizeof(*a));
    *out = a;
    if (a == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    a->config = *config;
    a->state = AGENT_CONNECTING;
    gpul_rng_init(&a->rng, config->instance);
    a->now_ms = now_ms;
    a->join_ms = config->join_timeout_ms;
    a->retry_at_ms = now_ms;
    a->beat_at_ms = AGENT_NEVER;
    a->lease_deadline_ms = AGENT_NEVER;
    a->linger_at_ms = AGENT_NEVER;
    a->kill_at_ms = AGENT_NEVER;
    a->abandon_at_ms = AGENT_NEVER;
    a->discard_at_ms = AGENT_NEVER;
    if (config->held.generation != 0) {
        agent_hold(a);
    }
    a->join_deadline_ms = now_ms + a->join_ms;
    a->join_half_ms =
        config->tells_delay ? now_ms + a->join_ms / 2 : AGENT_NEVER;
    world_init(&a->world);
    agent_selftest_init(&a->test);
    return 0;
}

void agent_destroy(struct agent *a)
{
    if (a == NULL) {
        return;
    }
    if (a->job != NULL) {
        gpul__job__free_unpacked(a->job, NULL);
    }
    if (a->assign != NULL) {
        gpul__assign__free_unpacked(a->assign, NULL);
    }
    world_release(&a->world);
    agent_selftest_release(&a->test);
    agent_forget_unclean(a);
    free(a);
}

void agent_actions_init(struct agent_actions *actions)
{
    actions->count = 0;
    gpul_buf_init(&actions->arena, GPUL_SEND_QUEUE_BYTES_MAX);
}

void agent_actions_release(struct agent_actions *actions)
{
    actions->count = 0;
    gpul_buf_release(&actions->arena);
}

enum agent_state agent_state(const struct agent *a)
{
    return a->state;
}

const Gpul__Job *agent_job(const struct agent *a)
{
    return a->job;
}

const Gpul__Assign *agent_assign(const struct agent *a)
{
    return a->assign;
}

const struct world *agent_world(const struct agent *a)
{
    return world_is_complete(&a->world) ? &a->world : NULL;
}

uint32_t agent_generation(const struct agent *a)
{
    return a->generation;
}

uint32_t agent_attempt(const struct agent *a)
{
    return a->attempt;
}

void agent_stamp(const struct agent *a, Gpul__Frame *frame)
{
    frame->epoch = a->epoch;
    frame->generation = a->generation;
}

uint32_t agent_grace_ms(const struct agent *a)
{
    return a->job != NULL ? a->job->grace_ms : a->config.held.grace_ms;
}

/* ---- states ------------------------------------------------------------- */

#define BIT(state) (1u << AGENT_##state)

static const unsigned successors[] = {
    [AGENT_CONNECTING] =
        BIT(CONNECTING) | BIT(HELLO) | BIT(STOPPING) | BIT(LEAVING),
    [AGENT_HELLO] =
        BIT(CONNECTING) | BIT(MEMBER) | BIT(STOPPING) | BIT(LEAVING),
    [AGENT_MEMBER] = BIT(ASSIGNED) | BIT(STOPPING) | BIT(LEAVING),
    [AGENT_ASSIGNED] = BIT(ASSIGNED) | BIT(PROBING) | BIT(RUNNING) |
                       BIT(STOPPING) | BIT(LEAVING),
    [AGENT_PROBING] = BIT(ASSIGNED) | BIT(CLEARING) | BIT(STOPPING),
    [AGENT_CLEARING] = BIT(ASSIGNED) | BIT(STOPPING) | BIT(LEAVING),
    [AGENT_RUNNING] = BIT(STOPPING),
    [AGENT_STOPPING] = BIT(STOPPING) | BIT(MEMBER),
    [AGENT_LEAVING] = 0,
};

void agent_move(struct agent *a, enum agent_state to)
{
    assert((successors[a->state] & (1u << to)) != 0);
    if (a->state == AGENT_CLEARING) {
        a->test.clear_deadline_ms = AGENT_NEVER;
        a->test.look_at_ms = AGENT_NEVER;
    }
    a->state = to;
}

/* What holds between any two steps. */
static void check_invariants(const struct agent *a)
{
    bool is_stopping = a->state == AGENT_STOPPING;
    assert(a->test.alive == 0 || is_stopping || a->state == AGENT_PROBING ||
           a->state == AGENT_CLEARING);
    assert(!a->has_ranks || is_stopping || a->state == AGENT_RUNNING ||
           a->is_held);
    assert(!a->has_ranks || a->has_output || a->is_held);
    assert(a->assign == NULL || a->job != NULL);
    assert(!a->is_leaving || is_stopping || a->state == AGENT_LEAVING);
}

/* ---- actions ------------------------------------------------------------ */

struct agent_action *agent_emit(struct agent *a, enum agent_action_type type)
{
    struct agent_actions *actions = a->actions;
    assert(actions->count < AGENT_ACTIONS_MAX);
    struct agent_action *action = &actions->items[actions->count++];
    *action = (struct agent_action){.type = type};
    return action;
}

/* The arena's bytes from `offset` on, as an action. */
static struct agent_action *
emit_bytes(struct agent *a, enum agent_action_type type, size_t offset)
{
    struct agent_actions *actions = a->actions;
    struct agent_action *last =
        actions->count > 0 ? &actions->items[actions->count - 1] : NULL;
    if (last == NULL || last->type != type || type != AGENT_SEND) {
        last = agent_emit(a, type);
        last->offset = offset;
    }
    last->n = actions->arena.used - last->offset;
    return last;
}

struct agent_action *agent_send(struct agent *a, enum agent_action_type type,
                                Gpul__Frame *frame)
{
    if (type == AGENT_SEND && !a->is_connected) {
        return NULL;
    }
    size_t offset = a->actions->arena.used;
    agent_stamp(a, frame);
    if (gpul_message_encode(&a->actions->arena, frame, NULL) != 0) {
        a->has_failed = true;
        return NULL;
    }
    return emit_bytes(a, type, offset);
}

struct agent_action *agent_send_bytes(struct agent *a,
                                      enum agent_action_type type,
                                      const struct gpul_buf *bytes)
{
    struct gpul_buf *arena = &a->actions->arena;
    size_t offset = arena->used;
    if (type == AGENT_SEND && !a->is_connected) {
        return NULL;
    }
    if (gpul_buf_append(arena, bytes->data, bytes->used) != 0) {
        a->has_failed = true;
        return NULL;
    }
    return emit_bytes(a, type, offset);
}

void agent_keep(struct agent *a, struct gpul_buf *out, const Gpul__Frame *frame)
{
    Gpul__Frame copy = *frame;
    agent_stamp(a, &copy);
    gpul_buf_clear(out);
    a->has_failed |= gpul_message_encode(out, &copy, NULL) != 0;
}

bool agent_is_busy(const struct agent *a)
{
    return a->test.alive > 0 || a->has_ranks || a->has_output;
}

void agent_stop(struct agent *a, int signal, uint32_t grace_ms)
{
    if (!agent_is_busy(a)) {
        return;
    }
    agent_move(a, AGENT_STOPPING);
    a->linger_at_ms = AGENT_NEVER;
    if (a->test.alive > 0) {
        agent_stop_probes(a, signal == SIGKILL);
    }
    if (!a->has_ranks) {
        return;
    }
    if (signal == SIGKILL) {
        grace_ms = 0;
    }
    if (a->abandon_at_ms != AGENT_NEVER && a->kill_at_ms == AGENT_NEVER) {
        return; /* killed already */
    }
    a->kill_at_ms = agent_earlier(a->kill_at_ms, a->now_ms + grace_ms);
    a->abandon_at_ms = a->kill_at_ms + AGENT_GIVE_UP_MS;
    if (grace_ms == 0) {
        a->kill_at_ms = AGENT_NEVER;
        agent_emit(a, AGENT_KILL_RANKS);
    } else {
        agent_emit(a, AGENT_STOP_RANKS)->signal = signal;
    }
}

void agent_discard_after(struct agent *a, uint32_t grace_ms)
{
    if (a->has_output) {
        a->discard_at_ms = agent_earlier(
            a->discard_at_ms, a->now_ms + grace_ms + AGENT_GIVE_UP_MS);
    }
}

void agent_leave(struct agent *a, int exit_code, const char *format, ...)
{
    if (a->is_leaving) {
        return;
    }
    a->is_leaving = true;
    a->exit_code = exit_code;
    va_list args;
    va_start(args, format);
    vsnprintf(a->exit_text, sizeof(a->exit_text), format, args);
    va_end(args);
}

void agent_lost(struct agent *a, const char *why)
{
    agent_leave(a, AGENT_EXIT_LOST, "lost the coordinator at %s: %s",
                a->config.coordinator, why);
    agent_emit(a, AGENT_DISCONNECT);
    a->is_connected = false;
    a->beat_at_ms = AGENT_NEVER;
    a->lease_deadline_ms = AGENT_NEVER;
    a->discard_at_ms = AGENT_NEVER;
    if (a->has_output) {
        agent_emit(a, AGENT_DISCARD_OUTPUT);
    }
    agent_stop(a, SIGTERM, agent_grace_ms(a));
}

static void send_idle(struct agent *a)
{
    Gpul__Idle idle;
    if (a->lease_ms == 0) {
        return; /* no member yet */
    }
    gpul__idle__init(&idle);
    idle.unclean = a->unclean;
    idle.n_unclean = a->unclean_count;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    agent_send(a, AGENT_SEND, &frame);
}

/* A request from outside, or the system going down. The second one means it:
 * no more grace. */
static void on_signal(struct agent *a, int signal)
{
    bool is_second = a->is_leaving;
    char name[GPUL_SIGNAL_TEXT_BYTES];
    agent_leave(a, AGENT_EXIT_SIGNALED + signal, "stopped by %s",
                gpul_format_signal(name, (uint32_t)signal));
    agent_stop(a, is_second ? SIGKILL : signal, agent_grace_ms(a));
    agent_discard_after(a, agent_grace_ms(a));
}

/* ---- time --------------------------------------------------------------- */

static void beat(struct agent *a)
{
    Gpul__Heartbeat heartbeat;
    gpul__heartbeat__init(&heartbeat);
    heartbeat.sequence = ++a->sequence;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT;
    frame.heartbeat = &heartbeat;
    agent_send(a, AGENT_SEND, &frame);
    a->beat_at_ms = a->now_ms + a->heartbeat_ms;
}

static void check_connection(struct agent *a)
{
    if (agent_is_due(a, &a->join_half_ms)) {
        agent_join_half(a);
    }
    if (agent_is_due(a, &a->join_deadline_ms)) {
        agent_join_overdue(a);
    }
    if (agent_is_due(a, &a->retry_at_ms) && !a->is_leaving) {
        agent_dial(a);
    }
    if (agent_is_due(a, &a->beat_at_ms)) {
        beat(a);
    }
    if (agent_is_due(a, &a->lease_deadline_ms)) {
        char silent[AGENT_DURATION_BYTES];
        char why[64];
        gpul_format_duration(silent, a->lease_ms);
        snprintf(why, sizeof(why), "no answer for %s", silent);
        agent_lost(a, why);
    }
}

static void check_processes(struct agent *a)
{
    agent_probes_tick(a);
    if (agent_is_due(a, &a->linger_at_ms)) {
        agent_stop(a, SIGTERM, agent_grace_ms(a));
    }
    if (agent_is_due(a, &a->kill_at_ms)) {
        agent_emit(a, AGENT_KILL_RANKS);
    }
    if (agent_is_due(a, &a->abandon_at_ms)) {
        agent_emit(a, AGENT_ABANDON);
    }
    if (agent_is_due(a, &a->discard_at_ms) && a->has_output) {
        agent_emit(a, AGENT_DISCARD_OUTPUT);
    }
}

uint64_t agent_next_deadline_ms(const struct agent *a)
{
    const uint64_t all[] = {
        a->linger_at_ms,    a->join_deadline_ms,  a->retry_at_ms,
        a->beat_at_ms,      a->lease_deadline_ms, a->test.deadline_ms,
        a->kill_at_ms,      a->abandon_at_ms,     a->discard_at_ms,
        a->test.look_at_ms, a->join_half_ms,
    };
    uint64_t next = AGENT_NEVER;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        next = agent_earlier(next, all[i]);
    }
    return a->state == AGENT_LEAVING ? AGENT_NEVER : next;
}

/* After each event: what has nothing alive any more moves on. */
static void settle(struct agent *a)
{
    bool is_stopped = a->state == AGENT_STOPPING;
    if (agent_is_busy(a)) {
        return;
    }
    if (is_stopped) {
        a->discard_at_ms = AGENT_NEVER;
        agent_move(a, AGENT_MEMBER);
        send_idle(a);
    }
    if (a->is_leaving && a->exit_code != AGENT_EXIT_OK) {
        agent_send_leave(a, true);
    }
    if (is_stopped) {
        agent_forget_unclean(a);
    }
    if (a->is_leaving) {
        agent_move(a, AGENT_LEAVING);
        if (a->removes_logs) {
            agent_emit(a, AGENT_REMOVE_LOGS);
        }
        struct agent_action *leave = agent_emit(a, AGENT_LEAVE);
        leave->exit_code = a->exit_code;
        leave->text = a->exit_text[0] != 0 ? a->exit_text : NULL;
    }
}

static void handle(struct agent *a, const struct agent_event *event)
{
    switch (event->type) {
    case AGENT_EVENT_TICK:
        check_connection(a);
        check_processes(a);
        break;
    case AGENT_EVENT_CONNECTED:
        agent_connected(a, event->text);
        break;
    case AGENT_EVENT_REACHED:
        agent_reached(a);
        break;
    case AGENT_EVENT_LOST:
        agent_unconnected(a, event->text);
        break;
    case AGENT_EVENT_MESSAGE:
        agent_receive(a, event->frame);
        break;
    case AGENT_EVENT_SIGNAL:
        on_signal(a, event->signal);
        break;
    default:
        agent_observe(a, event);
    }
}

int agent_step(struct agent *a, const struct agent_event *event,
               struct agent_actions *actions, struct gpul_error *err)
{
    actions->count = 0;
    gpul_buf_clear(&actions->arena);
    if (a->state == AGENT_LEAVING) {
        return 0;
    }
    a->now_ms = event->now_ms;
    a->actions = actions;
    handle(a, event);
    agent_links_settle(a);
    settle(a);
    a->actions = NULL;
    if (!a->has_failed) {
        check_invariants(a);
    } else {
        return gpul_fail(err, GPUL_ENOMEM, "agent: out of memory");
    }
    return 0;
}
