/* SPDX-License-Identifier: Apache-2.0
 *
 * A node whose agent has died is *away* until its keeper's next agent is
 * here, or for GPUL_AWAY_MS. Its ranks run on meanwhile. Before the launch
 * what the agent held is lost with it (ports, probes), so the generation is
 * begun anew; later the new agent is told where the job is and takes over.
 *
 * Happy path: away_begin -> away_may_end, away_end by the next Hello.
 * Otherwise: away_tick, or the front end's word that the keeper is gone too.
 */
#include <signal.h>

#include "coordinator/core.h"

static bool may_be_away(const struct rendezvous *r, const struct node *node)
{
    switch (r->phase) {
    case PHASE_REPORTING: /* what was reported cannot be taken back */
        return false;
    case PHASE_RUNNING: /* an idle one owes nothing more */
        return !node->is_idle && !relay_input_is_owed(r, node);
    case PHASE_DRAINING:
        return !node->has_answered;
    default:
        return phase_is_forming(r->phase) || r->phase == PHASE_RESTARTING;
    }
}

static void tell(struct rendezvous *r, Gpul__Event__Kind kind,
                 const struct node *node, const char *text)
{
    if (r->aways_told == AWAYS_TOLD_MAX) {
        return;
    }
    r->aways_told++;
    core_tell_member(r, kind, node, text);
}

bool away_begin(struct rendezvous *r, struct node *node, const char *why)
{
    if (!may_be_away(r, node)) {
        return false;
    }
    if (r->phase == PHASE_RUNNING) {
        relay_input_away(r, node);
    } else {
        relay_input_left(r, node);
    }
    node->is_away = true;
    node->is_away_told = false;
    gpul_minheap_set(&r->aways, roster_index(&r->roster, node),
                     r->now_ms + AWAY_TELL_MS);
    if (r->phase != PHASE_RUNNING && node->has_answered) {
        node->has_answered = false; /* that was the answer of a dead one */
        r->pending++;
    }
    node->is_idle = false;
    node->is_resuming = false;
    outbox_log(&r->out, false, "away %s: %s", node->name, why);
    return true;
}

const char *away_words(const struct rendezvous *r, const struct node *node,
                       const char *why)
{
    bool is_cut = r->phase == PHASE_RUNNING && relay_input_is_owed(r, node);
    return is_cut ? "its agent ended while standard input was on its way, of "
                    "which some may be lost"
                  : why;
}

void away_forget(struct rendezvous *r, struct node *node)
{
    gpul_minheap_remove(&r->aways, roster_index(&r->roster, node));
    node->is_away = false;
}

void away_forget_all(struct rendezvous *r)
{
    uint64_t due_ms;
    uint32_t index;
    while (gpul_minheap_peek(&r->aways, &due_ms, &index)) {
        away_forget(r, &r->roster.nodes[index]);
    }
}

static void tell_away(struct rendezvous *r, struct node *node)
{
    struct text text;
    node->is_away_told = true;
    text_format(&text, "its connection is gone; waiting up to %u s for it",
                GPUL_AWAY_MS / 1000);
    tell(r, GPUL__EVENT__KIND__NODE_AWAY, node, text.bytes);
}

static void expire(struct rendezvous *r, struct node *node)
{
    struct text why;
    text_format(&why, "it was away for %u s", GPUL_AWAY_MS / 1000);
    away_forget(r, node);
    peers_depart(r, node, why.bytes);
}

void away_tick(struct rendezvous *r, bool is_late)
{
    uint64_t due_ms;
    uint32_t index;
    while (gpul_minheap_peek(&r->aways, &due_ms, &index) &&
           due_ms <= r->now_ms) {
        struct node *node = &r->roster.nodes[index];
        if (is_late) {
            gpul_minheap_set(&r->aways, index,
                             r->now_ms + GPUL_HELLO_DEADLINE_MS);
        } else if (!node->is_away_told) {
            tell_away(r, node);
            gpul_minheap_set(&r->aways, index,
                             due_ms + GPUL_AWAY_MS - AWAY_TELL_MS);
        } else {
            expire(r, node);
        }
    }
}

/* ---- back ---- */

/* A connection that is still there, or one of a node that was idle, counts as
 * closed by the next agent. The same one dials again where its Welcome was lost
 * with the connection. */
