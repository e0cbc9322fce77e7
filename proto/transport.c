/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: open (accept, connect or a descriptor) -> reading starts ->
 * bytes go straight into the deframer, or through the channel -> each whole
 * frame is decoded and handed to on_message -> close -> all handles closed ->
 * on_closed -> free.
 *
 * Ends: the peer closes or half-closes (ECLOSED), the stream is broken or a
 * message invalid (EPROTO, ELIMIT), the peer reads too slowly (ELIMIT),
 * another socket error (ESYS), no memory (ENOMEM), or the owner closes.
 *
 * A write that fails because the peer has gone does not close by itself: the
 * peer's last words may still wait in our receive buffer. The read side
 * delivers them and then meets the end.
 *
 * A close with a flush sends what is queued, then our end of stream, then
 * reads on without looking until the peer's end: closing a socket with
 * unread bytes would reset the connection, and the reset can overtake what
 * was just flushed.
 */
#include "proto/transport.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/sockaddr.h"
#include "proto/transport_inside.h"

enum {
    KEEPALIVE_S = 5,
    SEALED_BYTES = 32 << 10, /* read at once where there is a channel */
};

static void on_handle_closed(uv_handle_t *handle)
{
    struct gpul_transport *t = handle->data;
    if (--t->open_handles > 0) {
        return;
    }
    if (t->handlers != NULL) {
        t->handlers->on_closed(t->arg, t->has_why ? &t->why : NULL);
    }
    gpul_channel_destroy(t->channel);
    gpul_deframer_release(&t->deframer);
    free(t);
}

static void close_handles(struct gpul_transport *t)
{
    if (t->is_closing) {
        return;
    }
    t->is_closing = true;
    uv_close(&t->handle, on_handle_closed);
    if (t->open_handles > 1) {
        uv_close((uv_handle_t *)&t->flush_timer, on_handle_closed);
    }
}

void gpul_transport_fail(struct gpul_transport *t, const struct gpul_error *why)
{
    if (!t->is_closing && !t->is_flushing) {
        t->why = *why;
        t->has_why = true;
    }
    close_handles(t);
}

bool gpul_transport_has_gone(int uv_status)
{
    return uv_status == UV_EOF || uv_status == UV_ECONNRESET ||
           uv_status == UV_EPIPE;
}

int gpul_transport_fail_uv(struct gpul_error *err, int uv_status,
                           const char *what)
{
    if (uv_status == UV_ENOMEM) {
        return gpul_fail(err, GPUL_ENOMEM, "%s: out of memory", what);
    }
    int status = gpul_transport_has_gone(uv_status) ? GPUL_ECLOSED : GPUL_ESYS;
    return gpul_fail(err, status, "%s: %s", what, uv_strerror(uv_status));
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    if (status != 0) {
        close_handles(request->data);
    }
}

/* After all that was queued, our end of stream. */
static void shut(struct gpul_transport *t)
{
    t->is_shut = true;
    if (t->channel != NULL) {
        gpul_channel_finish(t->channel);
        (void)gpul_transport_flush(t, NULL);
    }
    t->shutdown.data = t;
    if (!t->is_closing &&
        uv_shutdown(&t->shutdown, &t->stream, on_shutdown) != 0) {
        close_handles(t);
    }
}

/* ---- reading ------------------------------------------------------------ */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    (void)suggested;
    struct gpul_transport *t = handle->data;
    size_t n = SEALED_BYTES;
    uint8_t *bytes =
        t->channel != NULL ? malloc(n) : gpul_deframer_room(&t->deframer, &n);
    *room = uv_buf_init((char *)bytes, (unsigned)n);
}

/* Hand out the frames that are here, until the handler closes. */
static int deliver(struct gpul_transport *t, struct gpul_error *err)
{
    while (!t->is_closing && !t->is_flushing) {
        const uint8_t *body;
        size_t n;
        int rc = gpul_deframer_next(&t->deframer, &body, &n, err);
        if (rc <= 0) {
            return rc;
        }
        Gpul__Frame *frame;
        rc = gpul_message_decode(&frame, body, n, t->deframer.from, err);
        if (rc != 0) {
            return rc;
        }
        t->handlers->on_message(t->arg, frame);
        gpul_message_release(frame);
    }
    return 0;
}

static void on_end(struct gpul_transport *t, int uv_status)
{
    struct gpul_error why;
    bool is_cut = t->deframer.buf.used > t->deframer.consumed;
    bool is_early = t->channel != NULL && !t->is_proved;
    if (is_early && gpul_transport_has_gone(uv_status)) {
        gpul_fail(&why, GPUL_ECLOSED,
                  "the peer closed the connection before it had shown a key");
    } else if (uv_status == UV_EOF) {
        gpul_fail(&why, GPUL_ECLOSED, "the peer closed the connection%s",
                  is_cut ? " within a message" : "");
    } else if (uv_status == UV_ENOBUFS) {
        gpul_fail(&why, GPUL_ENOMEM, "reading: out of memory");
    } else {
        gpul_transport_fail_uv(&why, uv_status, "reading");
    }
    gpul_transport_fail(t, &why);
}

