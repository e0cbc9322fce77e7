/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens on the node: the probe, the ports, the ranks.
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

/* Once nothing is left to wait for, Idle names what would not die. */
static void keep_unclean(struct agent *a, char **unclean, size_t n)
{
    agent_forget_unclean(a);
    n = n < GPUL_UNCLEAN_MAX ? n : GPUL_UNCLEAN_MAX;
    if (n == 0) {
        return;
    }
    a->unclean = calloc(n, sizeof(*a->unclean));
    while (a->unclean != NULL && a->unclean_count < n) {
        char *copy = strdup(unclean[a->unclean_count]);
        if (copy == NULL) {
            break;
        }
        a->unclean[a->unclean_count++] = copy;
    }
    a->has_failed |= a->unclean_count < n;
}

/* ---- the probe ---------------------------------------------------------- */

static void on_probe_listening(struct agent *a, const char *address,
                               uint16_t port)
{
    if (a->state != AGENT_PROBING) {
        return;
    }
    Gpul__ProbeListening listening;
    gpul__probe_listening__init(&listening);
    listening.address = agent_text(address);
    listening.port = port;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_LISTENING;
    frame.probe_listening = &listening;
    agent_send(a, AGENT_SEND, &frame);
}

/* Kept until the process has ended: only then may ranks follow it. */
static void on_probe_result(struct agent *a, const Gpul__Frame *frame)
{
    if (!a->has_probe || a->probe_result.used > 0) {
        return;
    }
    Gpul__Frame copy = *frame;
    agent_stamp(a, &copy);
    if (gpul_message_encode(&a->probe_result, &copy, NULL) != 0) {
        a->has_failed = true;
    }
}

static void send_probe_failure(struct agent *a, const char *why)
{
    Gpul__ProbeResult result;
    gpul__probe_result__init(&result);
    result.error = agent_text(why);
    result.phase = agent_text(a->is_probe_connected ? "coll" : "init");
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    agent_send(a, AGENT_SEND, &frame);
}

static void on_probe_ended(struct agent *a, const struct agent_event *event)
{
    if (!a->has_probe) {
        return;
    }
    a->has_probe = false;
    a->probe_deadline_ms = AGENT_NEVER;
    a->abandon_at_ms = AGENT_NEVER;
    keep_unclean(a, event->unclean, event->unclean_count);
    if (a->state != AGENT_PROBING) {
        return;
    }
    agent_move(a, AGENT_ASSIGNED);
    if (a->probe_result.used == 0) {
        send_probe_failure(a, a->has_probe_overrun
                                  ? "it did not end in time and was killed"
                                  : event->text);
        return;
    }
    struct gpul_buf *arena = &a->actions->arena;
    size_t offset = arena->used;
    if (gpul_buf_append(arena, a->probe_result.data, a->probe_result.used)) {
        a->has_failed = true;
        return;
    }
    agent_emit_bytes(a, AGENT_SEND, offset);
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
    keep_unclean(a, unclean, n);
    agent_move(a, AGENT_STOPPING);
}

void agent_observe(struct agent *a, const struct agent_event *event)
{
    switch (event->type) {
    case AGENT_EVENT_PORTS:
        on_ports(a, event->port_base, event->text);
        break;
    case AGENT_EVENT_PROBE_LISTENING:
        on_probe_listening(a, event->text, event->port_base);
        break;
    case AGENT_EVENT_PROBE_RESULT:
        on_probe_result(a, event->frame);
        break;
    case AGENT_EVENT_PROBE_ENDED:
        on_probe_ended(a, event);
        break;
    case AGENT_EVENT_RANKS_ENDED:
        on_ranks_ended(a, event->exits, event->exit_count);
        break;
    case AGENT_EVENT_ALL_GONE:
        on_all_gone(a, event->unclean, event->unclean_count);
        break;
    case AGENT_EVENT_OUTPUT_DRAINED:
        a->has_output = a->has_output && a->has_ranks;
        break;
    default:
        break;
    }
}
