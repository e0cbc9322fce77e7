/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports that dial each other over TCP: one, and two thousand; first as
 * they are, then with a key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/transport.h"
#include "tests/lib/ends.h"
#include "tests/lib/samples.h"

/* ---- TCP ---------------------------------------------------------------- */

enum { CONNECTIONS_MAX = 2000 };

/* Of the coordinator and of a node; NULL while bytes go as they are. */
static struct gpul_keyring *ours, *theirs;

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
    assert_int_equal(gpul_transport_accept(&e->t, listener, ours,
                                           GPUL_PEER_NODE, s->handlers, e,
                                           NULL),
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
    uv_tcp_init(&ends_loop, &s->listener);
    s->listener.data = s;
    s->handlers = &ends_handlers;
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
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    free(s);
}

static void dial(struct end *e, const char *address, uint16_t port)
{
    assert_int_equal(gpul_transport_connect(&e->t, &ends_loop, address, port,
                                            theirs, GPUL_PEER_COORDINATOR,
                                            &ends_handlers, e, NULL),
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
    ends_run_until(&s->ends[0].messages, 1);
    assert_int_equal(e.connected, 1);
    assert_int_equal(gpul_transport_queued_bytes(e.t), 0);
    assert_string_equal(gpul_transport_node_name(s->ends[0].t),
                        ours != NULL ? "alpha" : "");
    assert_int_equal(gpul_transport_stranger(s->ends[0].t), GPUL_STRANGER_NONE);

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
    ends_run_until(&e.closed, 1);
    ends_run_until(&s->ends[0].closed, 1);
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
        ends_run_until(&s->accepted, i + 1);
        char text[GPUL_ADDRESS_BYTES_MAX + 1];
        gpul_transport_peer_address(s->ends[i].t, text, NULL);
        assert_string_equal(text, addresses[i]);
        gpul_transport_close(e.t, 0);
        ends_run_until(&s->ends[i].closed, 1);
        ends_run_until(&e.closed, 1);
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
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.connected, 0);
    assert_int_equal(e.status, GPUL_ESYS);
    assert_string_equal(e.text, "connecting: connection refused");

    struct gpul_error err = {0};
    assert_int_equal(gpul_transport_connect(&e.t, &ends_loop, "localhost", port,
                                            theirs, GPUL_PEER_COORDINATOR,
                                            &ends_handlers, &e, &err),
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
        gpul_transport_close(e.t, i * ENDS_PATIENCE_MS);
        ends_run_until(&e.closed, 1);
        assert_int_equal(e.connected, 0);
        assert_int_equal(e.status, 1);
    }
    /* The kernel had both connections ready before they were closed. */
    ends_run_until(&s->accepted, 2);
    ends_run_until(&s->ends[0].closed, 1);
    ends_run_until(&s->ends[1].closed, 1);
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
    assert_int_equal(gpul_transport_connect(&e.t, &ends_loop, "127.0.0.1",
                                            s->port, theirs, GPUL_PEER_NODE,
                                            &ends_handlers, &e, NULL),
                     0);
    ends_run_until(&e.connected, 1);
    ends_run_until(&s->accepted, 1);
    struct end *sender = &s->ends[0];
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_transport_send(e.t, &hello, NULL), 0);
    send_output(sender, PIECES);
    assert_true(gpul_transport_queued_bytes(sender->t) > 0);
    gpul_transport_close(sender->t, ENDS_PATIENCE_MS);
    ends_run_until(&sender->closed, 1);
    ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    send_output(&e, 100);
    gpul_transport_close(e.t, 20);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, 1);
    close(fd);

    fd = ends_open_pair(&e, GPUL_PEER_NODE);
    send_output(&e, 100);
    gpul_transport_close(e.t, 10 * ENDS_PATIENCE_MS);
    gpul_transport_close(e.t, 10 * ENDS_PATIENCE_MS);
    gpul_transport_close(e.t, 0);
    ends_run_until(&e.closed, 1);
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
    gpul_transport_close(e->t, ENDS_PATIENCE_MS);
}

static void say_hello(void *arg)
{
    struct end *e = arg;
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_transport_send(e->t, &hello, NULL), 0);
}

static void count_gone(void *arg, const struct gpul_error *why)
{
    ends_on_closed(arg, why);
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
        assert_int_equal(gpul_transport_connect(&nodes[i].t, &ends_loop,
                                                "127.0.0.1", s->port, theirs,
                                                GPUL_PEER_COORDINATOR, &node,
                                                &nodes[i], NULL),
                         0);
    }
    ends_run_until(&gone, 2 * CONNECTIONS_MAX);
    assert_int_equal(greeted, CONNECTIONS_MAX);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        assert_int_equal(nodes[i].status, 1);
        assert_int_equal(s->ends[i].status, GPUL_ECLOSED);
    }
    greeted = gone = 0;
    free(nodes);
    stop_listening(s);
}

static int make_keys(void **state)
{
    (void)state;
    struct gpul_secret secret = {{1, 2, 3}};
    struct gpul_key key;
    int rc = gpul_key_of_node(&key, &secret, "job", "alpha", NULL);
    rc |= gpul_keyring_of_job(&ours, &secret, "job", NULL);
    return rc | gpul_keyring_of_node(&theirs, &key, "job", "alpha", NULL);
}

static int drop_keys(void **state)
{
    (void)state;
    gpul_keyring_destroy(ours);
    gpul_keyring_destroy(theirs);
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, ends_set_up, ends_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_connect),
        T(test_ipv6),
        T(test_connect_fails),
        T(test_close_while_connecting),
        T(test_flush),
        T(test_flush_bound),
        T(test_many_connections),
    };
    int plain = cmocka_run_group_tests_name("plain", tests, NULL, NULL);
    return plain +
           cmocka_run_group_tests_name("sealed", tests, make_keys, drop_keys);
}