static void read_plain(struct gpul_transport *t, size_t n)
{
    struct gpul_error why;
    int rc = gpul_deframer_fill(&t->deframer, n, &why);
    if (rc == 0) {
        rc = deliver(t, &why);
    }
    if (rc != 0) {
        gpul_transport_fail(t, &why);
    }
}

/* The channel has opened: what waited for it goes out, the owner hears. */
static void prove(struct gpul_transport *t)
{
    t->is_proved = true;
    if (t->is_flushing) {
        shut(t);
        return;
    }
    (void)gpul_transport_flush(t, NULL);
    if (!t->is_closing && t->handlers->on_connected != NULL) {
        t->handlers->on_connected(t->arg);
    }
}

/* Take what the channel makes of the bytes that it was given. */
static int unseal(struct gpul_transport *t, struct gpul_error *err)
{
    uint8_t plain[16 << 10]; /* one record */
    for (;;) {
        int n = gpul_channel_get(t->channel, plain, sizeof(plain), err);
        if (!t->is_proved && gpul_channel_is_open(t->channel)) {
            prove(t);
        }
        if (n <= 0 || t->is_closing) {
            return n < 0 ? n : 0;
        }
        int rc = t->is_flushing
                     ? 0
                     : gpul_deframer_feed(&t->deframer, plain, (size_t)n, err);
        if (rc == 0) {
            rc = deliver(t, err);
        }
        if (rc != 0 || t->is_closing) {
            return rc;
        }
    }
}

/* A handshake goes on that began with a key of this job. */
static void hear_claim(struct gpul_transport *t)
{
    if (!t->has_claimed && !t->is_closing && !t->is_flushing &&
        gpul_transport_claimed_name(t)[0] != 0) {
        t->has_claimed = true;
        if (!t->is_proved && t->handlers->on_claimed != NULL) {
            t->handlers->on_claimed(t->arg);
        }
    }
}

/* An answer of the handshake, or an alert that says what is wrong, goes out
 * first: then the peer can say it to its user. */
static void read_sealed(struct gpul_transport *t, const uint8_t *bytes,
                        size_t n)
{
    struct gpul_error why;
    gpul_channel_put(t->channel, bytes, n);
    int rc = unseal(t, &why);
    if (!t->is_closing && !t->has_lost_writes) {
        (void)gpul_transport_flush(t, NULL);
    }
    if (rc != 0) {
        gpul_transport_fail(t, &why);
    } else {
        hear_claim(t);
    }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
    struct gpul_transport *t = stream->data;
    if (n < 0) {
        on_end(t, (int)n);
    } else if (n > 0 && t->channel != NULL && !t->is_shut && !t->is_closing) {
        read_sealed(t, (const uint8_t *)room->base, (size_t)n);
    } else if (n > 0 && !t->is_flushing) {
        read_plain(t, (size_t)n);
    }
    if (t->channel != NULL) {
        free(room->base);
    }
}

/* ---- opening ------------------------------------------------------------ */

/* A transport with its stream handle; NULL without memory. It stays silent
 * until it has handlers. */
static struct gpul_transport *create(uv_loop_t *loop, bool is_pipe,
                                     const struct gpul_keyring *keyring,
                                     enum gpul_peer from, void *arg,
                                     struct gpul_error *err)
{
    struct gpul_transport *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        gpul_fail(err, GPUL_ENOMEM, "no memory for a connection");
        return NULL;
    }
    if (keyring != NULL &&
        gpul_channel_create(&t->channel, keyring, err) != 0) {
        free(t);
        return NULL;
    }
    int rc =
        is_pipe ? uv_pipe_init(loop, &t->pipe, 0) : uv_tcp_init(loop, &t->tcp);
    if (rc != 0) {
        gpul_transport_fail_uv(err, rc, "preparing a connection");
        gpul_channel_destroy(t->channel);
        free(t);
        return NULL;
    }
    t->handle.data = t;
    t->open_handles = 1;
    t->arg = arg;
    t->queue_bytes_max = GPUL_SEND_QUEUE_BYTES_MAX;
    gpul_deframer_init(&t->deframer, from);
    return t;
}

static int start(struct gpul_transport *t)
{
    if (t->handle.type == UV_TCP) {
        /* Neither is needed for the connection to work. */
        (void)uv_tcp_nodelay(&t->tcp, 1);
        (void)uv_tcp_keepalive(&t->tcp, 1, KEEPALIVE_S);
    }
    return uv_read_start(&t->stream, on_alloc, on_read);
}

