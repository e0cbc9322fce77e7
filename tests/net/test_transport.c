/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports against bare sockets that misbehave in one way each, and against
 * each other. Every test ends with uv_loop_close, which fails while a handle
 * is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/transport.h"
#include "tests/lib/memory.h"
#include "tests/lib/samples.h"

enum { PATIENCE_MS = 20000 };

/* What one transport has told its owner. */
struct end {
    struct gpul_transport *t;
    unsigned connected;
    unsigned messages;
    unsigned closed;
    unsigned close_at;   /* close within the handler of this message */
    uint64_t allow_next; /* what may come after the first message */
    uint32_t last_type;
    int status; /* of the reason; 1: there was none */
    char text[GPUL_ERROR_TEXT_BYTES];
};

static void on_connected(void *arg)
{
    struct end *e = arg;
    e->connected++;
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    struct end *e = arg;
    assert_int_equal(e->closed, 0);
    e->last_type = frame->body_case;
    if (e->allow_next != 0) {
        gpul_transport_allow(e->t, e->allow_next);
    }
    if (++e->messages == e->close_at) {
        gpul_transport_close(e->t, 0);
    }
}

static void on_closed(void *arg, const struct gpul_error *why)
{
    struct end *e = arg;
    e->closed++;
    e->t = NULL;
    e->status = 1;
    if (why != NULL) {
        e->status = why->status;
        memcpy(e->text, why->text, sizeof(e->text));
    }
}

static const struct gpul_transport_handlers handlers = {
    .on_connected = on_connected,
    .on_message = on_message,
    .on_closed = on_closed,
};

static uv_loop_t loop;

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

static void on_impatient(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Run until *count reaches n, and fail the test if that takes for ever. */
static void run_until(const unsigned *count, unsigned n)
{
    bool is_late = false;
    uv_timer_t timer;
    uv_timer_init(&loop, &timer);
    timer.data = &is_late;
    uv_update_time(&loop);
    uv_timer_start(&timer, on_impatient, PATIENCE_MS, 0);
    while (*count < n && !is_late) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_false(is_late);
}

/* A transport that takes `from` for its peer, and the bare other end. */
static int open_pair(struct end *e, enum gpul_peer from)
{
    int fds[2];
    *e = (struct end){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    assert_int_equal(
        gpul_transport_open(&e->t, &loop, fds[0], from, &handlers, e, NULL), 0);
    return fds[1];
}

static void write_all(int fd, const void *bytes, size_t n)
{
    assert_int_equal(write(fd, bytes, n), n);
}

/* Close a transport that still stands. */
static void finish(struct end *e, int fd)
{
    gpul_transport_close(e->t, 0);
    run_until(&e->closed, 1);
    assert_int_equal(e->status, 1);
    close(fd);
}

/* ---- delivery ----------------------------------------------------------- */

/* Frames arrive whole though their bytes come one at a time. */
static void test_byte_by_byte(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    size_t first = b.used;
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    for (size_t i = 0; i < b.used; i++) {
        write_all(fd, b.data + i, 1);
        uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(e.messages,
                         (i + 1 >= first ? 1 : 0) + (i + 1 == b.used ? 1 : 0));
    }
    assert_int_equal(e.last_type, GPUL__FRAME__BODY_HEARTBEAT);
    gpul_buf_release(&b);
    finish(&e, fd);
}

/* Many frames in one read are handed out one by one. */
static void test_many_at_once(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 1000; i++) {
        sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    }
    write_all(fd, b.data, b.used);
    run_until(&e.messages, 1000);
    gpul_buf_release(&b);
    finish(&e, fd);
}

/* A handler may close: what came in the same read is dropped. */
static void test_close_in_handler(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    e.close_at = 2;
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 5; i++) {
        sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    }
    write_all(fd, b.data, b.used);
    run_until(&e.closed, 1);
    assert_int_equal(e.messages, 2);
    assert_int_equal(e.status, 1);
    gpul_buf_release(&b);
    close(fd);
}

/* A handler may narrow what comes next, in the same read too. */
static void test_allow_in_handler(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    gpul_transport_allow(e.t, GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HELLO));
    e.allow_next = GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HEARTBEAT);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    write_all(fd, b.data, b.used);
    run_until(&e.closed, 1);
    assert_int_equal(e.messages, 2);
    assert_int_equal(e.status, GPUL_EPROTO);
    assert_string_equal(e.text, "a node may not send \"hello\" now");
    gpul_buf_release(&b);
    close(fd);
}

