/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that come up while the agent's actions are being applied: they wait
 * here, with what they say, until that is done. Pure.
 */
#ifndef WORKER_EVENTQUEUE_H
#define WORKER_EVENTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/agent.h"

enum {
    /* One batch of actions raises at most an event each, and one turn of the
     * loop as many for probes that have ended. */
    EVENTQUEUE_MAX = AGENT_ACTIONS_MAX + AGENT_PROBES_MAX,
    EVENTQUEUE_TEXT_BYTES = 768,
};

struct waiting_event {
    enum agent_event_type type;
    uint16_t port_base;
    uint32_t probe;
    int signal;
    bool is_unclean; /* `text` names a process that would not die */
    char text[EVENTQUEUE_TEXT_BYTES];
};

struct eventqueue {
    struct waiting_event items[EVENTQUEUE_MAX];
    size_t first;
    size_t count;
};

/* Append an event with this text (NULL: none), cut and cleaned as the wire
 * needs it; the caller may fill in the rest. There is room: see the enum. */
struct waiting_event *eventqueue_put(struct eventqueue *q,
                                     enum agent_event_type type,
                                     const char *text);

/* Move the oldest into *out; false if there is none. */
bool eventqueue_take(struct eventqueue *q, struct waiting_event *out);

#endif
