/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports against bare sockets that misbehave in one way each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/transport.h"
#include "tests/lib/ends.h"
#include "tests/lib/memory.h"
#include "tests/lib/samples.h"

/* ---- delivery ----------------------------------------------------------- */

/* Frames arrive whole though their bytes come one at a time. */
static void test_byte_by_byte(void **state)
{
    (void)state;
    struct end e;
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    size_t first = b.used;
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    for (size_t i = 0; i < b.used; i++) {
        ends_write_all(fd, b.data + i, 1);
        uv_run(&ends_loop, UV_RUN_ONCE);
        assert_int_equal(e.messages,
                         (i + 1 >= first ? 1 : 0) + (i + 1 == b.used ? 1 : 0));
    }
    assert_int_equal(e.last_type, GPUL__FRAME__BODY_HEARTBEAT);
    gpul_buf_release(&b);
    ends_finish(&e, fd);
}

/* Many frames in one read are handed out one by one. */
static void test_many_at_once(void **state)
{
    (void)state;
    struct end e;
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 1000; i++) {
        sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    }
    ends_write_all(fd, b.data, b.used);
    ends_run_until(&e.messages, 1000);
    gpul_buf_release(&b);
    ends_finish(&e, fd);
}

/* A handler may close: what came in the same read is dropped. */
static void test_close_in_handler(void **state)
{
    (void)state;
    struct end e;
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    e.close_at = 2;
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 5; i++) {
        sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    }
    ends_write_all(fd, b.data, b.used);
    ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    gpul_transport_allow(e.t, GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HELLO));
    e.allow_next = GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HEARTBEAT);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    sample_append(&b, GPUL__FRAME__BODY_HELLO);
    ends_write_all(fd, b.data, b.used);
    ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    shutdown(fd, SHUT_WR);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ECLOSED);
    assert_string_equal(e.text, "the peer closed the connection");
    close(fd);

    fd = ends_open_pair(&e, GPUL_PEER_NODE);
    ends_write_all(fd, "\0\0\1\0\x0a", 5);
    shutdown(fd, SHUT_WR);
    ends_run_until(&e.closed, 1);
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
        int fd = ends_open_pair(&e, GPUL_PEER_NODE);
        ends_write_all(fd, cases[i].bytes, cases[i].n);
        ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
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
    ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_COORDINATOR);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_FINISH);
    ends_write_all(fd, b.data, b.used);
    close(fd);
    Gpul__Frame frame = sample_frame(GPUL__FRAME__BODY_HEARTBEAT);
    struct gpul_error err = {0};
    assert_int_equal(gpul_transport_send(e.t, &frame, &err), GPUL_ECLOSED);
    assert_string_equal(err.text, "sending: broken pipe");
    assert_int_equal(gpul_transport_send(e.t, &frame, &err), GPUL_ECLOSED);
    assert_string_equal(err.text, "the connection is closed");
    ends_run_until(&e.closed, 1);
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
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    static uint8_t bytes[1u << 20];
    struct gpul_error err = {0};
    memory_fail_at(1);
    assert_int_equal(gpul_transport_send_bytes(e.t, bytes, sizeof(bytes), &err),
                     GPUL_ENOMEM);
    assert_string_equal(err.text, "sending: out of memory");
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ENOMEM);
    close(fd);

    /* Nor is a message left out that there is no memory to encode. */
    fd = ends_open_pair(&e, GPUL_PEER_NODE);
    Gpul__Frame frame = sample_frame(GPUL__FRAME__BODY_EXITS);
    memory_fail_at(1);
    err = (struct gpul_error){0};
    assert_int_equal(gpul_transport_send(e.t, &frame, &err), GPUL_ENOMEM);
    assert_memory_equal(err.text, "no memory for \"exits\" of ", 25);
    assert_int_equal(gpul_transport_send(e.t, &frame, NULL), GPUL_ECLOSED);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ENOMEM);
    close(fd);

    fd = ends_open_pair(&e, GPUL_PEER_NODE);
    ends_write_all(fd, "\0", 1);
    memory_fail_at(1);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.status, GPUL_ENOMEM);
    assert_string_equal(e.text, "reading: out of memory");

    memory_fail_at(1);
    assert_int_equal(gpul_transport_open(&e.t, &ends_loop, fd, GPUL_PEER_NODE,
                                         &ends_handlers, &e, &err),
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
    assert_int_equal(gpul_transport_open(&e.t, &ends_loop, 1 << 19,
                                         GPUL_PEER_NODE, &ends_handlers, &e,
                                         &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "opening a socket pair: bad file descriptor");
    assert_null(e.t);
    uv_run(&ends_loop, UV_RUN_DEFAULT);
    assert_int_equal(e.closed, 0);
}

/* An inherited descriptor is not passed on to children. */
static void test_close_on_exec(void **state)
{
    (void)state;
    struct end e = {0};
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(gpul_transport_open(&e.t, &ends_loop, fds[0],
                                         GPUL_PEER_PROBE, &ends_handlers, &e,
                                         NULL),
                     0);
    assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    char text[GPUL_ADDRESS_BYTES_MAX + 1] = "x";
    uint16_t port = 1;
    gpul_transport_peer_address(e.t, text, &port);
    assert_string_equal(text, "");
    assert_int_equal(port, 0);
    ends_finish(&e, fds[1]);
}

/* What a process sent before it ended is taken, and then the end comes, though
 * a child of it still holds the socket open. */
static void test_end_input(void **state)
{
    (void)state;
    struct end e;
    int fd = ends_open_pair(&e, GPUL_PEER_NODE);
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    ends_write_all(fd, b.data, b.used);
    gpul_transport_end_input(e.t);
    ends_run_until(&e.closed, 1);
    assert_int_equal(e.messages, 1);
    assert_int_equal(e.status, GPUL_ECLOSED);
    gpul_buf_release(&b);
    close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, ends_set_up, ends_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_byte_by_byte),     T(test_many_at_once),
        T(test_close_in_handler), T(test_allow_in_handler),
        T(test_half_close),       T(test_bad_streams),
        T(test_slow_reader),      T(test_last_words),
        T(test_no_memory),        T(test_open_fails),
        T(test_close_on_exec),    T(test_end_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