bool away_may_end(const struct rendezvous *r, const struct node *node,
                  const Gpul__Hello *hello)
{
    bool is_in_time = r->phase >= PHASE_ASSIGNING &&
                      r->phase <= PHASE_DRAINING && r->phase != PHASE_REPORTING;
    bool is_next =
        hello->attach > node->attach && (node_is_here(node) || node->is_idle);
    bool is_back = hello->attach >= node->attach && node->is_away;
    return is_in_time && (is_next || is_back) &&
           node->instance == hello->instance;
}

/* It is refused before the loss is told, since that may be the end of the job,
 * which closes what is no node's without a word; the keeper would then not stop
 * its ranks until much later. */
static void refuse_next(struct rendezvous *r, uint32_t conn,
                        const struct node *node)
{
    struct text text;
    if (node->last_words != NULL) {
        text_format(&text, "node %s came when its worker had been seen to end",
                    node->name);
        peers_turn_away(r, conn, GPUL__REFUSE__REASON__TOO_LATE, text.bytes);
    } else {
        peers_turn_away(r, conn, GPUL__REFUSE__REASON__JOB_OVER,
                        "the job has ended since standard input was cut off");
    }
}

/* Its old connection is dead, and we have not seen that yet. False: the node
 * is lost, and who says Hello at `next` was refused. */
static bool replace(struct rendezvous *r, struct node *node, uint32_t next)
{
    uint32_t old = node->conn;
    bool is_gone = node->last_words != NULL; /* the keeper, that is */
    roster_leave(&r->roster, node);
    peers_end(r, old);
    if (!is_gone &&
        (away_begin(r, node, "its next agent is here") || node->is_idle)) {
        return true;
    }
    refuse_next(r, next, node);
    if (!peers_depart_gone(r, node)) {
        peers_depart(r, node, away_words(r, node, "its agent had ended"));
    }
    return false;
}

static void tell_back(struct rendezvous *r, const struct node *node,
                      bool is_same)
{
    outbox_log(&r->out, false, "back %s from %s: agent %u of its keeper",
               node->name, r->peers[node->conn].address, node->attach);
    tell(r, GPUL__EVENT__KIND__NODE_BACK, node,
         is_same ? "its agent dialed again" : "its agent was started again");
}

static void begin_anew(struct rendezvous *r, struct node *node, bool is_same)
{
    struct text why;
    if (r->anew_count == ANEW_MAX) {
        outcome_decide(&r->outcome,
                       r->launches > 0 ? OUTCOME_INFRASTRUCTURE
                                       : OUTCOME_LOST_EARLY,
                       "node_lost", node,
                       "node %s (%s) has lost its agent while %s, after the "
                       "job was begun anew %u times for such a loss",
                       node->name, node_hostname(node), phase_name(r->phase),
                       r->anew_count);
        ending_begin(r, SIGTERM);
        return;
    }
    r->anew_count++;
    text_format(&why, "node %s (%s) has a new %s", node->name,
                node_hostname(node), is_same ? "connection" : "agent");
    ending_restart(r, why.bytes);
}

/* The agent has died before its keeper had any ranks of it: all others have
 * only just been launched. */
static void begin_again(struct rendezvous *r, struct node *node, bool is_same)
{
    bool is_whole = node->ranks_left == node->rank_count &&
                    r->roster.joined + r->aways.count == r->roster.count;
    if (is_whole && input_may_begin_again(&r->input)) {
        begin_anew(r, node, is_same);
    } else {
        peers_lose(r, node, "its keeper does not have the ranks that it had");
    }
}

/* `is_held`: its keeper has the ranks of this generation; `is_same`: it is the
 * agent that was here. */
static void resume(struct rendezvous *r, struct node *node, bool is_held,
                   bool is_same)
{
    node->is_resuming = node->is_idle;
    if (!is_held) {
        relay_input_left(r, node);
    }
    if (phase_is_forming(r->phase)) {
        begin_anew(r, node, is_same);
    } else if (!is_held && r->phase == PHASE_RUNNING && !node->is_idle) {
        begin_again(r, node, is_same);
    } else {
        if (is_held) {
            running_repeat(r, node);
            relay_input_back(r, node);
        }
        ending_repeat_stop(r, node);
    }
}

void away_end(struct rendezvous *r, uint32_t conn, struct node *node,
              const Gpul__Hello *hello)
{
    bool is_same = hello->attach == node->attach;
    if (node_is_here(node) && !replace(r, node, conn)) {
        return;
    }
    away_forget(r, node);
    relay_write_off(node);
    if (!hello_let_in(r, conn, node, hello)) {
        return;
    }
    tell_back(r, node, is_same);
    placing_repeat(r, node);
    resume(r, node, r->is_launched && hello->held_generation == r->generation,
           is_same);
}
