/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/core.h"

#include <assert.h>

static uint64_t deadline_after(uint64_t now_ms, uint64_t bound_ms)
{
    return bound_ms > NEVER_MS - now_ms ? NEVER_MS : now_ms + bound_ms;
}

void core_enter(struct rendezvous *r, enum phase to, uint64_t bound_ms,
                const char *why, ...)
{
    assert(phase_may_follow(r->phase, to));
    struct text text;
    va_list args;
    va_start(args, why);
    text_vformat(&text, why, args);
    va_end(args);
    outbox_log(&r->out, false, "%s -> %s: %s", phase_name(r->phase),
               phase_name(to), text.bytes);
    r->phase = to;
    r->phase_deadline_ms = deadline_after(r->now_ms, bound_ms);
    r->phase_half_ms = bound_ms == NEVER_MS
                           ? NEVER_MS
                           : deadline_after(r->now_ms, bound_ms / 2);
}

void core_await_all(struct rendezvous *r)
{
    r->pending = 0;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        struct node *node = &r->roster.nodes[i];
        node->has_answered = !node_is_here(node) && !node->is_away;
        r->pending += !node->has_answered;
    }
}

bool core_answer(struct rendezvous *r, struct node *node)
{
    if (node->has_answered) {
        return false;
    }
    node->has_answered = true;
    r->pending--;
    return r->pending == 0;
}

static bool is_absent(const struct roster *r, uint32_t node_rank,
                      const void *arg)
{
    (void)arg;
    return !node_is_here(&r->nodes[node_rank]);
}

static bool is_silent(const struct roster *r, uint32_t node_rank,
                      const void *arg)
{
    (void)arg;
    return !r->nodes[node_rank].has_answered;
}

uint32_t core_missing(const struct rendezvous *r, struct text *names)
{
    return missing_names(names, &r->roster,
                         r->phase == PHASE_GATHERING ? is_absent : is_silent,
                         NULL);
}

static bool is_away(const struct roster *r, uint32_t node_rank, const void *arg)
{
    (void)arg;
    return r->nodes[node_rank].is_away;
}

void core_waiting(const struct rendezvous *r, struct waiting *out)
{
    bool is_on_probes = phase_waits_for_probes(r->phase);
    if (is_on_probes && r->aways.count == 0) {
        gputest_waiting(r, out);
        return;
    }
    out->unit = "nodes";
    out->need = r->roster.count;
    out->have = out->need;
    out->have -= is_on_probes
                     ? missing_names(&out->missing, &r->roster, is_away, NULL)
                     : core_missing(r, &out->missing);
    if (r->phase == PHASE_FACTS) {
        gputest_append_scout(&out->missing, r);
    }
}

Gpul__Frame core_frame(const struct rendezvous *r)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = r->config.epoch;
    frame.generation = r->generation;
    return frame;
}

void core_send(struct rendezvous *r, const struct node *node,
               const Gpul__Frame *frame)
{
    if (node_is_here(node)) {
        outbox_send(&r->out, node->conn, frame);
    }
}

/* NULL when nobody is here (or no memory is, which has been noted). */
static uint32_t *all_conns(struct rendezvous *r)
{
    if (r->roster.joined == 0) {
        return NULL;
    }
    uint32_t *conns = outbox_alloc(&r->out, r->roster.joined * sizeof(*conns));
    if (conns != NULL) {
        roster_conns(&r->roster, conns);
    }
    return conns;
}

void core_send_all(struct rendezvous *r, const Gpul__Frame *frame)
{
    const uint32_t *conns = all_conns(r);
    if (conns != NULL) {
        outbox_send_many(&r->out, conns, r->roster.joined, frame);
    }
}

void core_send_all_bytes(struct rendezvous *r, const struct gpul_buf *frames)
{
    const uint32_t *conns = all_conns(r);
    if (conns != NULL) {
        outbox_send_many_bytes(&r->out, conns, r->roster.joined, frames->data,
                               frames->used);
    }
}

void core_tell(struct rendezvous *r, Gpul__Frame *frame)
{
    if (!r->is_unheard) {
        frame->epoch = 0;
        frame->generation = r->generation;
        outbox_send_operator(&r->out, frame);
    }
}

void core_tell_event(struct rendezvous *r, Gpul__Event *event)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_EVENT;
    frame.event = event;
    core_tell(r, &frame);
}

void core_tell_text(struct rendezvous *r, Gpul__Event__Kind kind,
                    const struct node *node, const char *format, ...)
{
    struct text text;
    va_list args;
    va_start(args, format);
    text_vformat(&text, format, args);
    va_end(args);
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = kind;
    event.text = text.bytes;
    if (node != NULL) {
        event.node_name = wire_text(node->name);
        event.hostname = wire_text(node_hostname(node));
    }
    core_tell_event(r, &event);
}

void core_tell_member(struct rendezvous *r, Gpul__Event__Kind kind,
                      const struct node *node, const char *text)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = kind;
    event.node_name = wire_text(node->name);
    event.hostname = wire_text(node_hostname(node));
    event.have = r->roster.joined;
    event.need = r->roster.count;
    event.text = wire_text(text);
    core_tell_event(r, &event);
}
