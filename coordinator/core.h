/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a rendezvous, shared by the files that move it. Not for
 * others: they include coordinator/rendezvous.h.
 *
 *   rendezvous.c  dispatch, time, invariants
 *   core.c        phases, frames, events for the user
 *   peers.c       connections: open, silent, gone
 *   hello.c       who gets in
 *   away.c        nodes whose agent has died, and its successor
 *   operator.c    the front end's words
 *   placing.c     ranks given out, ports reported
 *   checking.c    mode CHECK: facts, findings and their end (checking.h)
 *   linking.c     nodes that dial each other, and the addresses they get
 *   pairphase.c, pairreport.c  pairs of nodes are measured (pairphase.h)
 *   members.c     who is where, for the front end
 *   selftest.c    which self-test, the one on host memory, its failures
 *   gputest.c     the self-test on GPUs
 *   running.c     launch, exits, success
 *   relay.c       output, credit, notices, environment reports, signals
 *   relay_input.c standard input and its credit (relay_input.h)
 *   hang.c        training that hangs
 *   ending.c      stop, restart, drain, done
 *
 * Happy path: operator_message(Job) -> hello_judge for each node ->
 * placing_begin -> linking_begin -> selftest_begin -> running_begin ->
 * ending_begin -> ending_done. What does not fit the phase or the generation is
 * dropped: it is the normal race with what was just sent.
 */
#ifndef COORDINATOR_CORE_H
#define COORDINATOR_CORE_H

#include "common/minheap.h"
#include "coordinator/assign.h"
#include "coordinator/checking.h"
#include "coordinator/culprit.h"
#include "coordinator/facts.h"
#include "coordinator/guests.h"
#include "coordinator/ids.h"
#include "coordinator/input.h"
#include "coordinator/job.h"
#include "coordinator/links.h"
#include "coordinator/missing.h"
#include "coordinator/notices.h"
#include "coordinator/outbox.h"
#include "coordinator/outcome.h"
#include "coordinator/pace.h"
#include "coordinator/pairphase.h"
#include "coordinator/phase.h"
#include "coordinator/probes.h"
#include "coordinator/relay_input.h"
#include "coordinator/rendezvous.h"
#include "coordinator/roster.h"
#include "coordinator/stalls.h"
#include "coordinator/stopped.h"
#include "coordinator/verdict.h"

#define NEVER_MS UINT64_MAX

enum {
    /* Connections beyond one for each node: strangers, and nodes that come
     * back before their old connection is known to be gone. */
    PEERS_EXTRA = 256,
    /* The front end sends its Job at once. */
    START_DEADLINE_MS = 30000,
    /* After Finish a node only has to close its connection. */
    LEAVE_DEADLINE_MS = 5000,
    /* A TICK this late means that this process did not run, or the machine
     * slept: what looks like silence of a node is then our own. */
    STALL_MS = 1000,
    /* Refusals that are told to the front end; a flood of them is not. The
     * same for nodes that are away. */
    REFUSALS_TOLD_MAX = 64,
    AWAYS_TOLD_MAX = 128,
    /* An agent that is started again at once is worth one line, not two. */
    AWAY_TELL_MS = 1000,
    /* Before the launch a generation is begun anew this often because a node
     * has a new agent; agents that go on dying have a reason. */
    ANEW_MAX = 2,
    UNITS_TEXT_BYTES = 32, /* what gpul_format_duration may write */
    /* An error that only tells of another probe's end waits so long for that
     * one's own. */
    REMOTE_HOLD_MS = 500,
    /* A probe on host memory gives up so long before its phase does: whoever
     * waited for a silent one has said so by then, and only that one is
     * missing. It covers the agent's kill of a probe that hangs. */
    PROBE_SLACK_MS = 4000,
    /* A probe on a GPU that has said nothing for longer may be silent. */
    SILENCE_MS_MIN = 2000,
    /* A stuck ncclCommAbort is left behind after this; the agent's SIGKILL
     * follows a second later. */
    ABORT_DEADLINE_MS = 10000,
    ABORT_KILL_MS = 1000,
};

struct peer {
    char *address;     /* NULL: this connection does not exist */
    char *name;        /* whose key it has shown; NULL: none was asked for */
    struct node *node; /* NULL: has not said Hello yet */
    struct pace pace;
};

/* A failure of the self-test that may be the consequence of another. */
struct suspicion {
    bool is_held;
    uint64_t due_ms; /* when it counts as the cause */
    const struct node *node;
    struct text why;
};

/* What was last sent to all, for a node that comes back meanwhile. */
struct stop {
    uint32_t signal;  /* 0: nothing is being stopped */
    uint64_t kill_ms; /* when its grace is over */
};

