/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/server.h"
#include "coordinator/text.h"
#include "proto/frame.h"
#include "proto/limits.h"

enum { WAIT_MS = 10000 };

/* The real server in a process of its own; this side plays everybody else. */
struct fixture {
    pid_t server;
    int front_end;
    uint16_t port;
};

/* A stream of frames to be read one by one. */
struct reader {
    int fd;
    struct gpul_deframer deframer;
    enum gpul_peer from;
};

static void reader_init(struct reader *r, int fd, enum gpul_peer from)
{
    r->fd = fd;
    r->from = from;
    gpul_deframer_init(&r->deframer, from);
}

static void reader_release(struct reader *r)
{
    gpul_deframer_release(&r->deframer);
    close(r->fd);
}

/* The next frame; NULL when the stream has ended. */
static Gpul__Frame *reader_next(struct reader *r)
{
    const uint8_t *body;
    size_t n;
    uint8_t bytes[4096];
    while (gpul_deframer_next(&r->deframer, &body, &n, NULL) == 0) {
        struct pollfd ready = {.fd = r->fd, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
        ssize_t got = read(r->fd, bytes, sizeof(bytes));
        if (got <= 0) {
            return NULL;
        }
        assert_int_equal(
            gpul_deframer_feed(&r->deframer, bytes, (size_t)got, NULL), 0);
    }
    Gpul__Frame *frame;
    assert_int_equal(gpul_message_decode(&frame, body, n, r->from, NULL), 0);
    return frame;
}

/* Skip to a frame of this kind; the caller releases it. */
static Gpul__Frame *reader_expect(struct reader *r, unsigned body_case)
{
    for (;;) {
        Gpul__Frame *frame = reader_next(r);
        assert_non_null(frame);
        if (frame->body_case == body_case) {
            return frame;
        }
        gpul_message_release(frame);
    }
}

static void send_frame(int fd, const Gpul__Frame *frame)
{
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, GPUL_JOB_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&bytes, frame, NULL), 0);
    assert_int_equal(send(fd, bytes.data, bytes.used, MSG_NOSIGNAL),
                     (ssize_t)bytes.used);
    gpul_buf_release(&bytes);
}

static void serve(int operator_fd, int listen_fd)
{
    struct gpul_error err = {0};
    int exit_code = 0;
    struct server_config config = {
        .operator_fd = operator_fd, .listen_fd = listen_fd, .epoch = 1};
    int rc = server_run(&exit_code, &config, &err);
    if (rc != 0) {
        fprintf(stderr, "server: %s\n", err.text);
    }
    exit(rc == 0 ? exit_code : 125);
}

static void start(struct fixture *f)
{
    int pair[2];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &n), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    f->port = ntohs(address.sin_port);
    f->front_end = pair[0];
    f->server = fork();
    assert_true(f->server >= 0);
    if (f->server == 0) {
        close(pair[0]);
        serve(pair[1], listener);
    }
    close(pair[1]);
    close(listener);
}

/* The server's exit code, within the wait of the test's own time-out. */
static int reap(struct fixture *f)
{
    int status;
    assert_int_equal(waitpid(f->server, &status, 0), f->server);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int dial(const struct fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(f->port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    return fd;
}

static void send_job(int fd, uint32_t node_count, uint32_t join_timeout_ms)
{
    char expression[32];
    char *name = expression;
    snprintf(expression, sizeof(expression), "node[0-%u]", node_count - 1);
    ProtobufCBinaryData argument = {.len = 4, .data = (uint8_t *)name};
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    self_test.sweep = &sweep;
    Gpul__Command command = GPUL__COMMAND__INIT;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    Gpul__Job job = GPUL__JOB__INIT;
    command.arguments = &argument;
    command.n_arguments = 1;
    job.job_id = wire_text("job");
    job.mode = GPUL__JOB__MODE__RUN;
    job.node_count = node_count;
    job.ranks_per_node = 1;
    job.node_names = &name;
    job.n_node_names = 1;
    job.join_timeout_ms = join_timeout_ms;
    job.grace_ms = 1000;
    job.self_test = &self_test;
    job.command = &command;
    job.environment = &environment;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &job;
    send_frame(fd, &frame);
}

static void send_hello(int fd, int node)
{
    char name[16];
    snprintf(name, sizeof(name), "node%d", node);
    Gpul__Facts facts = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    facts.hostname = wire_text("host");
    facts.boot_id = wire_text("boot");
    facts.address = wire_text("127.0.0.1");
    facts.cores = 1;
    hello.protocol_min = GPUL_PROTOCOL_MIN;
    hello.protocol_max = GPUL_PROTOCOL;
    hello.job_id = wire_text("job");
    hello.node_name = name;
    hello.facts = &facts;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    send_frame(fd, &frame);
}

static Gpul__Frame member_frame(void)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = 1;
    frame.generation = 1;
    return frame;
}

static void send_ready(int fd)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    Gpul__Frame frame = member_frame();
    ready.port_base = 20000;
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    send_frame(fd, &frame);
}

