/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/input.h"

#include "proto/limits.h"

/* What comes while the ranks are stopped to be started again is kept too, and
 * that is one window at most. */
enum { KEPT_WINDOWS = 2 };

int input_init(struct input *in, const Gpul__InputTarget *target,
               uint32_t node_count, uint64_t window_bytes)
{
    *in = (struct input){.window_bytes = window_bytes};
    gpul_buf_init(&in->kept, KEPT_WINDOWS * window_bytes);
    gpul_buf_init(&in->waiting, window_bytes);
    if (target == NULL) {
        return 0;
    }
    in->is_wanted = true;
    in->is_all = target->is_all;
    in->rank = target->rank;
    int rc = gpul_minheap_init(&in->readers, node_count);
    return rc != 0 ? rc : gpul_minheap_init(&in->away, node_count);
}

void input_release(struct input *in)
{
    gpul_minheap_release(&in->readers);
    gpul_minheap_release(&in->away);
    gpul_buf_release(&in->kept);
    gpul_buf_release(&in->waiting);
    *in = (struct input){0};
}

void input_begin(struct input *in)
{
    uint64_t taken;
    uint32_t node;
    while (gpul_minheap_peek(&in->readers, &taken, &node)) {
        input_drop(in, node);
    }
}

void input_add(struct input *in, uint32_t node)
{
    gpul_minheap_set(&in->readers, node, 0);
}

bool input_is_read_by(const struct input *in, uint32_t node)
{
    return node < in->readers.id_count && in->readers.places[node] != 0;
}

static uint64_t key_of(const struct gpul_minheap *h, uint32_t node)
{
    return h->items[h->places[node] - 1].key;
}

/* Keep it as long as a retry could use it: then nothing is missing. */
static void keep(struct input *in, const ProtobufCBinaryData *data)
{
    if (in->kept.used != in->received ||
        gpul_buf_append(&in->kept, data->data, data->len) != 0) {
        gpul_buf_release(&in->kept);
    }
}

int input_take(struct input *in, const Gpul__Input *message)
{
    uint64_t bytes = message->data.len;
    if (!in->is_wanted || in->has_end) {
        return GPUL_EINVAL;
    }
    if (bytes > in->granted - in->received) {
        return GPUL_ELIMIT;
    }
    if (in->away.count > 0 &&
        gpul_buf_append(&in->waiting, message->data.data, bytes) != 0) {
        return GPUL_ENOMEM;
    }
    keep(in, &message->data);
    in->received += bytes;
    in->has_end = message->is_end;
    return 0;
}

bool input_credit(struct input *in, uint32_t node,
                  const Gpul__InputCredit *credit)
{
    if (!input_is_read_by(in, node)) {
        return true; /* on its way when the node was dropped */
    }
    uint64_t taken = key_of(&in->readers, node) + credit->bytes;
    if (taken > in->received) {
        return false;
    }
    gpul_minheap_set(&in->readers, node, taken);
    if (credit->is_closed) {
        gpul_minheap_remove(&in->readers, node);
    }
    return true;
}

void input_drop(struct input *in, uint32_t node)
{
    if (input_is_read_by(in, node)) {
        gpul_minheap_remove(&in->readers, node);
        input_return(in, node);
    }
}

/* ---- a reader that is away ---- */

bool input_is_owed(const struct input *in, uint32_t node)
{
    return input_is_read_by(in, node) &&
           key_of(&in->readers, node) < in->received;
}

void input_leave(struct input *in, uint32_t node)
{
    if (input_is_read_by(in, node)) {
        gpul_minheap_set(&in->away, node, in->received);
    }
}

bool input_lacks(const struct input *in, uint32_t node, const uint8_t **bytes,
                 size_t *n)
{
    if (node >= in->away.id_count || in->away.places[node] == 0) {
        return false;
    }
    *n = (size_t)(in->received - key_of(&in->away, node));
    *bytes = *n > 0 ? in->waiting.data + (in->waiting.used - *n) : NULL;
    return true;
}

/* What only this one lacked is forgotten. */
void input_return(struct input *in, uint32_t node)
{
    uint64_t from = in->received;
    uint32_t first;
    gpul_minheap_remove(&in->away, node);
    gpul_minheap_peek(&in->away, &from, &first);
    size_t lacking = (size_t)(in->received - from);
    if (lacking == 0) {
        gpul_buf_release(&in->waiting);
    } else {
        gpul_buf_consume(&in->waiting, in->waiting.used - lacking);
    }
}

uint64_t input_grant(struct input *in)
{
    uint64_t taken;
    uint32_t slowest;
    if (in->has_end || !gpul_minheap_peek(&in->readers, &taken, &slowest) ||
        taken + in->window_bytes <= in->granted) {
        return 0;
    }
    uint64_t bytes = taken + in->window_bytes - in->granted;
    if (bytes > GPUL_INPUT_WINDOW_BYTES_MAX) {
        bytes = GPUL_INPUT_WINDOW_BYTES_MAX;
    }
    in->granted += bytes;
    return bytes;
}

bool input_may_begin_again(const struct input *in)
{
    return in->received <= in->window_bytes && in->kept.used == in->received;
}