/* ---- ends --------------------------------------------------------------- */

/* A peer that stops sending has closed, between messages or within one. */
static void test_half_close(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    shutdown(fd, SHUT_WR);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ECLOSED);
    assert_string_equal(e.text, "the peer closed the connection");
    close(fd);

    fd = open_pair(&e, GPUL_PEER_NODE);
    write_all(fd, "\0\0\1\0\x0a", 5);
    shutdown(fd, SHUT_WR);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ECLOSED);
    assert_string_equal(e.text,
                        "the peer closed the connection within a message");
    close(fd);
}

/* Whatever is no message that may come ends the connection, with the reason
 * and without waiting for the rest. */
static void test_bad_streams(void **state)
{
    (void)state;
    const struct {
        const char *bytes;
        size_t n;
        int status;
        const char *text;
    } cases[] = {
        {"\0\0\x10\1\x0a", 5, GPUL_ELIMIT,
         "\"hello\" has 4097 bytes, at most 4096 are allowed"},
        {"\xff\xff\xff\xff\x22", 5, GPUL_ELIMIT,
         "\"heartbeat\" has 4294967295 bytes, at most 64 are allowed"},
        {"\0\0\0\2\x12\0", 6, GPUL_EPROTO, "a node may not send \"welcome\""},
        {"GET / HTTP/1.1\r\n", 16, GPUL_EPROTO, "unknown message from a node"},
        {"\0\0\0\2\x22\5", 6, GPUL_EPROTO, "\"heartbeat\" is malformed"},
        {"\0\0\0\2\x42\0", 6, GPUL_EPROTO,
         "ready: has neither a port nor an error"},
        {"\0\0\0\2\x0a\0", 6, GPUL_EPROTO,
         "hello: protocol_min: is 0, not within 1 to 4294967295"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct end e;
        int fd = open_pair(&e, GPUL_PEER_NODE);
        write_all(fd, cases[i].bytes, cases[i].n);
        run_until(&e.closed, 1);
        assert_string_equal(e.text, cases[i].text);
        assert_int_equal(e.status, cases[i].status);
        assert_int_equal(e.messages, 0);
        close(fd);
    }
}

/* A peer that does not read is dropped when the queue is full, and the queue
 * never is larger. */
static void test_slow_reader(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    static char data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data = (ProtobufCBinaryData){sizeof(data), (uint8_t *)data};
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;

    struct gpul_error err = {0};
    size_t queued_max = 0;
    unsigned sent = 0;
    int rc = 0;
    while (rc == 0 && sent < 10000) {
        rc = gpul_transport_send(e.t, &frame, &err);
        size_t queued = gpul_transport_queued_bytes(e.t);
        queued_max = queued > queued_max ? queued : queued_max;
        sent++;
    }
    assert_int_equal(rc, GPUL_ELIMIT);
    assert_memory_equal(err.text, "the peer reads too slowly: ", 27);
    assert_in_range(queued_max, GPUL_SEND_QUEUE_BYTES_MAX - 40000,
                    GPUL_SEND_QUEUE_BYTES_MAX);
    assert_int_equal(e.closed, 0);
    assert_int_equal(gpul_transport_send(e.t, &frame, NULL), GPUL_ECLOSED);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ELIMIT);
    assert_string_equal(e.text, err.text);
    close(fd);
}

/* The last words of a peer that has gone are delivered, though sending to it
 * has failed before. */
static void test_last_words(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_COORDINATOR);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_FINISH);
    write_all(fd, b.data, b.used);
    close(fd);
    Gpul__Frame frame = sample_frame(GPUL__FRAME__BODY_HEARTBEAT);
    struct gpul_error err = {0};
    assert_int_equal(gpul_transport_send(e.t, &frame, &err), GPUL_ECLOSED);
    assert_string_equal(err.text, "sending: broken pipe");
    assert_int_equal(gpul_transport_send(e.t, &frame, &err), GPUL_ECLOSED);
    assert_string_equal(err.text, "the connection is closed");
    run_until(&e.closed, 1);
    assert_int_equal(e.messages, 1);
    assert_int_equal(e.last_type, GPUL__FRAME__BODY_FINISH);
    assert_int_equal(e.status, GPUL_ECLOSED);
    gpul_buf_release(&b);
}

/* Without memory for the queue the connection ends, and says why; without
 * memory for the connection there is none. */
