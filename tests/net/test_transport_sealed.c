/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports with a key against bare sockets, and against the wrong key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/transport.h"
#include "tests/lib/ends.h"
#include "tests/lib/samples.h"

/* A listener that takes one connection at a time, as a coordinator. */
struct desk {
    uv_tcp_t listener;
    struct sockaddr_in address;
    struct gpul_keyring *keyring;
    struct end end;
    enum gpul_stranger stranger;
    unsigned accepted;
};

static struct desk desk;

static void on_closed(void *arg, const struct gpul_error *why)
{
    desk.stranger = gpul_transport_stranger(desk.end.t);
    ends_on_closed(arg, why);
}

static void on_connection(uv_stream_t *listener, int status)
{
    static struct gpul_transport_handlers handlers;
    handlers = ends_handlers;
    handlers.on_closed = on_closed;
    assert_int_equal(status, 0);
    desk.end = (struct end){0};
    assert_int_equal(gpul_transport_accept(&desk.end.t, listener, desk.keyring,
                                           GPUL_PEER_NODE, &handlers, &desk.end,
                                           NULL),
                     0);
    desk.accepted++;
}

static struct gpul_keyring *keyring_of(uint8_t fill, const char *name)
{
    struct gpul_secret secret = {{fill}};
    struct gpul_keyring *k;
    struct gpul_key key;
    if (name == NULL) {
        assert_int_equal(gpul_keyring_of_job(&k, &secret, "job", NULL), 0);
        return k;
    }
    assert_int_equal(gpul_key_of_node(&key, &secret, "job", name, NULL), 0);
    assert_int_equal(gpul_keyring_of_node(&k, &key, "job", name, NULL), 0);
    return k;
}

static int set_up(void **state)
{
    int n = sizeof(desk.address);
    ends_set_up(state);
    memset(&desk, 0, sizeof(desk));
    desk.keyring = keyring_of(1, NULL);
    uv_ip4_addr("127.0.0.1", 0, &desk.address);
    uv_tcp_init(&ends_loop, &desk.listener);
    assert_int_equal(
        uv_tcp_bind(&desk.listener, (struct sockaddr *)&desk.address, 0), 0);
    assert_int_equal(
        uv_listen((uv_stream_t *)&desk.listener, 16, on_connection), 0);
    return uv_tcp_getsockname(&desk.listener, (struct sockaddr *)&desk.address,
                              &n);
}

static int tear_down(void **state)
{
    uv_close((uv_handle_t *)&desk.listener, NULL);
    uv_run(&ends_loop, UV_RUN_DEFAULT);
    gpul_keyring_destroy(desk.keyring);
    return ends_tear_down(state);
}

/* A bare socket that is connected to the desk. */
static int dial_bare(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned before = desk.accepted;
    assert_int_equal(
        connect(fd, (struct sockaddr *)&desk.address, sizeof(desk.address)), 0);
    ends_run_until(&desk.accepted, before + 1);
    return fd;
}

static void dial(struct end *e, const struct gpul_keyring *keyring)
{
    *e = (struct end){0};
    assert_int_equal(gpul_transport_connect(&e->t, &ends_loop, "127.0.0.1",
                                            ntohs(desk.address.sin_port),
                                            keyring, GPUL_PEER_COORDINATOR,
                                            &ends_handlers, e, NULL),
                     0);
}

/* ---- strangers ---------------------------------------------------------- */

/* Closed at the first bytes, without a word, and known for what it is. */
static void test_strangers(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum gpul_stranger kind;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, GPUL_STRANGER_HTTP},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, GPUL_STRANGER_SSH},
        {"\0\0\0\2\x0a\0", 6, GPUL_STRANGER_FRAMES},
        {"\1\2\3\4\5\6", 6, GPUL_STRANGER_GARBAGE},
        {"\x16\3\1\x10\0\1\0\x0f\xfc", 9, GPUL_STRANGER_LARGE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char byte;
        int fd = dial_bare();
        ends_write_all(fd, rows[i].bytes, rows[i].n);
        ends_run_until(&desk.end.closed, 1);
        assert_int_equal(desk.stranger, rows[i].kind);
        assert_int_equal(desk.end.messages, 0);
        assert_int_equal(desk.end.connected, 0);
        assert_true(read(fd, &byte, 1) <= 0);
        close(fd);
    }
}

/* One that says nothing, or half of something, is what it was when it goes. */
static void test_silent(void **state)
{
    (void)state;
    int fd = dial_bare();
    assert_int_equal(gpul_transport_stranger(desk.end.t), GPUL_STRANGER_CLOSED);
    ends_write_all(fd, "\x16\3\1", 3);
    close(fd);
    ends_run_until(&desk.end.closed, 1);
    assert_int_equal(desk.end.status, GPUL_ECLOSED);
    assert_int_equal(desk.stranger, GPUL_STRANGER_CLOSED);

    fd = dial_bare();
    gpul_transport_close(desk.end.t, ENDS_PATIENCE_MS); /* nothing to flush */
    close(fd);
    ends_run_until(&desk.end.closed, 1);
    assert_int_equal(desk.end.status, 1);
}

