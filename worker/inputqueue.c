/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inputqueue.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/limits.h"

enum {
    /* Credit for less waits, unless nothing is left to read: half of the
     * smallest window. */
    CREDIT_BYTES = GPUL_OUTPUT_WINDOW_BYTES_MIN / 2,
    /* A retry may bring what came before and a window more. */
    HELD_BYTES_MAX = 2 * GPUL_INPUT_WINDOW_BYTES_MAX,
};

void inputqueue_init(struct inputqueue *q)
{
    *q = (struct inputqueue){0};
    /* As much again may stand read at the front. */
    gpul_buf_init(&q->bytes, (size_t)2 * HELD_BYTES_MAX);
}

void inputqueue_release(struct inputqueue *q)
{
    gpul_buf_release(&q->bytes);
    free(q->readers);
    inputqueue_init(q);
}

void inputqueue_clear(struct inputqueue *q)
{
    inputqueue_release(q);
}

int inputqueue_open(struct inputqueue *q, uint32_t reader_count)
{
    assert(!q->has_begun);
    q->has_begun = true;
    if (reader_count == 0) {
        return 0;
    }
    q->readers = calloc(reader_count, sizeof(*q->readers));
    if (q->readers == NULL) {
        return GPUL_ENOMEM;
    }
    q->reader_count = reader_count;
    for (uint32_t i = 0; i < reader_count; i++) {
        q->readers[i].is_open = true;
    }
    return 0;
}

static uint64_t held_to(const struct inputqueue *q)
{
    return q->base + q->bytes.used;
}

/* How far the slowest reader is; where nobody reads, all is read. */
static uint64_t read_to(const struct inputqueue *q, bool *is_read)
{
    uint64_t least = held_to(q);
    *is_read = !q->has_begun;
    for (uint32_t i = 0; i < q->reader_count; i++) {
        const struct inputqueue_reader *r = &q->readers[i];
        *is_read |= r->is_open;
        least = r->is_open && r->at < least ? r->at : least;
    }
    return q->has_begun ? least : q->base;
}

/* Moving the rest to the front costs as much as it is long: only when it is
 * the smaller part. */
static void forget_read(struct inputqueue *q)
{
    bool is_read;
    q->start = (size_t)(read_to(q, &is_read) - q->base);
    if (q->start == 0 || q->start < q->bytes.used - q->start) {
        return;
    }
    q->base += q->start;
    gpul_buf_consume(&q->bytes, q->start);
    q->start = 0;
}

int inputqueue_put(struct inputqueue *q, const void *bytes, size_t n,
                   bool is_end)
{
    bool is_read;
    read_to(q, &is_read);
    if (!is_read) {
        return 0; /* swallowed */
    }
    if (q->has_end || n > HELD_BYTES_MAX - (q->bytes.used - q->start)) {
        return GPUL_ELIMIT;
    }
    q->has_end = is_end;
    return gpul_buf_append(&q->bytes, bytes, n);
}

size_t inputqueue_next(const struct inputqueue *q, uint32_t reader,
                       const uint8_t **bytes)
{
    const struct inputqueue_reader *r = &q->readers[reader];
    if (!r->is_open || r->at == held_to(q)) {
        return 0;
    }
    *bytes = q->bytes.data + (r->at - q->base);
    return (size_t)(held_to(q) - r->at);
}

void inputqueue_took(struct inputqueue *q, uint32_t reader, size_t n)
{
    q->readers[reader].at += n;
    assert(q->readers[reader].at <= held_to(q));
    forget_read(q);
}

bool inputqueue_is_done(const struct inputqueue *q, uint32_t reader)
{
    const struct inputqueue_reader *r = &q->readers[reader];
    return r->is_open && q->has_end && r->at == held_to(q);
}

void inputqueue_close(struct inputqueue *q, uint32_t reader)
{
    q->readers[reader].is_open = false;
    forget_read(q);
}

bool inputqueue_credit(struct inputqueue *q, uint64_t *bytes, bool *is_closed)
{
    bool is_read;
    uint64_t taken = read_to(q, &is_read);
    *bytes = taken - q->credited;
    *is_closed = !is_read && !q->has_told_closed;
    bool is_worth =
        *bytes >= CREDIT_BYTES || (*bytes > 0 && taken == held_to(q));
    if (q->has_told_closed || (!is_worth && !*is_closed)) {
        return false;
    }
    q->credited = taken;
    q->has_told_closed = *is_closed;
    return true;
}