static void test_no_memory(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    static uint8_t bytes[1u << 20];
    struct gpul_error err = {0};
    memory_fail_at(1);
    assert_int_equal(gpul_transport_send_bytes(e.t, bytes, sizeof(bytes), &err),
                     GPUL_ENOMEM);
    assert_string_equal(err.text, "sending: out of memory");
    run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ENOMEM);
    close(fd);

    fd = open_pair(&e, GPUL_PEER_NODE);
    write_all(fd, "\0", 1);
    memory_fail_at(1);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ENOMEM);
    assert_string_equal(e.text, "reading: out of memory");

    memory_fail_at(1);
    assert_int_equal(gpul_transport_open(&e.t, &loop, fd, GPUL_PEER_NODE,
                                         &handlers, &e, &err),
                     GPUL_ENOMEM);
    assert_null(e.t);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken, and closed */
}

/* A descriptor that is no stream is refused; it is closed all the same. */
static void test_open_fails(void **state)
{
    (void)state;
    struct end e = {0};
    struct gpul_error err = {0};
    assert_int_equal(gpul_transport_open(&e.t, &loop, 1 << 19, GPUL_PEER_NODE,
                                         &handlers, &e, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "opening a socket pair: bad file descriptor");
    assert_null(e.t);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(e.closed, 0);
}

/* An inherited descriptor is not passed on to children. */
static void test_close_on_exec(void **state)
{
    (void)state;
    struct end e = {0};
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(gpul_transport_open(&e.t, &loop, fds[0], GPUL_PEER_PROBE,
                                         &handlers, &e, NULL),
                     0);
    assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    char text[GPUL_ADDRESS_BYTES_MAX + 1] = "x";
    uint16_t port = 1;
    gpul_transport_peer_address(e.t, text, &port);
    assert_string_equal(text, "");
    assert_int_equal(port, 0);
    finish(&e, fds[1]);
}

/* What a process sent before it ended is taken, and then the end comes, though
 * a child of it still holds the socket open. */
static void test_end_input(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    write_all(fd, b.data, b.used);
    gpul_transport_end_input(e.t);
    run_until(&e.closed, 1);
    assert_int_equal(e.messages, 1);
    assert_int_equal(e.status, GPUL_ECLOSED);
    gpul_buf_release(&b);
    close(fd);
}

/* ---- TCP ---------------------------------------------------------------- */

enum { CONNECTIONS_MAX = 2000 };

struct server {
    uv_tcp_t listener;
    uint16_t port;
    unsigned accepted;
    struct end ends[CONNECTIONS_MAX];
    const struct gpul_transport_handlers *handlers;
};

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;
    assert_int_equal(status, 0);
    assert_true(s->accepted < CONNECTIONS_MAX);
    struct end *e = &s->ends[s->accepted];
    assert_int_equal(gpul_transport_accept(&e->t, listener, GPUL_PEER_NODE,
                                           s->handlers, e, NULL),
                     0);
    s->accepted++;
}

static struct server *listen_on(const char *address)
{
    struct server *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    struct sockaddr_storage ss = {0};
    if (strchr(address, ':') != NULL) {
        uv_ip6_addr(address, 0, (struct sockaddr_in6 *)&ss);
    } else {
        uv_ip4_addr(address, 0, (struct sockaddr_in *)&ss);
    }
    uv_tcp_init(&loop, &s->listener);
    s->listener.data = s;
    s->handlers = &handlers;
    assert_int_equal(uv_tcp_bind(&s->listener, (struct sockaddr *)&ss, 0), 0);
    assert_int_equal(
        uv_listen((uv_stream_t *)&s->listener, 4096, on_connection), 0);
    int n = sizeof(ss);
    uv_tcp_getsockname(&s->listener, (struct sockaddr *)&ss, &n);
    s->port = ntohs(((struct sockaddr_in *)&ss)->sin_port);
    return s;
}