int gpul_transport_accept(struct gpul_transport **out, uv_stream_t *listener,
                          const struct gpul_keyring *keyring,
                          enum gpul_peer from,
                          const struct gpul_transport_handlers *handlers,
                          void *arg, struct gpul_error *err)
{
    *out = NULL;
    struct gpul_transport *t =
        create(listener->loop, false, keyring, from, arg, err);
    if (t == NULL) {
        return GPUL_ENOMEM;
    }
    int rc = uv_accept(listener, &t->stream);
    if (rc == 0) {
        rc = start(t);
    }
    if (rc != 0) {
        close_handles(t);
        return gpul_transport_fail_uv(err, rc, "accepting a connection");
    }
    t->handlers = handlers;
    *out = t;
    return 0;
}

static void on_connect(uv_connect_t *request, int status)
{
    struct gpul_transport *t = request->data;
    if (t->is_closing) {
        return;
    }
    if (status == 0) {
        status = start(t);
    }
    if (status != 0) {
        struct gpul_error why;
        gpul_transport_fail_uv(&why, status, "connecting");
        gpul_transport_fail(t, &why);
    } else if (!t->is_flushing && t->channel == NULL) {
        t->handlers->on_connected(t->arg);
    } else if (!t->is_flushing && t->handlers->on_reached != NULL) {
        t->handlers->on_reached(t->arg);
    }
}

int gpul_transport_connect(struct gpul_transport **out, uv_loop_t *loop,
                           const char *address, uint16_t port,
                           const struct gpul_keyring *keyring,
                           enum gpul_peer from,
                           const struct gpul_transport_handlers *handlers,
                           void *arg, struct gpul_error *err)
{
    *out = NULL;
    struct sockaddr_storage to;
    int rc = gpul_sockaddr_parse(&to, address, port, err);
    if (rc != 0) {
        return rc;
    }
    struct gpul_transport *t = create(loop, false, keyring, from, arg, err);
    if (t == NULL) {
        return GPUL_ENOMEM;
    }
    t->handlers = handlers;
    t->connect.data = t;
    rc = uv_tcp_connect(&t->connect, &t->tcp, (const struct sockaddr *)&to,
                        on_connect);
    if (rc != 0) {
        struct gpul_error why;
        gpul_transport_fail_uv(&why, rc, "connecting");
        gpul_transport_fail(t, &why);
    } else if (keyring != NULL) {
        (void)gpul_transport_flush(t, NULL); /* the ClientHello is queued */
    }
    *out = t;
    return 0;
}

int gpul_transport_open(struct gpul_transport **out, uv_loop_t *loop, int fd,
                        enum gpul_peer from,
                        const struct gpul_transport_handlers *handlers,
                        void *arg, struct gpul_error *err)
{
    *out = NULL;
    struct gpul_transport *t = create(loop, true, NULL, from, arg, err);
    if (t == NULL) {
        close(fd);
        return GPUL_ENOMEM;
    }
    /* An inherited descriptor must not be inherited further. */
    int rc = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? uv_pipe_open(&t->pipe, fd)
                                                 : UV_EBADF;
    if (rc != 0) {
        close(fd);
    } else {
        rc = start(t);
    }
    if (rc != 0) {
        close_handles(t);
        return gpul_transport_fail_uv(err, rc, "opening a socket pair");
    }
    t->handlers = handlers;
    *out = t;
    return 0;
}

void gpul_transport_hand_over(struct gpul_transport *t,
                              const struct gpul_transport_handlers *handlers,
                              void *arg)
{
    t->handlers = handlers;
    t->arg = arg;
}

void gpul_transport_set_queue_max(struct gpul_transport *t, size_t bytes_max)
{
    t->queue_bytes_max = bytes_max;
}

void gpul_transport_allow(struct gpul_transport *t, uint64_t message_mask)
{
    t->deframer.allowed = message_mask;
}

/* ---- closing ------------------------------------------------------------ */

static void on_flush_deadline(uv_timer_t *timer)
{
    close_handles(timer->data);
}

/* unix(7) hands out what is queued before it says that the end is reached. */
void gpul_transport_end_input(struct gpul_transport *t)
{
    uv_os_fd_t fd;
    if (!t->is_closing && uv_fileno(&t->handle, &fd) == 0) {
        (void)shutdown(fd, SHUT_RD);
    }
}

void gpul_transport_close(struct gpul_transport *t, uint64_t flush_ms)
{
    bool is_first = !t->is_flushing;
    t->is_flushing = true;
    if (flush_ms == 0) {
        close_handles(t);
    }
    if (t->is_closing || !is_first) {
        return;
    }
    /* What waits for the handshake is sent when that has ended. */
    if (t->channel == NULL || gpul_channel_waiting_bytes(t->channel) == 0) {
        shut(t);
    }
    if (t->is_closing) {
        return;
    }
    uv_timer_init(t->handle.loop, &t->flush_timer);
    t->flush_timer.data = t;
    t->open_handles++;
    uv_timer_start(&t->flush_timer, on_flush_deadline, flush_ms, 0);
}
