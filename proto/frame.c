/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/frame.h"

#include <assert.h>

#include "proto/limits.h"

/* The largest frame of all, and what one feed may bring behind it. */
#define BUFFER_BYTES_MAX                                                       \
    (GPUL_FRAME_PREFIX_BYTES + GPUL_JOB_BYTES_MAX + GPUL_READ_BYTES_MAX)

/* Enough for any Hello; a quiet connection needs no more. */
#define ROOM_BYTES_MIN (4u << 10)

void gpul_deframer_init(struct gpul_deframer *d, enum gpul_peer from)
{
    *d = (struct gpul_deframer){.from = from, .allowed = GPUL_MESSAGE_ANY};
    gpul_buf_init(&d->buf, BUFFER_BYTES_MAX);
}

void gpul_deframer_release(struct gpul_deframer *d)
{
    gpul_buf_release(&d->buf);
    d->consumed = 0;
    d->frame_bytes = 0;
}

static int report_broken(const struct gpul_deframer *d, struct gpul_error *err)
{
    return gpul_fail(err, d->status, "the stream is broken: %s",
                     gpul_status_text(d->status));
}

static size_t read_prefix(const uint8_t *p)
{
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Judge the frame at the front as soon as its first bytes are here, and
 * again each time: `allowed` may have changed since. */
static int judge(struct gpul_deframer *d, struct gpul_error *err)
{
    size_t n = d->buf.used - d->consumed;
    d->frame_bytes = 0;
    if (n < GPUL_FRAME_PREFIX_BYTES) {
        return 0;
    }
    const uint8_t *p = d->buf.data + d->consumed;
    size_t body_bytes = read_prefix(p);
    size_t here = n - GPUL_FRAME_PREFIX_BYTES;
    int type = gpul_message_type(p + GPUL_FRAME_PREFIX_BYTES,
                                 here < body_bytes ? here : body_bytes);
    if (type == 0 && here < body_bytes) {
        return 0;
    }
    d->status = gpul_message_judge(type, body_bytes, d->from, d->allowed, err);
    if (d->status == 0) {
        d->frame_bytes = GPUL_FRAME_PREFIX_BYTES + body_bytes;
    }
    return d->status;
}

/* Forget what was handed out. Nothing is kept when nothing waits: of many
 * thousand connections nearly all are quiet. */
static void drop_consumed(struct gpul_deframer *d)
{
    if (d->consumed > 0) {
        gpul_buf_consume(&d->buf, d->consumed);
        d->consumed = 0;
    }
    if (d->buf.used == 0) {
        gpul_buf_release(&d->buf);
    }
}

int gpul_deframer_feed(struct gpul_deframer *d, const uint8_t *bytes, size_t n,
                       struct gpul_error *err)
{
    if (d->status != 0) {
        return report_broken(d, err);
    }
    drop_consumed(d);
    d->status = gpul_buf_append(&d->buf, bytes, n);
    if (d->status != 0) {
        return gpul_fail(err, d->status, "%zu bytes were not taken: %s", n,
                         gpul_status_text(d->status));
    }
    return judge(d, err);
}

/* Twice as much when the last room was filled, half when most of it was left;
 * what the frame at the front still lacks is wanted in any case. */
static size_t next_room_bytes(const struct gpul_deframer *d)
{
    size_t here = d->buf.used - d->consumed;
    size_t missing = d->frame_bytes > here ? d->frame_bytes - here : 0;
    size_t n = d->room_bytes > missing ? d->room_bytes : missing;
    if (n < ROOM_BYTES_MIN) {
        return ROOM_BYTES_MIN;
    }
    return n > GPUL_READ_BYTES_MAX ? GPUL_READ_BYTES_MAX : n;
}

uint8_t *gpul_deframer_room(struct gpul_deframer *d, size_t *n)
{
    *n = 0;
    if (d->status != 0) {
        return NULL;
    }
    size_t room_bytes = next_room_bytes(d);
    drop_consumed(d);
    uint8_t *room = gpul_buf_extend(&d->buf, room_bytes);
    if (room == NULL) {
        return NULL;
    }
    d->buf.used -= room_bytes; /* not contents before gpul_deframer_fill */
    d->room_bytes = room_bytes;
    *n = room_bytes;
    return room;
}

int gpul_deframer_fill(struct gpul_deframer *d, size_t n,
                       struct gpul_error *err)
{
    assert(n <= d->room_bytes && n <= d->buf.capacity - d->buf.used);
    if (d->status != 0) {
        return report_broken(d, err);
    }
    if (n == d->room_bytes) {
        d->room_bytes *= 2;
    } else if (n < d->room_bytes / 4) {
        d->room_bytes /= 2;
    }
    d->buf.used += n;
    return judge(d, err);
}

int gpul_deframer_next(struct gpul_deframer *d, const uint8_t **body, size_t *n,
                       struct gpul_error *err)
{
    *body = NULL;
    *n = 0;
    if (d->status != 0) {
        return report_broken(d, err);
    }
    if (d->consumed == d->buf.used) {
        drop_consumed(d);
    }
    int rc = judge(d, err);
    if (rc != 0) {
        return rc;
    }
    if (d->frame_bytes == 0 || d->buf.used - d->consumed < d->frame_bytes) {
        return 0;
    }
    *body = d->buf.data + d->consumed + GPUL_FRAME_PREFIX_BYTES;
    *n = d->frame_bytes - GPUL_FRAME_PREFIX_BYTES;
    d->consumed += d->frame_bytes;
    return 1;
}
