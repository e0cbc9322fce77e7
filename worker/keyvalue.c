/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path of a connection: accepted, read until a request is whole,
 * reading stopped, response written, then the next request, which may have
 * come with the first. After the last response our end is shut down and what
 * still comes is thrown away until the peer closes: to close with bytes
 * unread would reset the connection, and the response with it.
 * Failures: a request to refuse is a last one; end of stream, an error, or a
 * request that is not answered within its time close at once. With all
 * places taken, connections wait in the kernel's queue for one.
 *
 * Life: the listener, the sweep timer and each connection are handles;
 * `handle_count` counts those not yet closed, and the last one frees all.
 */
#include "worker/keyvalue.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/buf.h"
#include "worker/kvhttp.h"
#include "worker/kvstore.h"

enum {
    CONNECTIONS_MAX = 1024,
    STORE_BYTES_MAX = 64 << 20,
    TRAFFIC_BYTES_MAX = 64 << 20,
    READ_BYTES = 64 << 10,
    REQUEST_BYTES_MAX = KVHTTP_HEAD_BYTES_MAX + KVHTTP_VALUE_BYTES_MAX,
    RESPONSE_BYTES_MAX = KVHTTP_VALUE_BYTES_MAX + 256,
    REQUEST_TIME_MS = 5000,
    SWEEP_MS = 500,
    BACKLOG = 1024,
};

struct connection {
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct keyvalue *kv;
    struct connection *next;
    struct connection *previous;
    struct gpul_buf in;  /* not yet answered */
    struct gpul_buf out; /* on its way */
    size_t traffic;      /* memory of both, as counted in kv->traffic */
    uint64_t deadline_ms;
    bool keeps_alive; /* after the response on its way */
    bool is_draining; /* the last response is out */
};

struct keyvalue {
    uv_tcp_t listener;
    uv_timer_t sweep;
    struct connection *connections;
    size_t connection_count;
    size_t handle_count;
    size_t traffic;
    struct kvstore store;
    bool is_waiting; /* a connection waits for a place */
    bool is_stopping;
    char scratch[READ_BYTES];
};

static void accept_one(struct keyvalue *kv);
static void serve(struct connection *c);

/* ---- closing ------------------------------------------------------------- */

static void drop_handle(struct keyvalue *kv)
{
    if (--kv->handle_count == 0) {
        kvstore_release(&kv->store);
        free(kv);
    }
}

static void count_traffic(struct connection *c)
{
    size_t now = c->in.capacity + c->out.capacity;
    c->kv->traffic = c->kv->traffic - c->traffic + now;
    c->traffic = now;
}

static void on_connection_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct keyvalue *kv = c->kv;
    kv->traffic -= c->traffic;
    gpul_buf_release(&c->in);
    gpul_buf_release(&c->out);
    free(c);
    if (kv->is_waiting && !kv->is_stopping) {
        kv->is_waiting = false;
        accept_one(kv);
    }
    drop_handle(kv);
}

static void close_connection(struct connection *c)
{
    struct keyvalue *kv = c->kv;
    if (uv_is_closing((uv_handle_t *)&c->tcp)) {
        return;
    }
    if (c->previous != NULL) {
        c->previous->next = c->next;
    } else {
        kv->connections = c->next;
    }
    if (c->next != NULL) {
        c->next->previous = c->previous;
    }
    kv->connection_count--;
    if (kv->connection_count == 0) {
        uv_timer_stop(&kv->sweep);
    }
    uv_close((uv_handle_t *)&c->tcp, on_connection_closed);
}

static void on_sweep(uv_timer_t *timer)
{
    struct keyvalue *kv = timer->data;
    uint64_t now_ms = uv_now(timer->loop);
    struct connection *next;
    for (struct connection *c = kv->connections; c != NULL; c = next) {
        next = c->next;
        if (now_ms >= c->deadline_ms) {
            close_connection(c);
        }
    }
}

/* ---- requests and responses ---------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct connection *c = handle->data;
    (void)suggested;
    *buf = uv_buf_init(c->kv->scratch, sizeof(c->kv->scratch));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    if (n == 0 || (n > 0 && c->is_draining)) {
        return;
    }
    if (n < 0 || gpul_buf_append(&c->in, buf->base, (size_t)n) != 0) {
        close_connection(c);
        return;
    }
    serve(c);
}

/* Read, or go on reading. */
static void read_on(struct connection *c)
{
    int rc = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (rc != 0 && rc != UV_EALREADY) {
        close_connection(c);
    }
}

static void on_shut_down(uv_shutdown_t *shutdown, int status)
{
    struct connection *c = shutdown->data;
    if (status < 0) {
        close_connection(c);
    } else {
        read_on(c);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct connection *c = write->data;
    if (status < 0) {
        close_connection(c);
        return;
    }
    gpul_buf_release(&c->out);
    if (c->in.used == 0) {
        gpul_buf_release(&c->in);
    }
    if (c->keeps_alive) {
        c->deadline_ms = uv_now(c->tcp.loop) + REQUEST_TIME_MS;
        serve(c);
        return;
    }
    c->is_draining = true;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shut_down) != 0) {
        close_connection(c);
    }
}

