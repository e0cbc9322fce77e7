/* SPDX-License-Identifier: Apache-2.0
 *
 * How ranks are stopped, how the keeper leaves, and its agent as a process.
 */
#include <assert.h>
#include <signal.h>

#include "worker/keeping_internal.h"

struct keeping_action *keeping_put(struct keeping_actions *actions,
                                   enum keeping_action_type type)
{
    assert(actions->count < KEEPING_ACTIONS_MAX);
    struct keeping_action *action = &actions->items[actions->count++];
    *action = (struct keeping_action){.type = type};
    return action;
}

bool keeping_has_ranks(const struct keeping *k)
{
    return k->generation != 0 && !k->is_gone;
}

/* ---- stopping ------------------------------------------------------------ */

/* Ranks that were passed SIGTSTP have it before them still, maybe: only
 * SIGCONT takes that back, so a look at who is stopped would not do. */
static void resume(struct keeping *k, struct keeping_actions *actions)
{
    struct keeping_action *action = keeping_put(actions, KEEPING_DO_PASS);
    action->signal = SIGCONT;
    action->slot = KEEPER_ALL_SLOTS;
    k->is_suspended = false;
}

void keeping_signal_all(struct keeping *k, int32_t signal, uint64_t now_ms,
                        struct keeping_actions *actions)
{
    if (k->is_suspended && signal != SIGKILL) {
        resume(k, actions);
    }
    k->stop_signal = signal;
    k->sweep_at_ms = signal == SIGKILL ? now_ms + KEEPING_SWEEP_MS : NEVER;
    keeping_put(actions, KEEPING_DO_STOP)->signal = signal;
}

void keeping_finish_ranks(struct keeping *k, struct keeping_actions *actions)
{
    k->is_gone = true;
    k->owes_gone = k->telling != KEEPING_TELLS_NOBODY;
    k->stop_signal = 0;
    k->sweep_at_ms = NEVER;
    k->orphan_at_ms = NEVER;
    keeping_put(actions, KEEPING_DO_FINISH);
}

void keeping_kill_all(struct keeping *k, uint64_t now_ms,
                      struct keeping_actions *actions)
{
    k->stop_at_ms = now_ms + KEEPING_KILL_MS;
    keeping_signal_all(k, SIGKILL, now_ms, actions);
}

/* ---- leaving ------------------------------------------------------------- */

/* The first reason to leave sets the exit code. Without ranks, or when they
 * have been sent SIGKILL already, there is nobody to be gentle with. */
void keeping_start_leaving(struct keeping *k, int exit_code, const char *why,
                           uint64_t now_ms, struct keeping_actions *actions)
{
    if (k->state == KEEPING_LEAVING) {
        return;
    }
    bool is_gentle = keeping_has_ranks(k) && k->stop_signal != SIGKILL;
    k->state = KEEPING_LEAVING;
    k->exit_code = exit_code;
    k->why = why;
    k->fork_at_ms = NEVER;
    k->orphan_at_ms = NEVER;
    k->leave_by_ms = NEVER;
    if (is_gentle) {
        k->stop_at_ms = now_ms + k->grace_ms;
        keeping_signal_all(k, SIGTERM, now_ms, actions);
    } else {
        keeping_kill_all(k, now_ms, actions);
    }
}

static void end(struct keeping *k, struct keeping_actions *actions)
{
    k->stop_at_ms = NEVER;
    k->sweep_at_ms = NEVER;
    k->agent_end_by_ms = NEVER;
    struct keeping_action *action = keeping_put(actions, KEEPING_DO_LEAVE);
    action->exit_code = k->exit_code;
    action->text = k->why;
}

/* No descendant is left. An agent that is still there ends now, and what its
 * probes leave is looked for once more. */
void keeping_none_left_leaving(struct keeping *k, uint64_t now_ms,
                               struct keeping_actions *actions)
{
    if (!k->is_gone) {
        keeping_finish_ranks(k, actions);
    }
    if (k->agent_pid == 0) {
        end(k, actions);
        return;
    }
    k->is_done = true;
    k->stop_at_ms = NEVER;
    k->sweep_at_ms = NEVER;
    if (k->agent_end_by_ms == NEVER) {
        k->agent_end_by_ms = now_ms + KEEPING_LINGER_MS;
    }
}

/* What would not end is left, an agent with it: nothing is waited for. */
void keeping_give_up_waiting(struct keeping *k, struct keeping_actions *actions)
{
    if (k->agent_pid != 0) {
        keeping_put(actions, KEEPING_DO_KILL_AGENT);
    }
    end(k, actions);
}

void keeping_attach(struct keeping *k)
{
    k->is_attached = true;
    k->failures = 0;
    k->retries = 0;
    k->orphan_at_ms = NEVER;
}

/* ---- the agent as a process ---------------------------------------------- */

static void retry(struct keeping *k, uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)k->retries * KEEPING_RETRY_STEP_MS;
    k->fork_at_ms =
        now_ms +
        (delay_ms < KEEPING_RETRY_MAX_MS ? delay_ms : KEEPING_RETRY_MAX_MS);
    k->retries++;
}

/* Whoever had attached leaves an orphan time-out behind, for the first agent
 * after it that attaches. */
static void on_agent_lost(struct keeping *k, uint64_t now_ms,
                          struct keeping_actions *actions)
{
    bool is_failure =
        !k->is_attached && now_ms - k->agent_since_ms < KEEPING_SHORT_LIFE_MS;
    k->failures = is_failure ? k->failures + 1 : 0;
    k->is_attached = false;
    if (keeping_has_ranks(k) && k->orphan_at_ms == NEVER) {
        k->orphan_at_ms = now_ms + k->orphan_ms;
    }
    if (k->left_for != 0) {
        keeping_start_leaving(k, KEEPING_EXIT_SIGNALED + k->left_for,
                              KEEPING_STOPPED_TEXT, now_ms, actions);
    } else if (k->failures >= KEEPING_FAILURES_MAX) {
        keeping_start_leaving(k, KEEPING_EXIT_FAILED,
                              "its agent failed five times in a row", now_ms,
                              actions);
    } else {
        retry(k, now_ms);
    }
}

static void forget_agent(struct keeping *k)
{
    k->agent_pid = 0;
    k->telling = KEEPING_TELLS_NOBODY;
    k->owed_signals = 0;
    k->agent_end_by_ms = NEVER;
}

void keeping_agent_ended(struct keeping *k, uint64_t now_ms,
                         struct keeping_actions *actions)
{
    forget_agent(k);
    if (k->state != KEEPING_LEAVING) {
        on_agent_lost(k, now_ms, actions);
    } else if (k->is_done) {
        keeping_kill_all(k, now_ms, actions);
    }
}

void keeping_agent_started(struct keeping *k, const struct keeping_event *event,
                           struct keeping_actions *actions)
{
    k->agent_since_ms = event->now_ms;
    if (event->pid == 0) {
        on_agent_lost(k, event->now_ms, actions);
        return;
    }
    k->agent_pid = event->pid;
    k->telling = KEEPING_TELLS_STATE;
    k->agent++;
}
