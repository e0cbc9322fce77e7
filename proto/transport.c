/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: open (accept, connect or a descriptor) -> reading starts ->
 * bytes go straight into the deframer -> each whole frame is decoded and
 * handed to on_message -> close -> all handles closed -> on_closed -> free.
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
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/sockaddr.h"

enum { KEEPALIVE_S = 5 };

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
    struct gpul_deframer deframer;
    const struct gpul_transport_handlers *handlers; /* NULL: never opened */
    void *arg;
    struct gpul_error why;
    size_t queue_bytes_max;
    unsigned open_handles; /* freed when the last is closed */
    bool has_why;
    bool is_flushing; /* the owner has closed; only on_closed will come */
    bool is_closing;  /* the handles are being closed */
    bool has_lost_writes;
};

/* A copy of bytes that the socket did not take at once. */
struct pending_write {
    uv_write_t request;
    uint8_t bytes[];
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

/* Close for a reason that the owner does not know yet. */
static void fail(struct gpul_transport *t, const struct gpul_error *why)
{
    if (!t->is_closing && !t->is_flushing) {
        t->why = *why;
        t->has_why = true;
    }
    close_handles(t);
}

static bool peer_has_gone(int uv_status)
{
    return uv_status == UV_EOF || uv_status == UV_ECONNRESET ||
           uv_status == UV_EPIPE;
}

static int fail_uv(struct gpul_error *err, int uv_status, const char *what)
{
    if (uv_status == UV_ENOMEM) {
        return gpul_fail(err, GPUL_ENOMEM, "%s: out of memory", what);
    }
    int status = peer_has_gone(uv_status) ? GPUL_ECLOSED : GPUL_ESYS;
    return gpul_fail(err, status, "%s: %s", what, uv_strerror(uv_status));
}

/* ---- reading ------------------------------------------------------------ */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    (void)suggested;
    struct gpul_transport *t = handle->data;
    size_t n;
    uint8_t *bytes = gpul_deframer_room(&t->deframer, &n);
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
    if (uv_status == UV_EOF) {
        gpul_fail(&why, GPUL_ECLOSED, "the peer closed the connection%s",
                  is_cut ? " within a message" : "");
    } else if (uv_status == UV_ENOBUFS) {
        gpul_fail(&why, GPUL_ENOMEM, "reading: out of memory");
    } else {
        fail_uv(&why, uv_status, "reading");
    }
    fail(t, &why);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
    (void)room;
    struct gpul_transport *t = stream->data;
    if (n < 0) {
        on_end(t, (int)n);
        return;
    }
    if (n == 0 || t->is_flushing) {
        return;
    }
    struct gpul_error why;
    int rc = gpul_deframer_fill(&t->deframer, (size_t)n, &why);
    if (rc == 0) {
        rc = deliver(t, &why);
    }
    if (rc != 0) {
        fail(t, &why);
    }
}

/* ---- opening ------------------------------------------------------------ */

/* A transport with its stream handle; NULL without memory. It stays silent
 * until it has handlers. */
static struct gpul_transport *create(uv_loop_t *loop, bool is_pipe,
                                     enum gpul_peer from, void *arg,
                                     struct gpul_error *err)
{
    struct gpul_transport *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        gpul_fail(err, GPUL_ENOMEM, "no memory for a connection");
        return NULL;
    }
    int rc =
        is_pipe ? uv_pipe_init(loop, &t->pipe, 0) : uv_tcp_init(loop, &t->tcp);
    if (rc != 0) {
        fail_uv(err, rc, "preparing a connection");
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
                          enum gpul_peer from,
                          const struct gpul_transport_handlers *handlers,
                          void *arg, struct gpul_error *err)
{
    *out = NULL;
    struct gpul_transport *t = create(listener->loop, false, from, arg, err);
    if (t == NULL) {
        return GPUL_ENOMEM;
    }
    int rc = uv_accept(listener, &t->stream);
    if (rc == 0) {
        rc = start(t);
    }
    if (rc != 0) {
        close_handles(t);
        return fail_uv(err, rc, "accepting a connection");
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
        fail_uv(&why, status, "connecting");
        fail(t, &why);
    } else if (!t->is_flushing) {
        t->handlers->on_connected(t->arg);
    }
}

