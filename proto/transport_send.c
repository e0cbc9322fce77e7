/* SPDX-License-Identifier: Apache-2.0
 *
 * The sending half of the transport: a frame -> the channel, where there is
 * one -> the socket, as much as it takes at once -> a copy of the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/transport_inside.h"

/* A copy of bytes that the socket did not take at once. */
struct pending_write {
    uv_write_t request;
    uint8_t bytes[];
};

/* A write has failed: sooner or later the connection ends. */
static int lose_writes(struct gpul_transport *t, int uv_status,
                       struct gpul_error *err)
{
    struct gpul_error why;
    int status = gpul_transport_fail_uv(&why, uv_status, "sending");
    t->has_lost_writes = true;
    if (!gpul_transport_has_gone(uv_status)) {
        gpul_transport_fail(t, &why);
    }
    return gpul_fail(err, status, "%s", why.text);
}

static void on_written(uv_write_t *request, int status)
{
    struct gpul_transport *t = request->handle->data;
    free(request->data);
    if (status != 0 && !t->is_closing) {
        lose_writes(t, status, NULL);
    }
}

static int queue(struct gpul_transport *t, const uint8_t *bytes, size_t n,
                 struct gpul_error *err)
{
    struct gpul_error why;
    size_t queued = gpul_transport_queued_bytes(t);
    if (n > t->queue_bytes_max || queued > t->queue_bytes_max - n) {
        gpul_fail(&why, GPUL_ELIMIT,
                  "the peer reads too slowly: %zu bytes wait for it", queued);
        gpul_transport_fail(t, &why);
        return gpul_fail(err, why.status, "%s", why.text);
    }
    struct pending_write *w = malloc(sizeof(*w) + n);
    if (w == NULL) {
        return lose_writes(t, UV_ENOMEM, err);
    }
    memcpy(w->bytes, bytes, n);
    w->request.data = w;
    uv_buf_t buf = uv_buf_init((char *)w->bytes, (unsigned)n);
    int rc = uv_write(&w->request, &t->stream, &buf, 1, on_written);
    if (rc != 0) {
        free(w);
        return lose_writes(t, rc, err);
    }
    return 0;
}

static int write_bytes(struct gpul_transport *t, const uint8_t *bytes, size_t n,
                       struct gpul_error *err)
{
    size_t taken = 0;
    if (uv_stream_get_write_queue_size(&t->stream) == 0) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)n);
        int rc = uv_try_write(&t->stream, &buf, 1);
        if (rc < 0 && rc != UV_EAGAIN) {
            return lose_writes(t, rc, err);
        }
        taken = rc > 0 ? (size_t)rc : 0;
    }
    return taken == n ? 0 : queue(t, bytes + taken, n - taken, err);
}

int gpul_transport_flush(struct gpul_transport *t, struct gpul_error *err)
{
    size_t n;
    const uint8_t *bytes = gpul_channel_output(t->channel, &n);
    int rc = n > 0 ? write_bytes(t, bytes, n, err) : 0;
    gpul_channel_clear_output(t->channel);
    return rc;
}

static int seal(struct gpul_transport *t, const uint8_t *bytes, size_t n,
                struct gpul_error *err)
{
    struct gpul_error why;
    int rc = gpul_channel_send(t->channel, bytes, n, &why);
    if (rc != 0) {
        gpul_transport_fail(t, &why);
        return gpul_fail(err, rc, "%s", why.text);
    }
    return gpul_transport_flush(t, err);
}

int gpul_transport_send_bytes(struct gpul_transport *t, const uint8_t *bytes,
                              size_t n, struct gpul_error *err)
{
    if (t->is_closing || t->is_flushing || t->has_lost_writes) {
        return gpul_fail(err, GPUL_ECLOSED, "the connection is closed");
    }
    return t->channel == NULL ? write_bytes(t, bytes, n, err)
                              : seal(t, bytes, n, err);
}

int gpul_transport_send(struct gpul_transport *t, const Gpul__Frame *frame,
                        struct gpul_error *err)
{
    struct gpul_buf out;
    struct gpul_error why = {0};
    gpul_buf_init(&out, GPUL_FRAME_PREFIX_BYTES + GPUL_JOB_BYTES_MAX);
    int rc = gpul_message_encode(&out, frame, &why);
    if (rc == GPUL_ENOMEM) {
        gpul_transport_fail(t, &why); /* what follows would lack it */
    }
    if (rc != 0) {
        rc = gpul_fail(err, rc, "%s", why.text);
    } else {
        rc = gpul_transport_send_bytes(t, out.data, out.used, err);
    }
    gpul_buf_release(&out);
    return rc;
}

size_t gpul_transport_queued_bytes(const struct gpul_transport *t)
{
    return uv_stream_get_write_queue_size(&t->stream) +
           (t->channel != NULL ? gpul_channel_waiting_bytes(t->channel) : 0);
}
