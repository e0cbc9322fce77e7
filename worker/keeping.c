/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeping.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "worker/keeping_internal.h"

void keeping_init(struct keeping *k, uint64_t instance)
{
    k->state = KEEPING_IDLE;
    k->instance = instance;
    k->fork_at_ms = 0;
    k->orphan_at_ms = NEVER;
    k->stop_at_ms = NEVER;
    k->sweep_at_ms = NEVER;
    k->leave_by_ms = NEVER;
    k->agent_end_by_ms = NEVER;
}

int64_t keeping_find_slot(const struct keeping *k, int32_t pid)
{
    for (uint32_t i = 0; i < k->rank_count; i++) {
        if (k->slots[i].state == KEEPING_ALIVE && k->slots[i].pid == pid) {
            return i;
        }
    }
    return -1;
}

/* ---- packets of the agent ------------------------------------------------ */

static void on_begin(struct keeping *k, const struct keeper_packet *p,
                     struct keeping_actions *actions)
{
    if (k->state != KEEPING_IDLE || k->telling != KEEPING_TELLS_NEWS ||
        p->generation == 0 || p->rank_count == 0 ||
        p->rank_count > GPUL_RANKS_PER_NODE_MAX) {
        return;
    }
    memset(k->slots, 0, k->rank_count * sizeof(k->slots[0]));
    k->state = KEEPING_RUNNING;
    k->generation = p->generation;
    k->attempt = p->attempt;
    k->first_rank = p->first_rank;
    k->rank_count = p->rank_count;
    k->grace_ms = p->grace_ms;
    k->orphan_ms = p->orphan_ms;
    k->is_suspended = false;
    k->tried = 0;
    k->alive = 0;
    k->owing = 0;
    k->cursor = 0;
    k->undertakers = 1;
    k->unclean_count = 0;
    k->told_unclean = 0;
    k->is_gone = false;
    k->owes_gone = false;
    keeping_put(actions, KEEPING_DO_BEGIN);
}

static void owe(struct keeping *k, bool *flag)
{
    if (k->telling != KEEPING_TELLS_NOBODY && !*flag) {
        *flag = true;
        k->owing++;
    }
}

static void refuse_start(struct keeping *k, struct keeping_slot *s,
                         int32_t exec_errno, const char *text)
{
    s->state = KEEPING_FAILED;
    s->exec_errno = exec_errno != 0 ? exec_errno : EINVAL;
    size_t n = strlen(text);
    n = n < sizeof(s->text) ? n : sizeof(s->text) - 1;
    memcpy(s->text, text, n);
    s->text[n] = 0;
    k->tried++;
    owe(k, &s->owes_started);
}

/* A slot that has been tried is another agent's: the present one was told. */
static void on_start(struct keeping *k, const struct keeper_packet *p,
                     struct keeping_actions *actions)
{
    bool has_slots = keeping_has_ranks(k) && k->state != KEEPING_IDLE;
    if (!has_slots || p->slot >= k->rank_count ||
        k->slots[p->slot].state != KEEPING_EMPTY) {
        return;
    }
    if (k->state != KEEPING_RUNNING) {
        refuse_start(k, &k->slots[p->slot], ECANCELED,
                     "the ranks are being stopped");
        return;
    }
    keeping_put(actions, KEEPING_DO_START)->slot = p->slot;
}

static void on_stop(struct keeping *k, const struct keeper_packet *p,
                    uint64_t now_ms, struct keeping_actions *actions)
{
    if (p->signal <= 0 || p->signal > (int32_t)GPUL_SIGNAL_MAX ||
        k->state == KEEPING_LEAVING) {
        return;
    }
    k->state = KEEPING_STOPPING;
    keeping_signal_all(k, p->signal, now_ms, actions);
}

static void on_pass(struct keeping *k, const struct keeper_packet *p,
                    struct keeping_actions *actions)
{
    bool is_slot = p->slot == KEEPER_ALL_SLOTS || p->slot < k->rank_count;
    if (p->signal <= 0 || p->signal > (int32_t)GPUL_SIGNAL_MAX || !is_slot) {
        return;
    }
    struct keeping_action *action = keeping_put(actions, KEEPING_DO_PASS);
    action->signal = p->signal;
    action->slot = p->slot;
    if (p->signal == SIGTSTP) {
        k->is_suspended = true;
    } else if (p->signal == SIGCONT && p->slot == KEEPER_ALL_SLOTS) {
        k->is_suspended = false;
    }
}

