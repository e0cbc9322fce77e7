/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/simqueue.h"

#include <stdlib.h>
#include <string.h>

struct sim_payload *sim_payload_create(const uint8_t *bytes, size_t n)
{
    struct sim_payload *payload = malloc(sizeof(*payload) + n);
    if (payload == NULL) {
        abort();
    }
    payload->references = 1;
    payload->byte_count = n;
    memcpy(payload->bytes, bytes, n);
    return payload;
}

void sim_payload_release(struct sim_payload *payload)
{
    if (payload != NULL && --payload->references == 0) {
        free(payload);
    }
}

void sim_queue_init(struct sim_queue *q)
{
    *q = (struct sim_queue){0};
}

void sim_queue_release(struct sim_queue *q)
{
    for (size_t i = 0; i < q->count; i++) {
        sim_payload_release(q->items[i].payload);
    }
    free(q->items);
    sim_queue_init(q);
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms
                                : a->sequence < b->sequence;
}

void sim_queue_push(struct sim_queue *q, struct sim_event event)
{
    if (q->count == q->capacity) {
        q->capacity = q->capacity == 0 ? 64 : q->capacity * 2;
        q->items = realloc(q->items, q->capacity * sizeof(*q->items));
        if (q->items == NULL) {
            abort();
        }
    }
    event.sequence = q->next_sequence++;
    size_t at = q->count++;
    while (at > 0 && is_before(&event, &q->items[(at - 1) / 2])) {
        q->items[at] = q->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->items[at] = event;
}

bool sim_queue_peek(const struct sim_queue *q, uint64_t *at_ms)
{
    if (q->count > 0) {
        *at_ms = q->items[0].at_ms;
    }
    return q->count > 0;
}

bool sim_queue_pop(struct sim_queue *q, struct sim_event *out)
{
    if (q->count == 0) {
        return false;
    }
    *out = q->items[0];
    struct sim_event last = q->items[--q->count];
    size_t at = 0;
    for (size_t child = 1; child < q->count; child = at * 2 + 1) {
        if (child + 1 < q->count &&
            is_before(&q->items[child + 1], &q->items[child])) {
            child++;
        }
        if (!is_before(&q->items[child], &last)) {
            break;
        }
        q->items[at] = q->items[child];
        at = child;
    }
    q->items[at] = last;
    return true;
}
