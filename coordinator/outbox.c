/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/text.h"
#include "proto/limits.h"

enum {
    ITEMS_MIN = 16,
    ITEMS_KEPT = 1024,            /* kept from one step to the next */
    SCRATCH_KEPT_BYTES = 1 << 20, /* the same for the encoder's memory */
};

void outbox_init(struct outbox *o)
{
    *o = (struct outbox){0};
    arena_init(&o->arena);
    gpul_buf_init(&o->scratch, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
}

void outbox_release(struct outbox *o)
{
    arena_release(&o->arena);
    gpul_buf_release(&o->scratch);
    free(o->items);
    *o = (struct outbox){0};
}

void outbox_clear(struct outbox *o)
{
    arena_clear(&o->arena);
    o->error = (struct gpul_error){0};
    o->count = 0;
    if (o->capacity > ITEMS_KEPT) {
        free(o->items);
        o->items = NULL;
        o->capacity = 0;
    }
    if (o->scratch.capacity > SCRATCH_KEPT_BYTES) {
        gpul_buf_release(&o->scratch);
    }
}

void outbox_fail(struct outbox *o, int status, const char *what)
{
    if (o->error.status == 0) {
        gpul_fail(&o->error, status, "%s", what);
    }
}

void *outbox_alloc(struct outbox *o, size_t n)
{
    void *memory = arena_alloc(&o->arena, n);
    if (memory == NULL) {
        outbox_fail(o, GPUL_ENOMEM, "out of memory for a step");
    }
    return memory;
}

static void push(struct outbox *o, const struct rendezvous_action *action)
{
    if (o->count == o->capacity) {
        size_t capacity = o->capacity == 0 ? ITEMS_MIN : o->capacity * 2;
        void *items = realloc(o->items, capacity * sizeof(*o->items));
        if (items == NULL) {
            outbox_fail(o, GPUL_ENOMEM, "out of memory for a step");
            return;
        }
        o->items = items;
        o->capacity = capacity;
    }
    o->items[o->count++] = *action;
}

/* Encode into the arena and push the action that carries the bytes. */
static void push_frame(struct outbox *o, struct rendezvous_action action,
                       const Gpul__Frame *frame)
{
    struct gpul_error err = {0};
    gpul_buf_clear(&o->scratch);
    int rc = gpul_message_encode(&o->scratch, frame, &err);
    if (rc != 0) {
        outbox_fail(o, rc, err.text);
        return;
    }
    uint8_t *bytes = outbox_alloc(o, o->scratch.used);
    if (bytes == NULL) {
        return;
    }
    memcpy(bytes, o->scratch.data, o->scratch.used);
    action.bytes = bytes;
    action.byte_count = o->scratch.used;
    push(o, &action);
}

void outbox_listen(struct outbox *o, uint32_t limit, const char *job_id)
{
    push(o, &(struct rendezvous_action){
                .kind = RENDEZVOUS_LISTEN, .limit = limit, .text = job_id});
}

void outbox_send(struct outbox *o, uint32_t conn, const Gpul__Frame *frame)
{
    push_frame(
        o, (struct rendezvous_action){.kind = RENDEZVOUS_SEND, .conn = conn},
        frame);
}

void outbox_send_bytes(struct outbox *o, uint32_t conn,
                       const struct gpul_buf *frames)
{
    push(o, &(struct rendezvous_action){.kind = RENDEZVOUS_SEND,
                                        .conn = conn,
                                        .bytes = frames->data,
                                        .byte_count = frames->used});
}

void outbox_send_operator(struct outbox *o, const Gpul__Frame *frame)
{
    push_frame(o, (struct rendezvous_action){.kind = RENDEZVOUS_SEND_OPERATOR},
               frame);
}

void outbox_send_many(struct outbox *o, const uint32_t *conns,
                      size_t conn_count, const Gpul__Frame *frame)
{
    struct rendezvous_action action = {
        .kind = RENDEZVOUS_SEND_MANY, .conns = conns, .conn_count = conn_count};
    push_frame(o, action, frame);
}

void outbox_send_many_bytes(struct outbox *o, const uint32_t *conns,
                            size_t conn_count, const uint8_t *bytes, size_t n)
{
    push(o, &(struct rendezvous_action){.kind = RENDEZVOUS_SEND_MANY,
                                        .conns = conns,
                                        .conn_count = conn_count,
                                        .bytes = bytes,
                                        .byte_count = n});
}

void outbox_allow(struct outbox *o, uint32_t conn, uint64_t mask)
{
    push(o, &(struct rendezvous_action){
                .kind = RENDEZVOUS_ALLOW, .conn = conn, .mask = mask});
}

void outbox_close(struct outbox *o, uint32_t conn)
{
    push(o,
         &(struct rendezvous_action){.kind = RENDEZVOUS_CLOSE, .conn = conn});
}

void outbox_finish(struct outbox *o, int exit_code)
{
    push(o, &(struct rendezvous_action){.kind = RENDEZVOUS_FINISH,
                                        .exit_code = exit_code});
}

void outbox_log(struct outbox *o, bool is_fault, const char *format, ...)
{
    struct text text;
    va_list args;
    va_start(args, format);
    text_vformat(&text, format, args);
    va_end(args);
    size_t n = strlen(text.bytes) + 1;
    char *copy = outbox_alloc(o, n);
    if (copy != NULL) {
        memcpy(copy, text.bytes, n);
        push(o, &(struct rendezvous_action){.kind = RENDEZVOUS_LOG,
                                            .text = copy,
                                            .is_fault = is_fault});
    }
}