/* The rank finds its input at its end once the agent has closed it too. */
static void on_close(struct keeping *k, const struct keeper_packet *p,
                     struct keeping_actions *actions)
{
    if (p->slot < k->rank_count && k->slots[p->slot].has_input) {
        k->slots[p->slot].has_input = false;
        k->slots[p->slot].kept_fds--;
        keeping_put(actions, KEEPING_DO_CLOSE)->slot = p->slot;
    }
}

static void on_abandon(struct keeping *k, struct keeping_actions *actions)
{
    if (k->state == KEEPING_LEAVING || k->state == KEEPING_IDLE) {
        return;
    }
    k->unclean_count = 0;
    k->told_unclean = 0;
    k->state = KEEPING_IDLE;
    keeping_put(actions, KEEPING_DO_LIST);
    keeping_finish_ranks(k, actions);
}

static void on_leave(struct keeping *k, const struct keeper_packet *p,
                     uint64_t now_ms, struct keeping_actions *actions)
{
    keeping_start_leaving(k, p->status & 255, NULL, now_ms, actions);
    k->agent_end_by_ms = now_ms + KEEPING_AGENT_END_MS;
}

static void on_packet(struct keeping *k, const struct keeping_event *event,
                      struct keeping_actions *actions)
{
    const struct keeper_packet *p = event->packet;
    switch (p->type) {
    case KEEPER_BEGIN:
        keeping_attach(k);
        on_begin(k, p, actions);
        break;
    case KEEPER_START:
        keeping_attach(k);
        on_start(k, p, actions);
        break;
    case KEEPER_ATTACHED:
        keeping_attach(k);
        break;
    case KEEPER_STOP:
        on_stop(k, p, event->now_ms, actions);
        break;
    case KEEPER_PASS:
        on_pass(k, p, actions);
        break;
    case KEEPER_CLOSE:
        on_close(k, p, actions);
        break;
    case KEEPER_ABANDON:
        on_abandon(k, actions);
        break;
    case KEEPER_ASK:
        k->owes_alive = true;
        break;
    case KEEPER_LEAVE:
        on_leave(k, p, event->now_ms, actions);
        break;
    default: /* one of ours: nonsense from an agent */
        break;
    }
}

/* ---- ranks --------------------------------------------------------------- */

static void on_started(struct keeping *k, const struct keeping_event *event)
{
    struct keeping_slot *s = &k->slots[event->slot];
    assert(event->slot < k->rank_count && s->state == KEEPING_EMPTY);
    s->started_ms = event->now_ms;
    if (event->pid == 0) {
        refuse_start(k, s, event->exec_errno, event->text);
        return;
    }
    s->state = KEEPING_ALIVE;
    s->pid = event->pid;
    s->kept_fds = event->kept_fds;
    s->has_input = event->has_input;
    k->tried++;
    k->alive++;
    owe(k, &s->owes_started);
}

/* Ranks that all have ended are stopped: what they leave behind is next. */
static void check_all_ended(struct keeping *k)
{
    if (k->state == KEEPING_RUNNING && k->tried == k->rank_count &&
        k->alive == 0) {
        k->state = KEEPING_STOPPING;
    }
}

static void on_exited(struct keeping *k, const struct keeping_event *event)
{
    struct keeping_slot *s = &k->slots[event->slot];
    assert(event->slot < k->rank_count && s->state == KEEPING_ALIVE);
    s->state = KEEPING_ENDED;
    s->status = event->status;
    s->ended_ms = event->now_ms;
    s->cpu_ms = event->cpu_ms;
    s->rss_bytes = event->rss_bytes;
    s->is_out_of_memory = event->is_out_of_memory;
    k->alive--;
    owe(k, &s->owes_exit);
}

static void on_none_left(struct keeping *k, uint64_t now_ms,
                         struct keeping_actions *actions)
{
    if (!keeping_wants_look(k)) {
        return; /* a look that came too late */
    }
    if (k->state == KEEPING_LEAVING) {
        keeping_none_left_leaving(k, now_ms, actions);
        return;
    }
    k->state = KEEPING_IDLE;
    if (k->telling != KEEPING_TELLS_REPLAY) {
        k->unclean_count = 0; /* of an ABANDON before */
        k->told_unclean = 0;
    }
    keeping_finish_ranks(k, actions);
}

bool keeping_wants_look(const struct keeping *k)
{
    if (k->alive > 0) {
        return false;
    }
    return k->state == KEEPING_STOPPING ||
           (k->state == KEEPING_LEAVING && !(k->is_done && k->agent_pid != 0));
}