int gpul_transport_connect(struct gpul_transport **out, uv_loop_t *loop,
                           const char *address, uint16_t port,
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
    struct gpul_transport *t = create(loop, false, from, arg, err);
    if (t == NULL) {
        return GPUL_ENOMEM;
    }
    t->handlers = handlers;
    t->connect.data = t;
    rc = uv_tcp_connect(&t->connect, &t->tcp, (const struct sockaddr *)&to,
                        on_connect);
    if (rc != 0) {
        struct gpul_error why;
        fail_uv(&why, rc, "connecting");
        fail(t, &why);
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
    struct gpul_transport *t = create(loop, true, from, arg, err);
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
        return fail_uv(err, rc, "opening a socket pair");
    }
    t->handlers = handlers;
    *out = t;
    return 0;
}

void gpul_transport_set_arg(struct gpul_transport *t, void *arg)
{
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

/* ---- writing ------------------------------------------------------------ */

/* A write has failed: sooner or later the connection ends. */
static int lose_writes(struct gpul_transport *t, int uv_status,
                       struct gpul_error *err)
{
    struct gpul_error why;
    int status = fail_uv(&why, uv_status, "sending");
    t->has_lost_writes = true;
    if (!peer_has_gone(uv_status)) {
        fail(t, &why);
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
        fail(t, &why);
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

int gpul_transport_send_bytes(struct gpul_transport *t, const uint8_t *bytes,
                              size_t n, struct gpul_error *err)
{
    if (t->is_closing || t->is_flushing || t->has_lost_writes) {
        return gpul_fail(err, GPUL_ECLOSED, "the connection is closed");
    }
    size_t taken = 0;
    if (gpul_transport_queued_bytes(t) == 0) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)n);
        int rc = uv_try_write(&t->stream, &buf, 1);
        if (rc < 0 && rc != UV_EAGAIN) {
            return lose_writes(t, rc, err);
        }
        taken = rc > 0 ? (size_t)rc : 0;
    }
    return taken == n ? 0 : queue(t, bytes + taken, n - taken, err);
}

int gpul_transport_send(struct gpul_transport *t, const Gpul__Frame *frame,
                        struct gpul_error *err)
{
    struct gpul_buf out;
    gpul_buf_init(&out, GPUL_FRAME_PREFIX_BYTES + GPUL_JOB_BYTES_MAX);
    int rc = gpul_message_encode(&out, frame, err);
    if (rc == 0) {
        rc = gpul_transport_send_bytes(t, out.data, out.used, err);
    }
    gpul_buf_release(&out);
    return rc;
}

size_t gpul_transport_queued_bytes(const struct gpul_transport *t)
{
    return uv_stream_get_write_queue_size(&t->stream);
}

/* ---- addresses ---------------------------------------------------------- */

/* uv_tcp_getsockname or uv_tcp_getpeername. */
typedef int (*name_fn)(const uv_tcp_t *tcp, struct sockaddr *name, int *n);

static void read_address(const struct gpul_transport *t, name_fn get_name,
                         char *text, uint16_t *port)
{
    struct sockaddr_storage ss;
    int n = sizeof(ss);
    text[0] = 0;
    if (port != NULL) {
        *port = 0;
    }
    if (t->handle.type == UV_TCP && !t->is_closing &&
        get_name(&t->tcp, (struct sockaddr *)&ss, &n) == 0) {
        gpul_sockaddr_format(&ss, text, port);
    }
}

void gpul_transport_local_address(const struct gpul_transport *t, char *text,
                                  uint16_t *port)
{
    read_address(t, uv_tcp_getsockname, text, port);
}

void gpul_transport_peer_address(const struct gpul_transport *t, char *text,
                                 uint16_t *port)
{
    read_address(t, uv_tcp_getpeername, text, port);
}

/* ---- closing ------------------------------------------------------------ */

static void on_flush_deadline(uv_timer_t *timer)
{
    close_handles(timer->data);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    if (status != 0) {
        close_handles(request->data);
    }
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
    t->shutdown.data = t;
    if (uv_shutdown(&t->shutdown, &t->stream, on_shutdown) != 0) {
        close_handles(t);
        return;
    }
    uv_timer_init(t->handle.loop, &t->flush_timer);
    t->flush_timer.data = t;
    t->open_handles++;
    uv_timer_start(&t->flush_timer, on_flush_deadline, flush_ms, 0);
}