/* Both ends can say what is wrong, and nothing that waited was sent. */
static void test_wrong_secret(void **state)
{
    (void)state;
    struct gpul_keyring *k = keyring_of(2, "alpha");
    Gpul__Frame hello = sample_frame(GPUL__FRAME__BODY_HELLO);
    struct end e;
    dial(&e, k);
    assert_int_equal(gpul_transport_send(e.t, &hello, NULL), 0);
    ends_run_until(&e.closed, 1);
    ends_run_until(&desk.end.closed, 1);
    assert_int_equal(desk.stranger, GPUL_STRANGER_WRONG_KEY);
    assert_int_equal(desk.end.status, GPUL_EPROTO);
    assert_string_equal(desk.end.text,
                        "a node that calls itself alpha of this job showed a "
                        "wrong secret: is its --secret-file the job's own?");
    assert_int_equal(desk.end.messages + e.connected, 0);
    assert_int_equal(e.status, GPUL_EPROTO);
    assert_string_equal(e.text, "the coordinator refused this node's key: is "
                                "its --secret-file the job's own?");
    gpul_keyring_destroy(k);
}

/* A node with a key where a bare socket answers. */
static void test_no_coordinator(void **state)
{
    (void)state;
    struct gpul_keyring *k = keyring_of(1, "alpha");
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&a, &n);
    struct end e = {0};
    assert_int_equal(gpul_transport_connect(
                         &e.t, &ends_loop, "127.0.0.1", ntohs(a.sin_port), k,
                         GPUL_PEER_COORDINATOR, &ends_handlers, &e, NULL),
                     0);
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    int fd = accept(listener, NULL, NULL);
    ends_write_all(fd, "HTTP/1.1 400 Bad Request\r\n", 26);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_EPROTO);
    assert_string_equal(e.text,
                        "what answers there does not speak TLS: is it the "
                        "coordinator, and not started with --insecure?");
    close(fd);
    close(listener);
    gpul_keyring_destroy(k);
}

/* ---- a node ------------------------------------------------------------- */

static void open_one(struct end *e, struct gpul_keyring **k)
{
    *k = keyring_of(1, "alpha");
    unsigned before = desk.accepted;
    dial(e, *k);
    ends_run_until(&desk.accepted, before + 1);
    ends_run_until(&e->connected, 1);
    ends_run_until(&desk.end.connected, 1);
    assert_string_equal(gpul_transport_node_name(desk.end.t), "alpha");
}

/* A message is judged as without a key, and one that may not come ends it. */
static void test_bad_message(void **state)
{
    (void)state;
    struct gpul_keyring *k;
    struct end e;
    open_one(&e, &k);
    Gpul__Frame welcome = sample_frame(GPUL__FRAME__BODY_WELCOME);
    assert_int_equal(gpul_transport_send(e.t, &welcome, NULL), 0);
    ends_run_until(&desk.end.closed, 1);
    ends_run_until(&e.closed, 1);
    assert_int_equal(desk.end.status, GPUL_EPROTO);
    assert_string_equal(desk.end.text, "a node may not send \"welcome\"");
    assert_int_equal(desk.stranger, GPUL_STRANGER_NONE);
    gpul_keyring_destroy(k);
}

/* Many in one read are handed out one by one; a handler may close. */
static void test_close_in_handler(void **state)
{
    (void)state;
    struct gpul_keyring *k;
    struct end e;
    struct gpul_buf b;
    open_one(&e, &k);
    desk.end.close_at = 500;
    gpul_buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 1000; i++) {
        sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    }
    assert_int_equal(gpul_transport_send_bytes(e.t, b.data, b.used, NULL), 0);
    ends_run_until(&desk.end.closed, 1);
    ends_run_until(&e.closed, 1);
    assert_int_equal(desk.end.messages, 500);
    assert_int_equal(desk.end.status, 1);
    gpul_buf_release(&b);
    gpul_keyring_destroy(k);
}

/* A peer that does not read is dropped when the queue of sealed bytes is
 * full. */
static void test_slow_reader(void **state)
{
    (void)state;
    struct gpul_keyring *k;
    struct end e;
    static char data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data = (ProtobufCBinaryData){sizeof(data), (uint8_t *)data};
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    open_one(&e, &k);
    struct gpul_error err = {0};
    size_t queued_max = 0;
    int rc = 0;
    for (unsigned sent = 0; rc == 0 && sent < 10000; sent++) {
        rc = gpul_transport_send(e.t, &frame, &err);
        size_t queued = gpul_transport_queued_bytes(e.t);
        queued_max = queued > queued_max ? queued : queued_max;
    }
    assert_int_equal(rc, GPUL_ELIMIT);
    assert_memory_equal(err.text, "the peer reads too slowly: ", 27);
    assert_in_range(queued_max, GPUL_SEND_QUEUE_BYTES_MAX - 40000,
                    GPUL_SEND_QUEUE_BYTES_MAX);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ELIMIT);
    ends_run_until(&desk.end.closed, 1);
    gpul_keyring_destroy(k);
}

/* The end is said, not only met: what came before it was delivered. */
static void test_farewell(void **state)
{
    (void)state;
    struct gpul_keyring *k;
    struct end e;
    open_one(&e, &k);
    Gpul__Frame beat = sample_frame(GPUL__FRAME__BODY_HEARTBEAT);
    assert_int_equal(gpul_transport_send(e.t, &beat, NULL), 0);
    gpul_transport_close(e.t, ENDS_PATIENCE_MS);
    ends_run_until(&e.closed, 1);
    ends_run_until(&desk.end.closed, 1);
    assert_int_equal(desk.end.messages, 1);
    assert_int_equal(desk.end.status, GPUL_ECLOSED);
    assert_string_equal(desk.end.text, "the peer closed the connection");
    gpul_keyring_destroy(k);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_strangers),      T(test_silent),      T(test_wrong_secret),
        T(test_no_coordinator), T(test_bad_message), T(test_close_in_handler),
        T(test_slow_reader),    T(test_farewell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
