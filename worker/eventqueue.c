/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/eventqueue.h"

#include <assert.h>
#include <stdio.h>

#include "proto/text.h"

struct waiting_event *eventqueue_put(struct eventqueue *q,
                                     enum agent_event_type type,
                                     const char *text)
{
    assert(q->count < EVENTQUEUE_MAX);
    struct waiting_event *e =
        &q->items[(q->first + q->count++) % EVENTQUEUE_MAX];
    e->type = type;
    e->port_base = 0;
    e->probe = 0;
    e->signal = 0;
    e->is_unclean = false;
    snprintf(e->text, sizeof(e->text), "%s", text != NULL ? text : "");
    gpul_text_clean(e->text, sizeof(e->text) - 1);
    return e;
}

bool eventqueue_take(struct eventqueue *q, struct waiting_event *out)
{
    if (q->count == 0) {
        return false;
    }
    *out = q->items[q->first];
    q->first = (q->first + 1) % EVENTQUEUE_MAX;
    q->count--;
    return true;
}