static void stop_listening(struct server *s)
{
    uv_close((uv_handle_t *)&s->listener, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    free(s);
}

static void dial(struct end *e, const char *address, uint16_t port)
{
    assert_int_equal(gpul_transport_connect(&e->t, &loop, address, port,
                                            GPUL_PEER_COORDINATOR, &handlers, e,
                                            NULL),
                     0);
}

/* A frame sent before the connection stands goes out when it does; both ends
 * know both addresses. */
static void test_connect(void **state)
{
    (void)state;
    struct server *s = listen_on("127.0.0.1");
    struct end e = {0};
    dial(&e, "127.0.0.1", s->port);
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_transport_send(e.t, &hello, NULL), 0);
    assert_true(gpul_transport_queued_bytes(e.t) > 0);
    assert_int_equal(e.connected, 0);
    run_until(&s->ends[0].messages, 1);
    assert_int_equal(e.connected, 1);
    assert_int_equal(gpul_transport_queued_bytes(e.t), 0);

    char here[GPUL_ADDRESS_BYTES_MAX + 1], there[GPUL_ADDRESS_BYTES_MAX + 1];
    uint16_t here_port, there_port;
    gpul_transport_peer_address(e.t, there, &there_port);
    assert_string_equal(there, "127.0.0.1");
    assert_int_equal(there_port, s->port);
    gpul_transport_local_address(e.t, here, &here_port);
    gpul_transport_peer_address(s->ends[0].t, there, &there_port);
    assert_string_equal(here, there);
    assert_int_equal(here_port, there_port);

    gpul_transport_close(e.t, 0);
    run_until(&e.closed, 1);
    run_until(&s->ends[0].closed, 1);
    assert_int_equal(s->ends[0].status, GPUL_ECLOSED);
    stop_listening(s);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool is_there = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_there;
}

/* IPv6 literals work, and an IPv4 peer of an IPv6 listener is shown as what
 * it is. */
static void test_ipv6(void **state)
{
    (void)state;
    if (!has_ipv6()) {
        skip();
    }
    struct server *s = listen_on("::");
    const char *addresses[] = {"::1", "127.0.0.1"};
    for (unsigned i = 0; i < 2; i++) {
        struct end e = {0};
        dial(&e, addresses[i], s->port);
        run_until(&s->accepted, i + 1);
        char text[GPUL_ADDRESS_BYTES_MAX + 1];
        gpul_transport_peer_address(s->ends[i].t, text, NULL);
        assert_string_equal(text, addresses[i]);
        gpul_transport_close(e.t, 0);
        run_until(&s->ends[i].closed, 1);
        run_until(&e.closed, 1);
    }
    stop_listening(s);
}

/* A dialled port where nobody listens ends in on_closed; what is no literal
 * is refused at once. */
static void test_connect_fails(void **state)
{
    (void)state;
    struct server *s = listen_on("127.0.0.1");
    uint16_t port = s->port;
    stop_listening(s);
    struct end e = {0};
    dial(&e, "127.0.0.1", port);
    run_until(&e.closed, 1);
    assert_int_equal(e.connected, 0);
    assert_int_equal(e.status, GPUL_ESYS);
    assert_string_equal(e.text, "connecting: connection refused");

    struct gpul_error err = {0};
    assert_int_equal(gpul_transport_connect(&e.t, &loop, "localhost", port,
                                            GPUL_PEER_COORDINATOR, &handlers,
                                            &e, &err),
                     GPUL_EINVAL);
    assert_string_equal(err.text, "localhost is not an address");
    assert_null(e.t);
}

/* A dialled connection may be closed before it stands; with a flush what was
 * sent still arrives. */
static void test_close_while_connecting(void **state)
{
    (void)state;
    struct server *s = listen_on("127.0.0.1");
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    for (unsigned i = 0; i < 2; i++) {
        struct end e = {0};
        dial(&e, "127.0.0.1", s->port);
        assert_int_equal(gpul_transport_send(e.t, &hello, NULL), 0);
        gpul_transport_close(e.t, i * PATIENCE_MS);
        run_until(&e.closed, 1);
        assert_int_equal(e.connected, 0);
        assert_int_equal(e.status, 1);
    }
    /* The kernel had both connections ready before they were closed. */
    run_until(&s->accepted, 2);
    run_until(&s->ends[0].closed, 1);
    run_until(&s->ends[1].closed, 1);
    assert_int_equal(s->ends[0].messages, 0);
    assert_int_equal(s->ends[1].messages, 1);
    stop_listening(s);
}

/* ---- flush -------------------------------------------------------------- */

/* Queue `count` pieces of output, as much as the kernel never takes. */
static void send_output(struct end *e, unsigned count)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data = (ProtobufCBinaryData){sizeof(data), data};
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(gpul_transport_send(e->t, &frame, NULL), 0);
    }
}

/* All that was queued arrives before the close, though the peer had sent
 * something that was never read. */
