/* SPDX-License-Identifier: Apache-2.0
 *
 * The store runs in a loop on a thread of its own, as in an agent; clients
 * are blocking sockets here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/buf.h"
#include "worker/keyvalue.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
#define KEPT "Connection: keep-alive\r\n\r\n"
#define CLOSED "Content-Length: 0\r\nConnection: close\r\n\r\n"
#define MISSING "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" KEPT

static struct server {
    uv_loop_t loop;
    uv_async_t stop;
    uv_thread_t thread;
    struct keyvalue *kv;
    uint16_t port;
} server;

static void on_stop(uv_async_t *async)
{
    (void)async;
    keyvalue_stop(server.kv);
    uv_close((uv_handle_t *)&server.stop, NULL);
}

static void run_server(void *arg)
{
    (void)arg;
    uv_run(&server.loop, UV_RUN_DEFAULT);
}

static int start_server(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&server.loop), 0);
    uv_async_init(&server.loop, &server.stop, on_stop);
    struct gpul_error err = {0};
    int rc = keyvalue_start(&server.kv, &server.loop, "127.0.0.1", 0, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    server.port = keyvalue_port(server.kv);
    return uv_thread_create(&server.thread, run_server, NULL);
}

/* Nothing of ours may be left in the loop. */
static int stop_server(void **state)
{
    (void)state;
    uv_async_send(&server.stop);
    uv_thread_join(&server.thread);
    return uv_loop_close(&server.loop);
}

/* A connection whose reads give up after 20 s, so that a fault cannot hang
 * the test. */
static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(server.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static void send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        assert_true(sent > 0);
        data += sent;
        n -= (size_t)sent;
    }
}

