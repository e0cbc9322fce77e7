/* SPDX-License-Identifier: Apache-2.0
 *
 * What the three files of the transport share, and nobody else knows.
 */
#ifndef GPUL_PROTO_TRANSPORT_INSIDE_H
#define GPUL_PROTO_TRANSPORT_INSIDE_H

#include <stdbool.h>

#include "proto/channel.h"
#include "proto/frame.h"
#include "proto/transport.h"

struct gpul_transport {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    uv_timer_t flush_timer; /* bounds a close with a flush */
    uv_connect_t connect;
    uv_shutdown_t shutdown;
    struct gpul_channel *channel; /* NULL: frames go as they are */
    struct gpul_deframer deframer;
    const struct gpul_transport_handlers *handlers; /* NULL: never opened */
    void *arg;
    struct gpul_error why;
    size_t queue_bytes_max;
    unsigned open_handles; /* freed when the last is closed */
    bool has_why;
    bool is_flushing; /* the owner has closed; only on_closed will come */
    bool is_shut;     /* our end of stream is on its way */
    bool is_proved;   /* the channel has opened */
    bool has_claimed; /* on_claimed was called, or is not wanted */
    bool is_closing;  /* the handles are being closed */
    bool has_lost_writes;
};

/* Close for a reason that the owner does not know yet. */
void gpul_transport_fail(struct gpul_transport *t,
                         const struct gpul_error *why);

/* libuv's status as ours, with what was being done. */
int gpul_transport_fail_uv(struct gpul_error *err, int uv_status,
                           const char *what);
bool gpul_transport_has_gone(int uv_status); /* the peer, by that status */

/* Write what the channel has for the network; at once, or it is queued. Errors
 * as gpul_transport_send. */
int gpul_transport_flush(struct gpul_transport *t, struct gpul_error *err);

#endif