/* What a phase still lacks. */
struct waiting {
    uint32_t have;
    uint32_t need;
    const char *unit;    /* "nodes", "ranks", "roots" */
    struct text missing; /* who */
};

struct rendezvous {
    struct rendezvous_config config;
    uint64_t now_ms;
    uint64_t real_ns; /* the same by the date; to compare clocks only */
    struct outbox out;

    enum phase phase;
    uint64_t phase_deadline_ms;
    uint64_t phase_half_ms; /* when WAITING is said */
    uint64_t job_deadline_ms;
    uint64_t warning_at_ms; /* when job.warning_signal is due */
    uint32_t pending;       /* nodes that the phase still waits for */

    struct job job;
    struct roster roster;
    struct gpul_rolemap roles;
    uint32_t world_size;
    uint32_t generation; /* 0: nobody has a place yet */

    struct peer *peers; /* by connection */
    uint32_t peer_count;
    struct guests guests;         /* those of them that have said no Hello */
    struct gpul_minheap silences; /* by connection: Hello or lease is due */
    struct gpul_minheap aways;    /* by node: how long it is waited for */
    uint32_t aways_told;
    uint32_t anew_count; /* generations begun anew before the launch */

    struct links links; /* empty but in LINKS and DIALING */
    struct gpul_buf roster_frames;
    uint32_t launches; /* so far; the attempt, from 1 */
    bool is_launched;  /* the ranks of this generation */
    struct stop stop;
    struct verdict verdict;
    struct suspicion suspicion;
    struct facts facts;   /* these four are empty but in a self-test on */
    struct probes scouts; /* GPUs; by node, what each has said */
    struct probes probes;
    struct ids ids;
    struct pairtest pairtest; /* empty but in PAIRING */
    struct checking checking; /* empty but in mode CHECK */

    uint64_t *rank_ended; /* bits, by rank */
    struct stopped stopped;
    uint32_t ranks_left;
    uint32_t deciders_left; /* ranks whose 0 the success rule wants */
    uint32_t avoid_ports[GPUL_AVOID_PORTS_MAX];
    size_t avoid_count;
    bool has_retried;

    struct outcome outcome;
    bool is_killing;   /* SIGKILL was sent */
    bool is_impatient; /* the user wants out: nothing waits for output */
    bool is_unheard;   /* the front end is gone, or has its JobEnd */
    uint64_t uncredited_bytes; /* relayed Output the front end still holds */
    struct input input;
    struct stalls stalls;
    uint32_t refusals_told;
    struct notices notices;
    uint64_t stranger_count; /* connections without the job's key, and */
    struct text strangers;   /* what they were */
};

/* ---- core.c ---- */

/* Move on, because of `why`, and wait there for at most `bound_ms`
 * (NEVER_MS: no bound of the phase itself). */
void core_enter(struct rendezvous *r, enum phase to, uint64_t bound_ms,
                const char *why, ...) __attribute__((format(printf, 4, 5)));

/* Wait for an answer of every member, those that are away included. */
void core_await_all(struct rendezvous *r);

/* `node` has given it. Returns true when it was the last. */
bool core_answer(struct rendezvous *r, struct node *node);

/* Which nodes the phase waits for. Returns how many. */
uint32_t core_missing(const struct rendezvous *r, struct text *names);

/* The same for any phase, in its own units, or the nodes that are away where
 * the phase cannot end without them. */
void core_waiting(const struct rendezvous *r, struct waiting *out);

/* Frames to nodes, with epoch and generation. The body is set by the caller.
 */
Gpul__Frame core_frame(const struct rendezvous *r);
void core_send(struct rendezvous *r, const struct node *node,
               const Gpul__Frame *frame);
void core_send_all(struct rendezvous *r, const Gpul__Frame *frame);
void core_send_all_bytes(struct rendezvous *r, const struct gpul_buf *frames);

/* To the front end; nothing happens once it is gone or has its JobEnd. */
void core_tell(struct rendezvous *r, Gpul__Frame *frame);
void core_tell_event(struct rendezvous *r, Gpul__Event *event);

