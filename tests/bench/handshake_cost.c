/* SPDX-License-Identifier: Apache-2.0
 *
 * handshake_cost KIND COUNT: COUNT connections to a server in a process of
 * its own, one after the other over loopback; on each, once it stands, a
 * Heartbeat goes there and its answer back. Prints three times in nanoseconds
 * for one connection: elapsed, processor of the server, of the client.
 *
 *     plain     transports without a key
 *     sealed    transports with one: gpulaunch
 *     wrong     the same with a wrong key, so that it ends at once
 *     sockets   blocking sockets
 *     mutual    mutual TLS with P-256 certificates on blocking sockets
 *
 * tests/bench/handshake sets them side by side.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/clock.h"
#include "proto/transport.h"
#include "tests/bench/handshake_tls.h"

enum { COUNT_MAX = 1000000, BACKLOG = 64 };

static uv_loop_t loop;
static struct sockaddr_in address;
static uint32_t wanted, done;
static struct handshake_tls tls;

static void need(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "handshake_cost: %s failed\n", what);
        exit(1);
    }
}

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- transports --------------------------------------------------------- */

/* One connection at a time, at either end. */
static struct gpul_transport *here;
static uv_tcp_t listener;
static const struct gpul_keyring *keyring;

static void send_beat(bool is_answer)
{
    Gpul__Heartbeat beat = GPUL__HEARTBEAT__INIT;
    Gpul__HeartbeatAck ack = GPUL__HEARTBEAT_ACK__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    beat.sequence = ack.sequence = done + 1;
    if (is_answer) {
        frame.body_case = GPUL__FRAME__BODY_HEARTBEAT_ACK;
        frame.heartbeat_ack = &ack;
    } else {
        frame.body_case = GPUL__FRAME__BODY_HEARTBEAT;
        frame.heartbeat = &beat;
    }
    need(gpul_transport_send(here, &frame, NULL) == 0, "sending");
}

static void on_asked(void *arg, const Gpul__Frame *frame)
{
    (void)arg;
    (void)frame;
    send_beat(true);
}

static void on_served(void *arg, const struct gpul_error *why)
{
    (void)arg;
    (void)why;
    if (++done == wanted) {
        uv_close((uv_handle_t *)&listener, NULL);
    }
}

static const struct gpul_transport_handlers server_handlers = {
    .on_message = on_asked,
    .on_closed = on_served,
};

static void on_connection(uv_stream_t *stream, int status)
{
    need(status == 0 &&
             gpul_transport_accept(&here, stream, keyring, GPUL_PEER_NODE,
                                   &server_handlers, NULL, NULL) == 0,
         "accepting");
}

static void serve_transports(int fd)
{
    need(uv_loop_init(&loop) == 0 && uv_tcp_init(&loop, &listener) == 0 &&
             uv_tcp_open(&listener, fd) == 0 &&
             uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection) == 0,
         "listening");
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void dial(void);

static void on_answer(void *arg, const Gpul__Frame *frame)
{
    (void)arg;
    (void)frame;
    gpul_transport_close(here, 0);
}

static void on_dial_closed(void *arg, const struct gpul_error *why)
{
    need((why != NULL) == *(bool *)arg, why != NULL ? why->text : "refusal");
    if (++done < wanted) {
        dial();
    }
}

static void on_connected(void *arg)
{
    (void)arg; /* what it says was queued */
}

static const struct gpul_transport_handlers client_handlers = {
    .on_connected = on_connected,
    .on_message = on_answer,
    .on_closed = on_dial_closed,
};

static bool is_refused;

static void dial(void)
{
    need(gpul_transport_connect(
             &here, &loop, "127.0.0.1", ntohs(address.sin_port), keyring,
             GPUL_PEER_COORDINATOR, &client_handlers, &is_refused, NULL) == 0,
         "dialling");
    send_beat(false);
}

static void dial_transports(void)
{
    need(uv_loop_init(&loop) == 0, "a loop");
    dial();
    uv_run(&loop, UV_RUN_DEFAULT);
}

/* ---- blocking sockets --------------------------------------------------- */