/* Prepare the response to what has come in; false if it is not whole. */
static bool respond(struct connection *c)
{
    struct kvhttp_request request;
    unsigned int status = kvhttp_parse(&request, c->in.data, c->in.used);
    if (c->kv->traffic > TRAFFIC_BYTES_MAX) {
        status = 503;
    }
    if (status == 0) {
        return false;
    }
    c->keeps_alive = status == 200 && request.keeps_alive;
    if (status == 200) {
        kvhttp_answer(&c->out, &c->kv->store, &request);
        gpul_buf_consume(&c->in, request.bytes);
    } else {
        kvhttp_refuse(&c->out, status);
    }
    return true;
}

/* Answer the next request, or read until it is there. */
static void serve(struct connection *c)
{
    count_traffic(c);
    if (!respond(c)) {
        read_on(c);
        return;
    }
    count_traffic(c);
    uv_read_stop((uv_stream_t *)&c->tcp);
    uv_buf_t buf = uv_buf_init((char *)c->out.data, (unsigned int)c->out.used);
    if (c->out.is_failed ||
        uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) {
        close_connection(c);
    }
}

/* ---- accepting ----------------------------------------------------------- */

static void add_connection(struct keyvalue *kv, struct connection *c)
{
    c->next = kv->connections;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    kv->connections = c;
    kv->connection_count++;
    if (!uv_is_active((uv_handle_t *)&kv->sweep)) {
        uv_timer_start(&kv->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    }
}

static void accept_one(struct keyvalue *kv)
{
    struct connection *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        kv->is_waiting = true;
        return;
    }
    c->kv = kv;
    uv_tcp_init(kv->listener.loop, &c->tcp);
    c->tcp.data = c;
    c->write.data = c;
    c->shutdown.data = c;
    c->deadline_ms = uv_now(kv->listener.loop) + REQUEST_TIME_MS;
    gpul_buf_init(&c->in, REQUEST_BYTES_MAX + READ_BYTES);
    gpul_buf_init(&c->out, RESPONSE_BYTES_MAX);
    kv->handle_count++;
    add_connection(kv, c);
    if (uv_accept((uv_stream_t *)&kv->listener, (uv_stream_t *)&c->tcp) != 0) {
        close_connection(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    read_on(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct keyvalue *kv = listener->data;
    if (status < 0) {
        return;
    }
    if (kv->connection_count >= CONNECTIONS_MAX) {
        kv->is_waiting = true;
        return;
    }
    accept_one(kv);
}

/* ---- start and stop ------------------------------------------------------ */

static void on_handle_closed(uv_handle_t *handle)
{
    drop_handle(handle->data);
}

void keyvalue_stop(struct keyvalue *kv)
{
    if (kv == NULL) {
        return;
    }
    kv->is_stopping = true;
    while (kv->connections != NULL) {
        close_connection(kv->connections);
    }
    uv_close((uv_handle_t *)&kv->sweep, on_handle_closed);
    uv_close((uv_handle_t *)&kv->listener, on_handle_closed);
}

static int listen_on(struct keyvalue *kv, const struct sockaddr_storage *at)
{
    const struct sockaddr *address = (const struct sockaddr *)at;
    int rc = uv_tcp_bind(&kv->listener, address, 0);
    return rc != 0 ? rc
                   : uv_listen((uv_stream_t *)&kv->listener, BACKLOG,
                               on_connection);
}

int keyvalue_start(struct keyvalue **out, uv_loop_t *loop, const char *address,
                   uint16_t port, struct gpul_error *err)
{
    struct sockaddr_storage at = {0};
    *out = NULL;
    if (uv_ip4_addr(address, port, (struct sockaddr_in *)&at) != 0 &&
        uv_ip6_addr(address, port, (struct sockaddr_in6 *)&at) != 0) {
        return gpul_fail(err, GPUL_EINVAL, "\"%s\" is not an address", address);
    }
    struct keyvalue *kv = calloc(1, sizeof(*kv));
    if (kv == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the key-value store");
    }
    kvstore_init(&kv->store, STORE_BYTES_MAX);
    uv_tcp_init(loop, &kv->listener);
    uv_timer_init(loop, &kv->sweep);
    kv->listener.data = kv;
    kv->sweep.data = kv;
    kv->handle_count = 2;
    int rc = listen_on(kv, &at);
    if (rc != 0) {
        keyvalue_stop(kv);
        return gpul_fail_errno(err, -rc,
                               "key-value store: cannot listen on %s port %u",
                               address, (unsigned int)port);
    }
    *out = kv;
    return 0;
}

uint16_t keyvalue_port(const struct keyvalue *kv)
{
    struct sockaddr_storage at;
    int bytes = sizeof(at);
    if (uv_tcp_getsockname(&kv->listener, (struct sockaddr *)&at, &bytes) !=
        0) {
        return 0;
    }
    return at.ss_family == AF_INET6
               ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
               : ntohs(((struct sockaddr_in *)&at)->sin_port);
}
