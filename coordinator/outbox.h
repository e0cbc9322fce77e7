/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of the step being taken, and the bytes they refer to. A frame
 * is encoded once, however many get it. Pure.
 *
 * Failure (no memory, a frame over its maximum) is sticky until clear, so a
 * step checks once, at its end.
 */
#ifndef COORDINATOR_OUTBOX_H
#define COORDINATOR_OUTBOX_H

#include "common/buf.h"
#include "coordinator/arena.h"
#include "coordinator/rendezvous.h"

struct outbox {
    struct arena arena;
    struct gpul_buf scratch; /* frames while they are encoded */
    struct rendezvous_action *items;
    size_t count;
    size_t capacity;
    struct gpul_error error; /* status 0: all is well */
};

void outbox_init(struct outbox *o);
void outbox_release(struct outbox *o);

/* Forget everything; what earlier actions pointed to is gone. */
void outbox_clear(struct outbox *o);

/* `job_id` must outlive the step. */
void outbox_listen(struct outbox *o, uint32_t limit, const char *job_id);
void outbox_send(struct outbox *o, uint32_t conn, const Gpul__Frame *frame);
void outbox_send_operator(struct outbox *o, const Gpul__Frame *frame);
void outbox_allow(struct outbox *o, uint32_t conn, uint64_t mask);
void outbox_close(struct outbox *o, uint32_t conn);
void outbox_finish(struct outbox *o, int exit_code);
void outbox_log(struct outbox *o, bool is_fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Frames that were encoded before; they must outlive the step. */
void outbox_send_bytes(struct outbox *o, uint32_t conn,
                       const struct gpul_buf *frames);

/* The same bytes to each of `conns`, which is an array from outbox_alloc. */
void outbox_send_many(struct outbox *o, const uint32_t *conns,
                      size_t conn_count, const Gpul__Frame *frame);

/* Like send_many for bytes encoded before; they must outlive the step. */
void outbox_send_many_bytes(struct outbox *o, const uint32_t *conns,
                            size_t conn_count, const uint8_t *bytes, size_t n);

/* Memory that lasts until clear; NULL (and the failure noted) without. */
void *outbox_alloc(struct outbox *o, size_t n);

/* Note a failure of the step; the first one stays. */
void outbox_fail(struct outbox *o, int status, const char *what);

#endif
