/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job stops: who is lost or late, the stop, the restart, and the two
 * last phases. Every path ends in ending_done, which sends the one JobEnd.
 */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "coordinator/core.h"

/* ---- the last words ---- */

static void over(struct rendezvous *r, const char *why)
{
    core_enter(r, PHASE_OVER, NEVER_MS, "%s", why);
    outbox_finish(&r->out, (int)r->outcome.exit_code);
}

static void close_strangers(struct rendezvous *r)
{
    for (uint32_t conn = 0; conn < r->peer_count; conn++) {
        const struct peer *peer = &r->peers[conn];
        if (peer->address != NULL && peer->node == NULL) {
            peers_end(r, conn);
        }
    }
}

/* A job may end before every scout has told: what one has said is enough. */
static Gpul__JobEnd__Doubles doubles(const struct facts *f)
{
    bool is_asked = f->node_count > 0;
    bool is_told = f->settings.count > 0; /* every report adds to these */
    if (f->is_simulated) {
        return GPUL__JOB_END__DOUBLES__SOME;
    }
    return is_asked && !is_told ? GPUL__JOB_END__DOUBLES__UNKNOWN
                                : GPUL__JOB_END__DOUBLES__NONE;
}

static void tell_end(struct rendezvous *r)
{
    char stopped[GPUL_STOPPED_RANKS_BYTES_MAX + 1];
    Gpul__FindingCounts counts;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    outcome_fill(&r->outcome, &end);
    stopped_format(&r->stopped, stopped);
    end.stopped_ranks = stopped;
    end.stopped_count = r->stopped.count;
    end.generation = r->generation;
    end.restarts = r->outcome.restarts;
    end.doubles = doubles(&r->facts);
    end.stranger_count = r->stranger_count;
    end.strangers = r->strangers.bytes;
    if (r->job.is_check) {
        findings_fill(&r->checking.findings, &counts);
        end.findings = &counts;
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB_END;
    frame.job_end = &end;
    core_tell(r, &frame);
}

static void send_finish(struct rendezvous *r)
{
    Gpul__Finish finish = GPUL__FINISH__INIT;
    finish.keeps_logs =
        r->job.keeps_logs || r->outcome.exit_code != OUTCOME_SUCCESS;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_FINISH;
    frame.finish = &finish;
    core_send_all(r, &frame);
}

static void done(struct rendezvous *r)
{
    assert(r->outcome.is_decided);
    away_forget_all(r);
    core_enter(r, PHASE_DONE, LEAVE_DEADLINE_MS, "exit code %u, %s",
               r->outcome.exit_code, r->outcome.text.bytes);
    core_await_all(r);
    r->phase_half_ms = NEVER_MS;
    if (r->job.is_check) {
        checking_interrupted(r);
    }
    tell_end(r);
    r->is_unheard = true;
    relay_discard(r);
    send_finish(r);
    close_strangers(r);
    ending_left(r);
}

void ending_left(struct rendezvous *r)
{
    if (r->phase == PHASE_DONE && r->roster.joined == 0) {
        over(r, "every node has left");
    }
}

static void close_members(struct rendezvous *r)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        if (node_is_here(node)) {
            uint32_t conn = node->conn;
            roster_leave(&r->roster, node);
            peers_end(r, conn);
        }
    }
}

/* ---- the stop ---- */

static void fill_stop(Gpul__Frame *frame, Gpul__Stop *stop,
                      const struct rendezvous *r)
{
    uint64_t kill_ms = r->stop.kill_ms;
    gpul__stop__init(stop);
    stop->signal = r->stop.signal;
    stop->grace_ms = kill_ms > r->now_ms ? (uint32_t)(kill_ms - r->now_ms) : 0;
    *frame = core_frame(r);
    frame->body_case = GPUL__FRAME__BODY_STOP;
    frame->stop = stop;
}

static void send_stop(struct rendezvous *r, uint32_t signal, uint32_t grace_ms)
{
    Gpul__Stop stop;
    Gpul__Frame frame;
    r->stop = (struct stop){signal, r->now_ms + grace_ms};
    fill_stop(&frame, &stop, r);
    core_send_all(r, &frame);
}