static void test_flush(void **state)
{
    (void)state;
    enum { PIECES = 200 };
    struct server *s = listen_on("127.0.0.1");
    struct end e = {0};
    assert_int_equal(gpul_transport_connect(&e.t, &loop, "127.0.0.1", s->port,
                                            GPUL_PEER_NODE, &handlers, &e,
                                            NULL),
                     0);
    run_until(&e.connected, 1);
    run_until(&s->accepted, 1);
    struct end *sender = &s->ends[0];
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_transport_send(e.t, &hello, NULL), 0);
    send_output(sender, PIECES);
    assert_true(gpul_transport_queued_bytes(sender->t) > 0);
    gpul_transport_close(sender->t, PATIENCE_MS);
    run_until(&sender->closed, 1);
    run_until(&e.closed, 1);
    assert_int_equal(sender->messages, 0);
    assert_int_equal(sender->status, 1);
    assert_int_equal(e.messages, PIECES);
    assert_int_equal(e.status, GPUL_ECLOSED);
    assert_string_equal(e.text, "the peer closed the connection");
    stop_listening(s);
}

/* A peer that reads nothing delays the close up to the bound, not longer; a
 * second close without a flush ends it at once. */
static void test_flush_bound(void **state)
{
    (void)state;
    struct end e;
    int fd = open_pair(&e, GPUL_PEER_NODE);
    send_output(&e, 100);
    gpul_transport_close(e.t, 20);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, 1);
    close(fd);

    fd = open_pair(&e, GPUL_PEER_NODE);
    send_output(&e, 100);
    gpul_transport_close(e.t, 10 * PATIENCE_MS);
    gpul_transport_close(e.t, 10 * PATIENCE_MS);
    gpul_transport_close(e.t, 0);
    run_until(&e.closed, 1);
    assert_int_equal(e.status, 1);
    close(fd);
}

/* ---- many --------------------------------------------------------------- */

static unsigned greeted;
static unsigned gone;

static void answer_hello(void *arg, const Gpul__Frame *frame)
{
    struct end *e = arg;
    assert_int_equal(frame->body_case, GPUL__FRAME__BODY_HELLO);
    Gpul__Frame welcome = sample_frame(GPUL__FRAME__BODY_WELCOME);
    assert_int_equal(gpul_transport_send(e->t, &welcome, NULL), 0);
}

static void leave(void *arg, const Gpul__Frame *frame)
{
    struct end *e = arg;
    assert_int_equal(frame->body_case, GPUL__FRAME__BODY_WELCOME);
    greeted++;
    gpul_transport_close(e->t, PATIENCE_MS);
}

static void say_hello(void *arg)
{
    struct end *e = arg;
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_transport_send(e->t, &hello, NULL), 0);
}

static void count_gone(void *arg, const struct gpul_error *why)
{
    on_closed(arg, why);
    gone++;
}

static bool can_open(rlim_t n)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur >= n;
}

/* Two thousand nodes dial at once, are welcomed and leave; both sides of each
 * connection live in this process. */
static void test_many_connections(void **state)
{
    (void)state;
    if (!can_open(2 * CONNECTIONS_MAX + 100)) {
        skip();
    }
    static const struct gpul_transport_handlers node = {
        .on_connected = say_hello,
        .on_message = leave,
        .on_closed = count_gone};
    static const struct gpul_transport_handlers coordinator = {
        .on_message = answer_hello, .on_closed = count_gone};
    struct server *s = listen_on("127.0.0.1");
    s->handlers = &coordinator;
    struct end *nodes = calloc(CONNECTIONS_MAX, sizeof(*nodes));
    assert_non_null(nodes);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        assert_int_equal(gpul_transport_connect(&nodes[i].t, &loop, "127.0.0.1",
                                                s->port, GPUL_PEER_COORDINATOR,
                                                &node, &nodes[i], NULL),
                         0);
    }
    run_until(&gone, 2 * CONNECTIONS_MAX);
    assert_int_equal(greeted, CONNECTIONS_MAX);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        assert_int_equal(nodes[i].status, 1);
        assert_int_equal(s->ends[i].status, GPUL_ECLOSED);
    }
    free(nodes);
    stop_listening(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_byte_by_byte),
        T(test_many_at_once),
        T(test_close_in_handler),
        T(test_allow_in_handler),
        T(test_half_close),
        T(test_bad_streams),
        T(test_slow_reader),
        T(test_last_words),
        T(test_no_memory),
        T(test_open_fails),
        T(test_close_on_exec),
        T(test_end_input),
        T(test_connect),
        T(test_ipv6),
        T(test_connect_fails),
        T(test_close_while_connecting),
        T(test_flush),
        T(test_flush_bound),
        T(test_many_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