/* The next strlen(expected) bytes must be these. */
static void expect(int fd, const char *expected)
{
    char text[1024];
    size_t n = strlen(expected);
    size_t used = 0;
    assert_true(n < sizeof(text));
    while (used < n) {
        ssize_t got = recv(fd, text + used, n - used, 0);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    text[used] = 0;
    assert_string_equal(text, expected);
}

static void expect_end(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

static void send_text(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

static void ask(int fd, const char *request, const char *response)
{
    send_text(fd, request);
    expect(fd, response);
}

/* What Horovod's ranks do: put, poll until it is there, read, finalize. */
static void test_rendezvous(void **state)
{
    (void)state;
    int a = dial();
    int b = dial();
    ask(a, "GET /global/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        MISSING);
    ask(b, "PUT /global/1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", OK KEPT);
    ask(a, "GET /global/1 HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" KEPT "abc");
    ask(a, "PUT /global/0 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", OK KEPT);
    ask(b, "DELETE /global/1 HTTP/1.1\r\n\r\n", OK KEPT);
    ask(a, "GET /global/1 HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" KEPT "abc");
    ask(a, "DELETE /global/0 HTTP/1.1\r\n\r\n", OK KEPT);
    ask(b, "GET /global/1 HTTP/1.1\r\n\r\n", MISSING);
    close(a);
    close(b);
}

/* Requests that come together are answered one after the other, and a last
 * one ends the connection. */
static void test_pipelined(void **state)
{
    (void)state;
    int fd = dial();
    ask(fd,
        "PUT /s/a HTTP/1.1\r\nContent-Length: 1\r\n\r\n1"
        "GET /s/a HTTP/1.1\r\n\r\n"
        "GET /s/b HTTP/1.1\r\n\r\n"
        "DELETE /s/a HTTP/1.1\r\nConnection: close\r\n\r\n"
        "GET /s/a HTTP/1.1\r\n\r\n",
        OK KEPT "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" KEPT "1" MISSING
                "HTTP/1.1 200 OK\r\n" CLOSED);
    expect_end(fd);
}

/* A request may come in any number of pieces. */
static void test_in_pieces(void **state)
{
    (void)state;
    static const char request[] =
        "PUT /pieces/k HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";
    int fd = dial();
    for (size_t i = 0; i + 1 < sizeof(request); i++) {
        send_all(fd, request + i, 1);
    }
    expect(fd, OK KEPT);
    close(fd);
}

/* A refusal reaches a peer that is still sending, then the connection ends. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *response;
        size_t more; /* bytes that follow the request */
    } rows[] = {
        {"\x16\x03\x01garbage", "HTTP/1.1 400 Bad Request\r\n" CLOSED, 0},
        {"POST /s/k HTTP/1.1\r\n\r\n",
         "HTTP/1.1 405 Method Not Allowed\r\n" CLOSED, 0},
        {"PUT /s/k HTTP/1.1\r\nContent-Length: 2097152\r\n\r\n",
         "HTTP/1.1 413 Content Too Large\r\n" CLOSED, 2097152},
        {"GET /s/k HTTP/1.1\r\nA: ",
         "HTTP/1.1 431 Request Header Fields Too Large\r\n" CLOSED, 9000},
    };
    char *more = calloc(1, 2097152);
    assert_non_null(more);
    memset(more, 'm', 2097152);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = dial();
        send_text(fd, rows[i].request);
        send_all(fd, more, rows[i].more);
        expect(fd, rows[i].response);
        shutdown(fd, SHUT_WR);
        expect_end(fd);
    }
    free(more);
}

/* The largest value comes back as it went in. */
static void test_largest_value(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char *value = malloc(BYTES);
    char *back = malloc(BYTES);
    assert_non_null(value);
    assert_non_null(back);
    for (size_t i = 0; i < BYTES; i++) {
        value[i] = (char)(i * 7 + i / 251);
    }
    static const char put[] =
        "PUT /large/k HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n";
    int fd = dial();
    send_all(fd, put, sizeof(put) - 1);
    send_all(fd, value, BYTES);
    expect(fd, OK KEPT);
    ask(fd, "GET /large/k HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n" KEPT);
    assert_int_equal(recv(fd, back, BYTES, MSG_WAITALL), BYTES);
    assert_memory_equal(back, value, BYTES);
    close(fd);
    free(value);
    free(back);
}

/* Whoever says nothing, or does not finish, is closed after five seconds;
 * others are served meanwhile. */
static void test_slow(void **state)
{
    (void)state;
    int silent = dial();
    int unfinished = dial();
    send_text(unfinished, "GET /s");
    int other = dial();
    ask(other, "GET /slow/k HTTP/1.1\r\n\r\n", MISSING);
    close(other);
    expect_end(silent);
    expect_end(unfinished);
}

/* More clients than there are places wait for one, and all are served. */
static void test_many_connections(void **state)
{
    (void)state;
    enum { CLIENTS = 1100 };
    static int fds[CLIENTS];
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit enough = {.rlim_cur = 3000, .rlim_max = before.rlim_max};
    if (before.rlim_max < 3000) {
        print_message("too few descriptors to be had\n");
        skip();
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &enough), 0);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial();
        send_text(fds[i], "GET /many/k HTTP/1.1\r\n\r\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        expect(fds[i], MISSING);
        close(fds[i]); /* room for one that waits */
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A port that is taken, and what is no address, are named. */
static void test_start_errors(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct keyvalue *kv = NULL;
    struct gpul_error err = {0};
    char expected[128];
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(keyvalue_start(&kv, &loop, "localhost", 1, &err),
                     GPUL_EINVAL);
    assert_string_equal(err.text, "\"localhost\" is not an address");
    assert_int_equal(keyvalue_start(&kv, &loop, "127.0.0.1", server.port, &err),
                     GPUL_ESYS);
    snprintf(expected, sizeof(expected),
             "key-value store: cannot listen on 127.0.0.1 port %u: Address "
             "already in use",
             (unsigned int)server.port);
    assert_string_equal(err.text, expected);
    assert_null(kv);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    keyvalue_stop(NULL);
}

/* Stopping with connections open, one in the middle of a request, leaves
 * nothing: the group's tear-down closes the loop. */
static void test_left_open(void **state)
{
    (void)state;
    int fd = dial();
    ask(fd, "GET /open/k HTTP/1.1\r\n\r\n", MISSING);
    send_text(fd, "PUT /open/k HTTP/1.1\r\nContent-Length: 9\r\n\r\n1");
    uv_async_send(&server.stop);
    uv_thread_join(&server.thread);
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
    close(fd);
    assert_int_equal(uv_loop_close(&server.loop), 0);
    assert_int_equal(start_server(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rendezvous),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_in_pieces),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_largest_value),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_many_connections),
        cmocka_unit_test(test_start_errors),
        cmocka_unit_test(test_left_open),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
