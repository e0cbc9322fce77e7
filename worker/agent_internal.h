/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the agent share: agent.c has the actions, the clock and
 * the way out, agent_join.c the way in, agent_messages.c what the coordinator
 * says, agent_node.c what happens on the node, agent_keeper.c what its keeper
 * holds, agent_links.c the proof of addresses, agent_pairs.c trials between
 * two nodes, agent_probes.c the self-test,
 * agent_hearing.c what its probes say, agent_clear.c the wait for the memory of
 * the GPUs behind it, agent_survey.c what a check asks for. Nobody else
 * includes this.
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

/* A device as the scout saw it. */
struct agent_device {
    uint32_t index;
    char uuid[GPUL_DEVICE_UUID_BYTES_MAX + 1];
    uint64_t memory_used_bytes;
};

struct agent_probe {
    bool is_alive;                 /* from START_PROBE to PROBE_ENDED */
    bool has_told;                 /* its answer has come: no other counts */
    bool is_halted;                /* its process is stopped */
    bool waits;                    /* for others, as it said last */
    uint32_t stage;                /* of NCCL in it, 0: not known */
    Gpul__ProbePhase__Phase phase; /* the last one that is behind it */
    struct gpul_buf answer;        /* encoded, held until it has ended */
};

/* The self-test of a generation. Its probes are of one kind at a time. */
struct agent_selftest {
    enum agent_probe_kind kind;
    struct agent_probe probes[AGENT_PROBES_MAX];
    uint32_t alive;
    bool is_connected; /* host: ProbeConnect was passed on, so phase coll */
    bool has_overrun;  /* killed by the deadline */
    bool has_failed;   /* of the probes on devices, one or more */
    bool has_ids;      /* ProbeIds was passed on */
    bool is_stopped;   /* Stop was passed on */
    uint64_t deadline_ms;

    /* Of PairStart. */
    uint32_t idle_ms;
    bool is_ending; /* PairEnd was passed on */

    /* Of ProbeBegin. */
    uint32_t first_rank;
    uint32_t phase_ms; /* of each phase but coll */
    uint32_t coll_ms;
    uint32_t abort_ms;

    /* What the scout was started with, and what it saw. */
    struct gpul_buf scout_start;
    uint32_t scout_ms;
    struct agent_device devices[AGENT_PROBES_MAX];
    uint32_t device_count;
    bool is_blind; /* memory in use cannot be seen; a finding says so */

    /* Waiting for the memory. */
    uint64_t clear_deadline_ms;
    uint64_t look_at_ms;
    uint32_t look_wait_ms;
    bool has_looked;
    char occupied[AGENT_TEXT_BYTES];   /* which devices are, "" if none */
    char look_error[AGENT_TEXT_BYTES]; /* why the scout saw nothing, or "" */
    bool has_launch;                   /* Launch has come meanwhile */
};

struct agent {
    struct agent_config config;
    enum agent_state state;
    uint64_t now_ms; /* of the step being taken */
    struct agent_actions *actions;
    bool has_failed; /* out of memory within the step */

    /* The connection. */
    bool is_reached; /* by the present try to connect */
    bool is_connected;
    uint32_t tries;
    struct gpul_rng rng; /* spreads the tries */
    char last_error[AGENT_TEXT_BYTES];
    char said_error[AGENT_TEXT_BYTES]; /* the last that was said */
    char say_text[AGENT_TEXT_BYTES];   /* of SAY */
    uint32_t said;                     /* how many were */
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
    bool has_links; /* from OPEN_LINKS to CLOSE_LINKS */

    /* What is alive on this node. */
    struct agent_selftest test;
    bool is_held;    /* the keeper has ranks that are not yet ours */
    bool has_ranks;  /* from START_RANKS, or held, to ALL_GONE */
    bool has_output; /* from START_RANKS to OUTPUT_DRAINED */
    uint32_t ranks_ended;
    char **unclean; /* for Idle; owned */
    size_t unclean_count;