static void set_nodelay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* As many bytes as a Heartbeat has; the server waits for the client's end. */
static void talk(int fd, SSL_CTX *ctx, bool is_server)
{
    char bytes[8] = {0};
    int n = sizeof(bytes);
    SSL *ssl = ctx != NULL ? handshake_tls_begin(ctx, fd) : NULL;
    for (int turn = 0; turn < 2; turn++) {
        bool is_ours = (turn == 0) != is_server;
        int rc;
        if (ssl != NULL) {
            rc = is_ours ? SSL_write(ssl, bytes, n) : SSL_read(ssl, bytes, n);
        } else {
            rc = (int)(is_ours ? write(fd, bytes, (size_t)n)
                               : read(fd, bytes, (size_t)n));
        }
        need(rc == n, "talking");
    }
    if (is_server) {
        need(read(fd, bytes, sizeof(bytes)) == 0, "meeting the end");
    }
    SSL_free(ssl);
    close(fd);
}

static void serve_sockets(int fd, SSL_CTX *ctx)
{
    for (; done < wanted; done++) {
        int peer = accept(fd, NULL, NULL);
        need(peer >= 0, "accepting");
        set_nodelay(peer);
        talk(peer, ctx, true);
    }
}

static void dial_sockets(SSL_CTX *ctx)
{
    for (; done < wanted; done++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        need(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
             "connecting");
        set_nodelay(fd);
        talk(fd, ctx, false);
    }
}

/* ---- both --------------------------------------------------------------- */

struct kind {
    const char *name;
    bool is_sealed, is_wrong, is_blocking, is_mutual;
};

static const struct kind kinds[] = {
    {.name = "plain"},
    {.name = "sealed", .is_sealed = true},
    {.name = "wrong", .is_sealed = true, .is_wrong = true},
    {.name = "sockets", .is_blocking = true},
    {.name = "mutual", .is_blocking = true, .is_mutual = true},
};

static void take_key(const struct kind *kind, bool is_server)
{
    struct gpul_secret secret = {{1, 2, 3}};
    struct gpul_key key;
    struct gpul_keyring *made = NULL;
    secret.bytes[9] = kind->is_wrong && !is_server;
    if (!kind->is_sealed) {
        return;
    }
    int rc = is_server
                 ? gpul_keyring_of_job(&made, &secret, "bench", NULL)
                 : gpul_key_of_node(&key, &secret, "bench", "node-1", NULL);
    if (!is_server && rc == 0) {
        rc = gpul_keyring_of_node(&made, &key, "bench", "node-1", NULL);
    }
    need(rc == 0, "a keyring");
    keyring = made;
}

static uint64_t run(const struct kind *kind, bool is_server, int listen_fd)
{
    take_key(kind, is_server);
    is_refused = kind->is_wrong;
    uint64_t before = processor_ns();
    SSL_CTX *ctx = is_server ? tls.server : tls.client;
    if (kind->is_blocking && is_server) {
        serve_sockets(listen_fd, ctx);
    } else if (kind->is_blocking) {
        dial_sockets(ctx);
    } else if (is_server) {
        serve_transports(listen_fd);
    } else {
        dial_transports();
    }
    return processor_ns() - before;
}

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    fprintf(stderr, "usage: handshake_cost KIND COUNT\n");
    exit(2);
}

int main(int argc, char **argv)
{
    const struct kind *kind = kind_of(argc == 3 ? argv[1] : "");
    wanted = (uint32_t)strtoul(argv[2], NULL, 10);
    need(wanted > 0 && wanted <= COUNT_MAX, "reading COUNT");
    signal(SIGPIPE, SIG_IGN);
    if (kind->is_mutual) {
        handshake_tls_init(&tls);
    }
    socklen_t n = sizeof(address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), told[2];
    need(bind(fd, (struct sockaddr *)&address, n) == 0 &&
             listen(fd, BACKLOG) == 0 &&
             getsockname(fd, (struct sockaddr *)&address, &n) == 0 &&
             pipe(told) == 0,
         "listening");
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        uint64_t ns = run(kind, true, fd);
        _exit(write(told[1], &ns, sizeof(ns)) == (ssize_t)sizeof(ns) ? 0 : 1);
    }
    close(fd);
    close(told[1]);
    uint64_t start = gpul_clock_ns(), server_ns = 0;
    uint64_t client_ns = run(kind, false, -1);
    uint64_t elapsed_ns = gpul_clock_ns() - start;
    need(read(told[0], &server_ns, sizeof(server_ns)) == sizeof(server_ns),
         "the server");
    waitpid(server, NULL, 0);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", elapsed_ns / wanted,
           server_ns / wanted, client_ns / wanted);
    return 0;
}