void ending_repeat_stop(struct rendezvous *r, const struct node *node)
{
    Gpul__Stop stop;
    Gpul__Frame frame;
    if (r->stop.signal != 0) {
        fill_stop(&frame, &stop, r);
        core_send(r, node, &frame);
    }
}

/* Wait for the members that have something alive; before a new generation also
 * for an agent that has yet to find that nothing is: till then it takes none.
 */
static void await_idle(struct rendezvous *r)
{
    core_await_all(r);
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        bool is_early = r->phase == PHASE_RESTARTING && node->is_resuming;
        if (node->is_idle && !is_early) {
            core_answer(r, node);
        }
    }
}

/* Probes on GPUs have their own grace, since an abort takes its time. */
static uint64_t stop_bound_ms(const struct rendezvous *r)
{
    uint64_t grace_ms = r->job.grace_ms;
    bool has_probes = r->probes.count > 0;
    if (has_probes && grace_ms < ABORT_DEADLINE_MS + ABORT_KILL_MS) {
        grace_ms = ABORT_DEADLINE_MS + ABORT_KILL_MS;
    }
    return grace_ms + GPUL_DRAIN_DEADLINE_MS;
}

/* Of a question that has its answer nobody needs to hear. */
static void tell_stopping(struct rendezvous *r)
{
    bool is_question = r->job.is_env || r->job.is_check;
    if (!is_question || r->outcome.exit_code != 0) {
        core_tell_text(r, GPUL__EVENT__KIND__STOPPING, NULL, "%s",
                       r->outcome.text.bytes);
    }
}

void ending_begin(struct rendezvous *r, uint32_t signal)
{
    assert(r->outcome.is_decided);
    if (r->phase >= PHASE_DRAINING) {
        return;
    }
    if (r->generation == 0) {
        done(r); /* nothing has been started anywhere */
        return;
    }
    core_enter(r, PHASE_DRAINING, stop_bound_ms(r), "%s",
               r->outcome.text.bytes);
    await_idle(r);
    if (signal != 0 && r->pending > 0) {
        tell_stopping(r);
        if (signal == SIGKILL) {
            ending_kill(r);
        } else {
            send_stop(r, signal, r->job.grace_ms);
        }
    }
    if (r->pending == 0) {
        done(r);
    }
}

void ending_kill(struct rendezvous *r)
{
    if (r->phase != PHASE_DRAINING || r->is_killing) {
        return;
    }
    r->is_killing = true;
    outbox_log(&r->out, false, "stopping at once");
    send_stop(r, SIGKILL, 0);
    uint64_t soon_ms = r->now_ms + GPUL_DRAIN_DEADLINE_MS;
    if (soon_ms < r->phase_deadline_ms) {
        r->phase_deadline_ms = soon_ms;
    }
}

void ending_restart(struct rendezvous *r, const char *why)
{
    core_enter(r, PHASE_RESTARTING, stop_bound_ms(r), "%s", why);
    r->suspicion.is_held = false;
    relay_input_end(r);
    core_tell_text(r, GPUL__EVENT__KIND__RETRYING, NULL, "%s", why);
    await_idle(r);
    send_stop(r, SIGTERM, r->job.grace_ms);
    assert(r->pending > 0); /* the node that reported is not idle yet */
}

/* ---- idle ---- */

static void record_unclean(struct rendezvous *r, const struct node *node,
                           char *const *unclean, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        outcome_add_unclean(&r->outcome, node, unclean[i]);
    }
}

static void restart_when_idle(struct rendezvous *r, struct node *node,
                              const Gpul__Idle *idle)
{
    if (idle->n_unclean > 0) {
        outcome_decide(&r->outcome, OUTCOME_INFRASTRUCTURE, "unclean", node,
                       "node %s (%s) cannot start again: %s is still alive",
                       node->name, node_hostname(node), idle->unclean[0]);
        ending_begin(r, SIGKILL);
    } else if (core_answer(r, node)) {
        placing_begin(r, "every node is idle");
    }
}