    /* Deadlines, AGENT_NEVER when off. */
    uint32_t join_ms; /* how long all of joining may take */
    uint64_t join_deadline_ms;
    uint64_t join_half_ms; /* then it is said that this one has not joined */
    uint64_t retry_at_ms;
    uint64_t beat_at_ms;
    uint64_t lease_deadline_ms;
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
 * SEND joins the SEND before it. The frame is stamped here. NULL: nothing was
 * added, for want of a connection or of memory. */
struct agent_action *agent_send(struct agent *a, enum agent_action_type type,
                                Gpul__Frame *frame);

/* The same for whole frames that are encoded already. */
struct agent_action *agent_send_bytes(struct agent *a,
                                      enum agent_action_type type,
                                      const struct gpul_buf *bytes);

/* Encode a stamped frame for later into `out`, in place of what it holds. */
void agent_keep(struct agent *a, struct gpul_buf *out,
                const Gpul__Frame *frame);

/* Stop what runs: `signal` now, SIGKILL after grace_ms. Nothing happens when
 * nothing runs. A second call may only shorten the wait. */
void agent_stop(struct agent *a, int signal, uint32_t grace_ms);

/* To the ranks, as they are; they are awake when they are to stop. */

/* Output that has found no reader when the grace is long over is discarded:
 * whoever asked for the stop may have stopped reading. */
void agent_discard_after(struct agent *a, uint32_t grace_ms);

/* Start to leave; the agent does leave once nothing is alive. */
void agent_leave(struct agent *a, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* At the start: the keeper holds ranks. */
void agent_hold(struct agent *a);

/* Are the ranks of this generation there, and not yet ours? */
bool agent_is_place_held(const struct agent *a, uint32_t generation);

/* Say that this node takes no part any more; a member only. `is_clean`: all
 * that ran here is known to have ended, but what is unclean. */
void agent_send_leave(struct agent *a, bool is_clean);

/* The keeper has ended, and the ranks with it. */
void agent_keeper_lost(struct agent *a, const char *how, char **unclean,
                       size_t n);

/* The grace of the job, of held ranks before it is known, else 0. */
uint32_t agent_grace_ms(const struct agent *a);

/* The connection is of no use any more: stop, discard, leave. */
void agent_lost(struct agent *a, const char *why);

/* Who was dialled is there; the connection stands; it could not be made, or has
 * ended; half of the time to join is over, and all of it. */
void agent_reached(struct agent *a);
void agent_connected(struct agent *a, const char *address);
void agent_unconnected(struct agent *a, const char *why);
void agent_join_half(struct agent *a);
void agent_dial(struct agent *a);
void agent_join_overdue(struct agent *a);

/* Anything alive, or output that is not yet out. */
bool agent_is_busy(const struct agent *a);

void agent_forget_unclean(struct agent *a);

/* Idle will name these processes too. */
void agent_add_unclean(struct agent *a, char **unclean, size_t n);

/* An event of the node: of the probes, the ports, the ranks. */
void agent_observe(struct agent *a, const struct agent_event *event);

/* ---- the self-test: agent_probes.c -------------------------------------- */

void agent_selftest_init(struct agent_selftest *t);
void agent_selftest_release(struct agent_selftest *t);

/* What the coordinator says of it. False: it does not fit. */
bool agent_probe_start(struct agent *a, const Gpul__Frame *frame);
bool agent_probe_connect(struct agent *a, const Gpul__Frame *frame);
bool agent_probe_begin(struct agent *a, const Gpul__Frame *frame);
bool agent_probe_ids(struct agent *a, const Gpul__Frame *frame);

void agent_probe_ended(struct agent *a, const struct agent_event *event);

/* End what is alive: probes on devices may abort first, unless `at_once`. */
void agent_stop_probes(struct agent *a, bool at_once);

void agent_probes_tick(struct agent *a);

/* One probe of this kind is alive as number `probe`, and has said nothing. */
void agent_probe_begun(struct agent *a, struct agent_action *start,
                       uint32_t probe, enum agent_probe_kind kind);

/* A phase has begun for a probe on a device: its time begins anew. */
void agent_probes_renew(struct agent *a, bool is_coll);

/* ---- what its probes say: agent_hearing.c -------------------------------- */

void agent_probe_message(struct agent *a, const struct agent_event *event);
void agent_probe_halted(struct agent *a, const struct agent_event *event);
void agent_probe_stage(struct agent *a, const struct agent_event *event);

/* ---- the memory behind it: agent_clear.c -------------------------------- */

/* Has this scout had NVML, which alone tells of memory in use? */
bool agent_clear_can_see(const Gpul__ProbeFacts *facts);
void agent_clear_begin(struct agent *a);
void agent_clear_facts(struct agent *a, const Gpul__ProbeFacts *facts);
void agent_clear_looked(struct agent *a, const char *how);
void agent_clear_tick(struct agent *a);

/* ---- trials between two nodes: agent_pairs.c ----------------------------- */

/* False: out of place. */
bool agent_pair_start(struct agent *a, const Gpul__Frame *frame);
bool agent_pair_order(struct agent *a, const Gpul__Frame *frame);

/* What its probe says, and its end. */
void agent_pair_said(struct agent *a, const Gpul__Frame *frame);
void agent_pair_ended(struct agent *a, const char *how);

/* A round of probes begins; all are killed when this is over. */
void agent_probes_begin(struct agent *a, uint64_t deadline_ms);

/* ---- a check: agent_survey.c --------------------------------------------- */

/* False: out of place. */
bool agent_survey_start(struct agent *a, const Gpul__SurveyStart *start);
bool agent_clock_ping(struct agent *a, const Gpul__ClockPing *ping);

/* The process that looks at the node has failed. */
void agent_survey_failed(struct agent *a, const char *why);

/* ---- addresses: agent_links.c -------------------------------------------- */

/* Is the node ready, and the roster not there yet? Then it is asked for facts
 * and addresses. */
bool agent_is_ready(const struct agent *a);

/* False: out of place. */
bool agent_link_start(struct agent *a, const Gpul__LinkStart *start);
bool agent_link_peers(struct agent *a, const Gpul__LinkPeers *peers);

/* After each event: close what is not needed any more. */
void agent_links_settle(struct agent *a);

/* Start the ranks, or report their environment: agent_messages.c. */
void agent_launch(struct agent *a);

static inline bool agent_is_due(const struct agent *a, uint64_t *deadline_ms)
{
    if (*deadline_ms > a->now_ms) {
        return false;
    }
    *deadline_ms = AGENT_NEVER;
    return true;
}

static inline uint64_t agent_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How long the agent waits for what was sent SIGKILL before it gives it up:
 * half of what the coordinator allows. */
enum { AGENT_GIVE_UP_MS = GPUL_DRAIN_DEADLINE_MS / 2 };

/* One frame of the coordinator. */
void agent_receive(struct agent *a, const Gpul__Frame *frame);

#endif
