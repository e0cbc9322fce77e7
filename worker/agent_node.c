/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens on the node: the ports, the ranks, what would not die.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "worker/agent_internal.h"

/* What outlives the ranks may be a "tee" that has just met the end of its
 * input: it has this long to end by itself. */
enum { LINGER_MS = 500 };

void agent_forget_unclean(struct agent *a)
{
    for (size_t i = 0; i < a->unclean_count; i++) {
        free(a->unclean[i]);
    }
    free(a->unclean);
    a->unclean = NULL;
    a->unclean_count = 0;
}

void agent_add_unclean(struct agent *a, char **unclean, size_t n)
{
    size_t room = GPUL_UNCLEAN_MAX - a->unclean_count;
    n = n < room ? n : room;
    if (n == 0) {
        return;
    }
    char **list =
        realloc(a->unclean, (a->unclean_count + n) * sizeof(*a->unclean));
    a->has_failed |= list == NULL;
    if (list == NULL) {
        return;
    }
    a->unclean = list;
    for (size_t i = 0; i < n; i++) {
        char *copy = strdup(unclean[i]);
        if (copy == NULL) {
            a->has_failed = true;
            return;
        }
        a->unclean[a->unclean_count++] = copy;
    }
}

/* ---- ports and ranks ---------------------------------------------------- */

static void on_ports(struct agent *a, uint16_t port_base, const char *why_not)
{
    if (a->state != AGENT_ASSIGNED || !a->awaits_ports) {
        return;
    }
    a->awaits_ports = false;
    a->port_base = port_base;
    Gpul__Ready ready;
    gpul__ready__init(&ready);
    ready.port_base = port_base;
    if (port_base == 0) {
        ready.error = agent_text(why_not ? why_not : "no free ports");
    }
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    agent_send(a, AGENT_SEND, &frame);
}

static void send_exits(struct agent *a, Gpul__Exit **list, size_t n)
{
    Gpul__Exits exits;
    gpul__exits__init(&exits);
    exits.exits = list;
    exits.n_exits = n;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    agent_send(a, AGENT_SEND, &frame);
}

/* Also in mode ENV, for ranks whose environment cannot be built. */
static void on_ranks_ended(struct agent *a, Gpul__Exit **exits, size_t n)
{
    if (a->assign == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i += GPUL_EXITS_MAX) {
        send_exits(a, exits + i,
                   n - i < GPUL_EXITS_MAX ? n - i : GPUL_EXITS_MAX);
    }
    a->ranks_ended += (uint32_t)n;
    if (a->state == AGENT_RUNNING && a->ranks_ended >= a->assign->rank_count) {
        agent_move(a, AGENT_STOPPING);
        a->linger_at_ms = a->now_ms + LINGER_MS;
    }
}

static void on_all_gone(struct agent *a, char **unclean, size_t n)
{
    if (!a->has_ranks) {
        return;
    }
    a->has_ranks = false;
    a->linger_at_ms = AGENT_NEVER;
    a->kill_at_ms = AGENT_NEVER;
    a->abandon_at_ms = AGENT_NEVER;
    agent_forget_unclean(a); /* a probe among them is in this list too */
    agent_add_unclean(a, unclean, n);
    if (a->is_held && a->state != AGENT_STOPPING) {
        return; /* their exits are still to be told */
    }
    a->is_held = false;
    agent_move(a, AGENT_STOPPING);
}

void agent_observe(struct agent *a, const struct agent_event *event)
{
    switch (event->type) {
    case AGENT_EVENT_PORTS:
        on_ports(a, event->port_base, event->text);
        break;
    case AGENT_EVENT_PROBE_MESSAGE:
        agent_probe_message(a, event);
        break;
    case AGENT_EVENT_PROBE_HALTED:
        agent_probe_halted(a, event);
        break;
    case AGENT_EVENT_PROBE_STAGE:
        agent_probe_stage(a, event);
        break;
    case AGENT_EVENT_PROBE_ENDED:
        agent_probe_ended(a, event);
        break;
    case AGENT_EVENT_RANKS_ENDED:
        on_ranks_ended(a, event->exits, event->exit_count);
        break;
    case AGENT_EVENT_ALL_GONE:
        on_all_gone(a, event->unclean, event->unclean_count);
        break;
    case AGENT_EVENT_KEEPER_LOST:
        agent_keeper_lost(a, event->text, event->unclean, event->unclean_count);
        break;
    case AGENT_EVENT_OUTPUT_DRAINED:
        a->has_output = a->has_output && a->has_ranks;
        break;
    default:
        break;
    }
}