static void send_exit(int fd, int rank, uint32_t code)
{
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    Gpul__Exits exits = GPUL__EXITS__INIT;
    Gpul__Idle idle = GPUL__IDLE__INIT;
    Gpul__Frame frame = member_frame();
    one.rank = (uint32_t)rank;
    one.code = code;
    exits.exits = &list;
    exits.n_exits = 1;
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    send_frame(fd, &frame);
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    send_frame(fd, &frame);
}

static void expect_end(struct reader *front_end, uint32_t code)
{
    Gpul__Frame *end = reader_expect(front_end, GPUL__FRAME__BODY_JOB_END);
    assert_int_equal(end->job_end->exit_code, code);
    gpul_message_release(end);
}

/* One node, one rank that ends with 7: the whole way over real sockets, and
 * the server's own exit code is the job's. */
static void test_one_rank(void **state)
{
    (void)state;
    struct fixture f;
    struct reader front_end;
    struct reader node;
    start(&f);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    reader_init(&node, dial(&f), GPUL_PEER_COORDINATOR);
    send_hello(node.fd, 0); /* before the job: it waits in the backlog */
    send_job(f.front_end, 1, 60000);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_ASSIGN));
    send_ready(node.fd);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_LAUNCH));
    send_exit(node.fd, 0, 7);
    expect_end(&front_end, 7);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_FINISH));
    reader_release(&node);
    assert_int_equal(reap(&f), 7);
    assert_null(reader_next(&front_end));
    reader_release(&front_end);
}

static void send_output(int fd, int rank, size_t bytes)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    Gpul__Frame frame = member_frame();
    output.rank = (uint32_t)rank;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data.data = data;
    output.data.len = sizeof(data);
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    for (size_t sent = 0; sent < bytes; sent += sizeof(data)) {
        send_frame(fd, &frame);
    }
}

static void expect_one(struct reader *r, unsigned body_case)
{
    gpul_message_release(reader_expect(r, body_case));
}

/* The front end's channel holds the windows of all nodes: a terminal that is
 * paused does not end the job. */
static void test_paused_front_end(void **state)
{
    (void)state;
    enum { NODES = 12, WINDOW_BYTES = GPUL_OUTPUT_WINDOW_BYTES_MAX };
    struct fixture f;
    struct reader front_end;
    struct reader nodes[NODES];
    start(&f);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    send_job(f.front_end, NODES, 60000);
    for (int i = 0; i < NODES; i++) {
        reader_init(&nodes[i], dial(&f), GPUL_PEER_COORDINATOR);
        send_hello(nodes[i].fd, i);
    }
    for (int i = 0; i < NODES; i++) {
        expect_one(&nodes[i], GPUL__FRAME__BODY_ASSIGN);
        send_ready(nodes[i].fd);
    }
    for (int i = 0; i < NODES; i++) {
        expect_one(&nodes[i], GPUL__FRAME__BODY_LAUNCH);
        send_output(nodes[i].fd, i, WINDOW_BYTES);
        send_exit(nodes[i].fd, i, 0);
    }
    for (int i = 0; i < NODES; i++) {
        expect_one(&nodes[i], GPUL__FRAME__BODY_FINISH);
        reader_release(&nodes[i]);
    }
    expect_end(&front_end, 0);
    assert_int_equal(reap(&f), 0);
    reader_release(&front_end);
}

/* The timer works: a join timeout of 50 ms ends the job with 40, by itself. */
static void test_join_timeout(void **state)
{
    (void)state;
    struct fixture f;
    struct reader front_end;
    start(&f);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    send_job(f.front_end, 1, 50);
    expect_end(&front_end, 40);
    assert_int_equal(reap(&f), 40);
    reader_release(&front_end);
}

/* A connection that talks nonsense is closed, and harms nobody. */
static void test_nonsense(void **state)
{
    (void)state;
    struct fixture f;
    struct reader front_end;
    start(&f);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    send_job(f.front_end, 1, 300);
    int fd = dial(&f);
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint8_t byte;
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_true(read(fd, &byte, 1) <= 0);
    close(fd);
    expect_end(&front_end, 40);
    assert_int_equal(reap(&f), 40);
    reader_release(&front_end);
}

/* A front end that goes away takes the server with it. */
static void test_front_end_gone(void **state)
{
    (void)state;
    struct fixture f;
    start(&f);
    send_job(f.front_end, 1, 60000);
    close(f.front_end);
    assert_int_equal(reap(&f), 128 + SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_paused_front_end),
        cmocka_unit_test(test_join_timeout),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_front_end_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