void ending_idle(struct rendezvous *r, struct node *node,
                 const Gpul__Idle *idle)
{
    bool is_known = node->is_idle && !node->is_resuming;
    if (r->phase < PHASE_REPORTING || r->phase >= PHASE_DONE || is_known) {
        return;
    }
    bool owes_ranks = node->ranks_left > 0 && (r->phase == PHASE_RUNNING ||
                                               r->phase == PHASE_REPORTING);
    if (owes_ranks) {
        peers_lose(r, node, "it called itself idle before its ranks ended");
        return;
    }
    if (!node->is_idle) {
        record_unclean(r, node, idle->unclean, idle->n_unclean);
    }
    node->is_idle = true;
    node->is_resuming = false;
    relay_input_left(r, node);
    if (r->phase == PHASE_RESTARTING) {
        restart_when_idle(r, node, idle);
    } else if (r->phase == PHASE_DRAINING && core_answer(r, node)) {
        done(r);
    }
}

/* ---- loss ---- */

static void lost_before_launch(struct rendezvous *r, struct node *node,
                               const char *why)
{
    outcome_decide(
        &r->outcome, OUTCOME_LOST_EARLY, "node_lost", node,
        "node %s (%s) was lost %s %s: %s", node->name, node_hostname(node),
        phase_is_on_gpus(r->phase) ? "in" : "while", phase_name(r->phase), why);
    ending_begin(r, SIGTERM);
}

static void lost_with_ranks(struct rendezvous *r, struct node *node,
                            const char *why)
{
    if (!node->has_accounted) {
        outcome_add_unclean(&r->outcome, node,
                            "lost; what ran there was not seen to end");
    }
    outcome_decide(&r->outcome, OUTCOME_INFRASTRUCTURE, "node_lost", node,
                   "node %s (%s) was lost while %s: %s", node->name,
                   node_hostname(node), phase_name(r->phase), why);
    ending_begin(r, SIGTERM);
}

void ending_leave(struct rendezvous *r, struct node *node,
                  const Gpul__Leave *leave)
{
    struct text why;
    text_format(&why, "%s", leave->text[0] != 0 ? leave->text : "it left");
    record_unclean(r, node, leave->unclean, leave->n_unclean);
    node->has_accounted = leave->is_clean || leave->n_unclean > 0;
    peers_lose(r, node, why.bytes);
}

void ending_lost(struct rendezvous *r, struct node *node, const char *why)
{
    switch (r->phase) {
    case PHASE_GATHERING:
        r->pending++;
        if (node->last_words != NULL) {
            ending_never_joined(r, node);
        } else if (r->roster.is_open) {
            roster_remove(&r->roster, node);
        }
        return;
    case PHASE_ASSIGNING:
    case PHASE_RESTARTING:
        if (r->launches > 0) {
            lost_with_ranks(r, node, why); /* the command has run before */
        } else {
            lost_before_launch(r, node, why);
        }
        return;
    case PHASE_SURVEY:
    case PHASE_LINKS:
    case PHASE_DIALING:
    case PHASE_PAIRING:
    case PHASE_FACTS:
    case PHASE_CUDA:
    case PHASE_UID:
    case PHASE_INIT:
    case PHASE_COLL:
    case PHASE_END:
    case PHASE_LISTENING:
    case PHASE_PROBING:
    case PHASE_REPORTING:
        lost_before_launch(r, node, why);
        return;
    case PHASE_RUNNING:
        if (!node->is_idle) {
            lost_with_ranks(r, node, why);
        }
        return;
    case PHASE_DRAINING:
        if (!node->has_answered) {
            if (!node->has_accounted) {
                outcome_add_unclean(&r->outcome, node, "lost while it stopped");
            }
            if (core_answer(r, node)) {
                done(r);
            }
        }
        return;
    default:
        return;
    }
}

/* ---- deadlines ---- */

