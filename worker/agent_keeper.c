/* SPDX-License-Identifier: Apache-2.0
 *
 * What the keeper of this node holds for us: ranks that an agent before us
 * has started; and what is left to do when the keeper itself has ended.
 */
#include <signal.h>
#include <stdio.h>

#include "proto/text.h"
#include "worker/agent_internal.h"

/* A stop that is under way goes on where the agent before us left it, with
 * the whole grace once more. */
static void resume_stop(struct agent *a)
{
    const struct agent_held *held = &a->config.held;
    if (held->signal == SIGKILL) {
        a->abandon_at_ms = a->now_ms + AGENT_GIVE_UP_MS;
    } else if (held->signal != 0) {
        a->kill_at_ms = a->now_ms + held->grace_ms;
        a->abandon_at_ms = a->kill_at_ms + AGENT_GIVE_UP_MS;
    }
}

/* Whoever cannot join within the orphan time-out ends the ranks. */
void agent_hold(struct agent *a)
{
    uint32_t orphan_ms = a->config.held.orphan_ms;
    a->is_held = true;
    a->has_ranks = true;
    a->join_ms = orphan_ms != 0 ? orphan_ms : GPUL_ORPHAN_TIMEOUT_MS;
    resume_stop(a);
}

bool agent_is_place_held(const struct agent *a, uint32_t generation)
{
    return a->is_held && generation == a->config.held.generation;
}

void agent_send_leave(struct agent *a, bool is_clean)
{
    char text[GPUL_TEXT_BYTES_MAX + 1];
    if (a->lease_ms == 0) {
        return; /* no member yet */
    }
    snprintf(text, sizeof(text), "%s", a->exit_text);
    gpul_text_clean(text, GPUL_TEXT_BYTES_MAX);
    Gpul__Leave leave;
    gpul__leave__init(&leave);
    leave.text = text;
    leave.is_clean = is_clean && a->unclean_count == 0;
    leave.unclean = a->unclean;
    leave.n_unclean = a->unclean_count;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_LEAVE;
    frame.leave = &leave;
    agent_send(a, AGENT_SEND, &frame);
}

/* Nothing that the coordinator may still say can be obeyed here. */
void agent_keeper_lost(struct agent *a, const char *how, char **unclean,
                       size_t n)
{
    agent_leave(a, AGENT_EXIT_LOST, "the keeper of this node %s%s",
                how != NULL ? how : "ended",
                a->has_ranks ? ", and its ranks were killed" : "");
    agent_add_unclean(a, unclean, n);
    agent_send_leave(a, true);
    a->is_connected = false;
    a->beat_at_ms = AGENT_NEVER;
    a->lease_deadline_ms = AGENT_NEVER;
    a->is_held = false;
    a->has_ranks = false;
    a->linger_at_ms = AGENT_NEVER;
    a->kill_at_ms = AGENT_NEVER;
    a->abandon_at_ms = AGENT_NEVER;
    if (a->has_output) {
        agent_emit(a, AGENT_DISCARD_OUTPUT);
    }
    if (a->test.alive > 0) {
        agent_stop_probes(a, true);
    }
    if (a->state == AGENT_RUNNING || agent_is_busy(a)) {
        agent_move(a, AGENT_STOPPING);
    }
}