/* An event with no more than a node (may be NULL) and a text. */
void core_tell_text(struct rendezvous *r, Gpul__Event__Kind kind,
                    const struct node *node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A node has come, left, is away or back: with how many are here of all. */
void core_tell_member(struct rendezvous *r, Gpul__Event__Kind kind,
                      const struct node *node, const char *text);

/* ---- peers.c ---- */

void peers_open(struct rendezvous *r, uint32_t conn, const char *address,
                const char *name);
void peers_closed(struct rendezvous *r, uint32_t conn, const char *why);

/* The peer has shown life: it is next due within `ms`. */
void peers_expect(struct rendezvous *r, uint32_t conn, uint64_t ms);

/* Say why not, and end the connection. */
void peers_refuse(struct rendezvous *r, uint32_t conn,
                  Gpul__Refuse__Reason reason, const char *text);

/* The same without a word to the user, who knows it by what came before. */
void peers_turn_away(struct rendezvous *r, uint32_t conn,
                     Gpul__Refuse__Reason reason, const char *text);

/* End the connection and forget it; a member must have left before. */
void peers_end(struct rendezvous *r, uint32_t conn);

/* A node that has no connection any more is lost: say so, and do what its
 * loss asks for. */
void peers_depart(struct rendezvous *r, struct node *node, const char *why);

/* The same, with the reason that the front end has told before. False: it has
 * told none, or a node of its name may yet come. */
bool peers_depart_gone(struct rendezvous *r, struct node *node);

/* A member broke a rule, fell silent or left: end its connection, and do what
 * its loss asks for. */
void peers_lose(struct rendezvous *r, struct node *node, const char *why);

/* Silent ones, at a TICK. `is_late`: see STALL_MS. */
void peers_tick(struct rendezvous *r, bool is_late);

/* ---- hello.c ---- */

void hello_judge(struct rendezvous *r, uint32_t conn, const Gpul__Frame *frame);

/* It is in, by this connection, and hears so. False: no memory is left. */
bool hello_let_in(struct rendezvous *r, uint32_t conn, struct node *node,
                  const Gpul__Hello *hello);

/* ---- away.c ---- */

/* The connection of `node` is gone, because of `why`. False: no other agent
 * of it is waited for. */
bool away_begin(struct rendezvous *r, struct node *node, const char *why);

/* Why a node is lost instead, better known than `why`. */
const char *away_words(const struct rendezvous *r, const struct node *node,
                       const char *why);

/* Is it the next agent of this node's keeper, and of use? */
bool away_may_end(const struct rendezvous *r, const struct node *node,
                  const Gpul__Hello *hello);

/* It is: let it in on `conn`, and tell it where the job is. */
void away_end(struct rendezvous *r, uint32_t conn, struct node *node,
              const Gpul__Hello *hello);

/* Wait no longer for `node`, if it is away; for any. */
void away_forget(struct rendezvous *r, struct node *node);
void away_forget_all(struct rendezvous *r);

/* Those whose time is over, at a TICK. `is_late`: see STALL_MS. */
void away_tick(struct rendezvous *r, bool is_late);

/* ---- operator.c ---- */

void operator_message(struct rendezvous *r, const Gpul__Frame *frame);
void operator_closed(struct rendezvous *r);

/* timeout_ms of the job has passed. */
void operator_timeout(struct rendezvous *r);

/* ---- placing.c ---- */

/* Everybody is here, or idle after a restart: give out the places. */
void placing_begin(struct rendezvous *r, const char *why);
void placing_ready(struct rendezvous *r, struct node *node,
                   const Gpul__Ready *ready);

/* The addresses stand: send the roster, and go on. */
void placing_announce(struct rendezvous *r, const char *why);

/* Tell a node that has come back the job and its place. */
void placing_repeat(struct rendezvous *r, const struct node *node);

/* ---- linking.c ---- */

/* Everybody is ready: prove the addresses, if there is anything to prove. */
void linking_begin(struct rendezvous *r, const char *why);
void linking_listening(struct rendezvous *r, struct node *node,
                       const Gpul__LinkListening *listening);
void linking_report(struct rendezvous *r, struct node *node,
                    const Gpul__LinkReport *report);

/* Of each of its two phases. */
uint32_t linking_bound_ms(const struct rendezvous *r);

/* ---- members.c ---- */

/* All nodes; LINKS_FAILED: those that do not reach each other. */
void members_tell(struct rendezvous *r, Gpul__Event__Kind kind);

/* ---- selftest.c ---- */

void selftest_begin(struct rendezvous *r, const char *why);

/* One a generation; nobody can guess it. */
uint64_t selftest_token(const struct rendezvous *r);

/* On host memory, whatever was looked at before. */
void selftest_begin_on_host(struct rendezvous *r, const char *why);

/* Start what every node starts with: its probe on host memory, or its scout.
 */
void selftest_send_starts(struct rendezvous *r,
                          Gpul__SelfTest__Backend backend);

void selftest_listening(struct rendezvous *r, struct node *node,
                        const Gpul__ProbeListening *listening);
void selftest_result(struct rendezvous *r, struct node *node,
                     const Gpul__ProbeResult *result);

/* Every result was good: judge the speed, and go on to the launch. */
void selftest_pass(struct rendezvous *r, const struct verdict_world *world);

/* The job ends by this. */
void selftest_fail(struct rendezvous *r, enum outcome_code code,
                   const struct node *node, const char *why);

/* A result is not good: the job ends by it, but only after a while if it
 * tells of another probe's end or silence. */
void selftest_blame(struct rendezvous *r, enum verdict_kind kind,
                    const struct node *node, const char *why, bool is_remote);

/* Nobody else came up: what was held back is the cause. */
void selftest_convict(struct rendezvous *r);

/* Say behind `why` who is slow, as far as the times tell. Returns its node,
 * NULL: unknown. */
const struct node *selftest_slowest(const struct rendezvous *r,
                                    struct text *why,
                                    const struct verdict_world *world);

/* "nccl", "host-tcp" or "double". */
const char *selftest_backend(const struct rendezvous *r);

/* ---- gputest.c ---- */

/* Have every node look at its libraries and devices. */
void gputest_begin(struct rendezvous *r, const char *why);
void gputest_facts(struct rendezvous *r, struct node *node,
                   const Gpul__ProbeFacts *report);
void gputest_id(struct rendezvous *r, struct node *node,
                const Gpul__ProbeId *id);
void gputest_phase(struct rendezvous *r, struct node *node,
                   const Gpul__ProbePhase *phase);
void gputest_result(struct rendezvous *r, struct node *node,
                    const Gpul__ProbeResult *result);

/* See core_waiting; for the phases that wait for probes. */
void gputest_waiting(const struct rendezvous *r, struct waiting *out);

/* In phase facts: how the scout is that holds it up, behind the names of the
 * nodes that are missing. */
void gputest_append_scout(struct text *out, const struct rendezvous *r);

void gputest_release(struct rendezvous *r);

/* ---- running.c ---- */

void running_begin(struct rendezvous *r, const char *why);
void running_exits(struct rendezvous *r, struct node *node,
                   const Gpul__Exits *exits);

/* Tell a node that has come back who is where, and that its ranks run. */
void running_repeat(struct rendezvous *r, const struct node *node);

bool running_has_ended(const struct rendezvous *r, uint32_t rank);

/* The last report of this rank has come. */
void running_reported(struct rendezvous *r, struct node *node, uint32_t rank);

/* ---- relay.c ---- */

void relay_output(struct rendezvous *r, struct node *node,
                  const Gpul__Output *output);
void relay_credit(struct rendezvous *r, const Gpul__Credit *credit);
void relay_notice(struct rendezvous *r, struct node *node,
                  const Gpul__Notice *notice);
void relay_env_report(struct rendezvous *r, struct node *node,
                      const Gpul__EnvReport *report);

/* This node gets a new connection: what the front end still has of the old one
 * is not credited to it. */
void relay_write_off(struct node *node);

/* The front end is gone: give all credit back in its stead. */
void relay_discard(struct rendezvous *r);

/* For all ranks, as long as some may run. Returns whether it was sent. */
bool relay_signal(struct rendezvous *r, uint32_t number);

/* The job's warning before its time limit is due. */
void relay_warning(struct rendezvous *r);

/* ---- hang.c ---- */

void hang_stall(struct rendezvous *r, const struct node *node,
                const Gpul__Stall *stall);

/* The report that is due. */
void hang_tick(struct rendezvous *r);

/* Remember it if the output of this node is held up now. */
void hang_hold(struct rendezvous *r, const struct node *node);
uint64_t hang_due_ms(const struct rendezvous *r);

/* ---- ending.c ---- */

/* The outcome is decided: stop the ranks with `signal` (SIGKILL: without
 * grace; 0: all have ended by themselves), wait for the nodes to be idle, and
 * end. */
void ending_begin(struct rendezvous *r, uint32_t signal);

/* Stop without grace whatever is being stopped. */
void ending_kill(struct rendezvous *r);

/* Stop the ranks to start them again, since `why`. */
void ending_restart(struct rendezvous *r, const char *why);

void ending_idle(struct rendezvous *r, struct node *node,
                 const Gpul__Idle *idle);

/* Stop what a node runs that has come back while all others are stopped. */
void ending_repeat_stop(struct rendezvous *r, const struct node *node);

/* A node that will not come: decide by what is known of it. */
void ending_never_joined(struct rendezvous *r, const struct node *node);

/* The worker of this node has ended, with these last words. */
void ending_node_gone(struct rendezvous *r, struct node *node, uint32_t why,
                      const char *words);

/* A member says that it takes no part any more. */
void ending_leave(struct rendezvous *r, struct node *node,
                  const Gpul__Leave *leave);

/* A member is gone, before DONE: free its place, or end the job by it. The
 * place may be another node's next; nothing is to be read from it. */
void ending_lost(struct rendezvous *r, struct node *node, const char *why);

/* The bound of the current phase is reached. */
void ending_deadline(struct rendezvous *r);

/* The last connection of a member is gone after Finish. */
void ending_left(struct rendezvous *r);

#endif