static void decide_late(struct rendezvous *r, const char *what,
                        uint64_t bound_ms)
{
    struct text names;
    char duration[UNITS_TEXT_BYTES];
    uint32_t missing = core_missing(r, &names);
    gpul_format_duration(duration, bound_ms);
    outcome_decide(&r->outcome, OUTCOME_DEADLINE, "deadline", NULL,
                   "%u of %u nodes %s within %s; missing: %s",
                   r->roster.count - missing, r->roster.count, what, duration,
                   names.bytes);
    ending_begin(r, SIGTERM);
}

static void decide_late_on_gpus(struct rendezvous *r, uint64_t bound_ms)
{
    struct waiting waiting;
    char duration[UNITS_TEXT_BYTES];
    core_waiting(r, &waiting);
    gpul_format_duration(duration, bound_ms);
    outcome_decide(&r->outcome, OUTCOME_DEADLINE, "deadline", NULL,
                   "%s: %u of %u %s after %s; missing: %s",
                   phase_name(r->phase), waiting.have, waiting.need,
                   waiting.unit, duration, waiting.missing.bytes);
    ending_begin(r, SIGTERM);
}

static void name_unclean(struct rendezvous *r, const char *what)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        if (!r->roster.nodes[i].has_answered) {
            outcome_add_unclean(&r->outcome, &r->roster.nodes[i], what);
        }
    }
}

static void restart_late(struct rendezvous *r)
{
    struct text names;
    core_missing(r, &names);
    outcome_decide(&r->outcome, OUTCOME_INFRASTRUCTURE, "unclean", NULL,
                   "the %s again on: %s",
                   r->launches > 0
                       ? "ranks could not be stopped to start them"
                       : "self-test could not be stopped to begin it",
                   names.bytes);
    ending_begin(r, SIGKILL);
}

static void drain_late(struct rendezvous *r)
{
    /* Output that waits for the user's own terminal is no fault of a node. */
    if (r->uncredited_bytes > 0 && !r->is_impatient) {
        r->phase_deadline_ms = r->now_ms + stop_bound_ms(r);
        return;
    }
    name_unclean(r, "did not become idle in time");
    done(r);
}

void ending_deadline(struct rendezvous *r)
{
    switch (r->phase) {
    case PHASE_START:
        outcome_decide(&r->outcome, OUTCOME_INTERNAL, "internal", NULL,
                       "the front end sent no job");
        ending_begin(r, 0);
        return;
    case PHASE_GATHERING:
        decide_late(r, "joined", r->job.join_timeout_ms);
        return;
    case PHASE_ASSIGNING:
        decide_late(r, "took their places", GPUL_READY_DEADLINE_MS);
        return;
    case PHASE_SURVEY:
        decide_late(r, "told their facts", checking_bound_ms(r));
        return;
    case PHASE_LINKS:
        decide_late(r, "told where they listen", linking_bound_ms(r));
        return;
    case PHASE_DIALING:
        decide_late(r, "dialled the others", linking_bound_ms(r));
        return;
    case PHASE_PAIRING:
        decide_late(r, pairphase_doing(r), pairphase_bound_ms(r));
        return;
    case PHASE_FACTS:
    case PHASE_CUDA:
    case PHASE_UID:
    case PHASE_INIT:
    case PHASE_END:
        decide_late_on_gpus(r, r->job.listen_deadline_ms);
        return;
    case PHASE_COLL:
        decide_late_on_gpus(r, r->job.run_deadline_ms);
        return;
    case PHASE_LISTENING:
        decide_late(r, "started their probe of the self-test",
                    r->job.listen_deadline_ms);
        return;
    case PHASE_PROBING:
        decide_late(r, "finished the all-reduce of the self-test",
                    r->job.run_deadline_ms);
        return;
    case PHASE_REPORTING:
        decide_late(r, "reported", GPUL_READY_DEADLINE_MS);
        return;
    case PHASE_RESTARTING:
        restart_late(r);
        return;
    case PHASE_DRAINING:
        drain_late(r);
        return;
    case PHASE_DONE:
        close_members(r);
        over(r, "some nodes did not leave in time");
        return;
    default:
        return;
    }
}
