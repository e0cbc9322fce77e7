/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the agent share: agent.c has the actions, the clock and
 * the way out, agent_join.c the way in, agent_node.c what happens on the node,
 * agent_messages.c what the coordinator says. Nobody else includes this.
 */
#ifndef WORKER_AGENT_INTERNAL_H
#define WORKER_AGENT_INTERNAL_H

#include "common/rng.h"
#include "worker/agent.h"

enum {
    AGENT_TEXT_BYTES = 640,
    AGENT_DURATION_BYTES = 32, /* what gpul_format_duration writes into */
};

#define AGENT_NEVER UINT64_MAX

struct agent {
    struct agent_config config;
    enum agent_state state;
    uint64_t now_ms; /* of the step being taken */
    struct agent_actions *actions;
    bool has_failed; /* out of memory within the step */

    /* The connection. */
    bool is_connected;
    uint32_t tries;
    struct gpul_rng rng; /* spreads the tries */
    char last_error[AGENT_TEXT_BYTES];
    uint32_t epoch;
    uint32_t heartbeat_ms;
    uint32_t lease_ms;
    uint64_t sequence; /* of the last Heartbeat */

    /* The generation. */
    uint32_t generation;
    Gpul__Job *job;
    Gpul__Assign *assign;
    struct world world;
    bool awaits_ports;
    uint16_t port_base;
    uint32_t attempt;

    /* What is alive on this node. */
    bool has_probe;
    bool is_probe_connected;      /* ProbeConnect was passed on: phase coll */
    bool has_probe_overrun;       /* killed by its deadline */
    struct gpul_buf probe_result; /* encoded, held until the probe ended */
    bool has_ranks;               /* from START_RANKS to ALL_GONE */
    bool has_output;              /* from START_RANKS to OUTPUT_DRAINED */
    uint32_t ranks_ended;
    char **unclean; /* for Idle; owned */
    size_t unclean_count;

    /* Deadlines, AGENT_NEVER when off. */
    uint64_t join_deadline_ms;
    uint64_t retry_at_ms;
    uint64_t beat_at_ms;
    uint64_t lease_deadline_ms;
    uint64_t probe_deadline_ms;
    uint64_t linger_at_ms; /* what the ranks left behind is stopped */
    uint64_t kill_at_ms;
    uint64_t abandon_at_ms;
    uint64_t discard_at_ms;

    /* The way out: first reason wins. */
    bool is_leaving;
    bool removes_logs;
    int exit_code;
    char exit_text[AGENT_TEXT_BYTES];
};

/* Generated structs take no const; what they are given is only read. */
static inline char *agent_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Change the state; only to a successor of the present one. */
void agent_move(struct agent *a, enum agent_state to);

/* Append an action; there is always room (see AGENT_ACTIONS_MAX). */
struct agent_action *agent_emit(struct agent *a, enum agent_action_type type);

/* Encode a frame into the arena behind what is there and make it an action:
 * SEND joins the SEND before it. The frame is stamped here. */
void agent_send(struct agent *a, enum agent_action_type type,
                Gpul__Frame *frame);

/* The same for bytes that are in the arena already, from `offset` on. */
void agent_emit_bytes(struct agent *a, enum agent_action_type type,
                      size_t offset);

/* Stop what runs: `signal` now, SIGKILL after grace_ms. Nothing happens when
 * nothing runs. A second call may only shorten the wait. */
void agent_stop(struct agent *a, int signal, uint32_t grace_ms);

/* Output that has found no reader when the grace is long over is discarded:
 * whoever asked for the stop may have stopped reading. */
void agent_discard_after(struct agent *a, uint32_t grace_ms);

/* Start to leave; the agent does leave once nothing is alive. */
void agent_leave(struct agent *a, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The grace of the job, 0 before there is one. */
uint32_t agent_grace_ms(const struct agent *a);

/* The connection is of no use any more: stop, discard, leave. */
void agent_lost(struct agent *a, const char *why);

/* The connection stands; it could not be made, or has ended; the time to
 * join is over. */
void agent_connected(struct agent *a, const char *address);
void agent_unconnected(struct agent *a, const char *why);
void agent_join_overdue(struct agent *a);

void agent_forget_unclean(struct agent *a);

/* An event of the node: of the probe, the ports, the ranks. */
void agent_observe(struct agent *a, const struct agent_event *event);

/* One frame of the coordinator. */
void agent_receive(struct agent *a, const Gpul__Frame *frame);

#endif