void keeping_add_unclean(struct keeping *k, const char *text)
{
    if (k->unclean_count < GPUL_UNCLEAN_MAX) {
        char *to = k->unclean[k->unclean_count++];
        size_t n = strlen(text);
        n = n < KEEPER_TEXT_BYTES ? n : KEEPER_TEXT_BYTES - 1;
        memcpy(to, text, n);
        to[n] = 0;
    }
}

/* ---- signals and time ---------------------------------------------------- */

static void on_signal(struct keeping *k, int32_t signal, uint64_t now_ms,
                      struct keeping_actions *actions)
{
    if (k->state == KEEPING_LEAVING) {
        if (k->stop_signal != SIGKILL && k->stop_at_ms != NEVER) {
            keeping_kill_all(k, now_ms, actions);
        }
        return;
    }
    if (k->agent_pid == 0) {
        keeping_start_leaving(k, KEEPING_EXIT_SIGNALED + signal,
                              KEEPING_STOPPED_TEXT, now_ms, actions);
        return;
    }
    k->owed_signals |= 1ull << (signal - 1);
    if (k->left_for == 0) {
        k->left_for = signal;
        k->leave_by_ms = now_ms + KEEPING_ORDERLY_MS +
                         (keeping_has_ranks(k) ? k->grace_ms : 0u);
    }
}

/* Only one of these in a step: each may change what the others are about, and
 * the next TICK is due at once if another has come too. */
static void on_tick(struct keeping *k, uint64_t now_ms,
                    struct keeping_actions *actions)
{
    if (now_ms >= k->fork_at_ms) {
        k->fork_at_ms = NEVER;
        keeping_put(actions, KEEPING_DO_FORK_AGENT);
    } else if (now_ms >= k->orphan_at_ms) {
        keeping_start_leaving(
            k, KEEPING_EXIT_LOST,
            "no agent of it could reach the coordinator in time", now_ms,
            actions);
    } else if (now_ms >= k->leave_by_ms) {
        keeping_put(actions, KEEPING_DO_KILL_AGENT);
        keeping_start_leaving(k, KEEPING_EXIT_SIGNALED + k->left_for,
                              "its agent did not leave in time when told to",
                              now_ms, actions);
    } else if (now_ms >= k->agent_end_by_ms) {
        k->agent_end_by_ms = NEVER;
        if (k->is_done) { /* all that is still waited for */
            k->stop_signal = SIGKILL;
            k->stop_at_ms = now_ms + KEEPING_KILL_MS;
        }
        keeping_put(actions, KEEPING_DO_KILL_AGENT);
    } else if (now_ms >= k->stop_at_ms) {
        if (k->stop_signal == SIGKILL) {
            keeping_give_up_waiting(k, actions);
        } else {
            keeping_kill_all(k, now_ms, actions);
        }
    } else if (now_ms >= k->sweep_at_ms) {
        keeping_signal_all(k, SIGKILL, now_ms, actions);
    }
}

uint64_t keeping_next_deadline_ms(const struct keeping *k)
{
    const uint64_t all[] = {k->fork_at_ms,  k->orphan_at_ms,
                            k->stop_at_ms,  k->sweep_at_ms,
                            k->leave_by_ms, k->agent_end_by_ms};
    uint64_t first = NEVER;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        first = all[i] < first ? all[i] : first;
    }
    return first;
}

void keeping_step(struct keeping *k, const struct keeping_event *event,
                  struct keeping_actions *actions)
{
    actions->count = 0;
    switch (event->type) {
    case KEEPING_TICK:
        on_tick(k, event->now_ms, actions);
        break;
    case KEEPING_AGENT_STARTED:
        keeping_agent_started(k, event, actions);
        break;
    case KEEPING_AGENT_ENDED:
        keeping_agent_ended(k, event->now_ms, actions);
        break;
    case KEEPING_PACKET:
        on_packet(k, event, actions);
        break;
    case KEEPING_STARTED:
        on_started(k, event);
        break;
    case KEEPING_EXITED:
        on_exited(k, event);
        break;
    case KEEPING_NONE_LEFT:
        on_none_left(k, event->now_ms, actions);
        break;
    case KEEPING_SIGNAL:
        on_signal(k, event->signal, event->now_ms, actions);
        break;
    case KEEPING_UNDERTAKER_ENDED:
        if (keeping_has_ranks(k) && k->undertakers < KEEPING_UNDERTAKERS_MAX) {
            k->undertakers++;
            keeping_put(actions, KEEPING_DO_FORK_UNDERTAKER);
        }
        break;
    }
    check_all_ended(k);
}
