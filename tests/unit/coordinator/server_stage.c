/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "server_stage.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/server.h"
#include "coordinator/text.h"
#include "proto/limits.h"

void reader_init(struct reader *r, int fd, enum gpul_peer from)
{
    wire_init(&r->wire, fd);
    r->from = from;
    gpul_deframer_init(&r->deframer, from);
}

void reader_release(struct reader *r)
{
    gpul_deframer_release(&r->deframer);
    wire_release(&r->wire);
}

Gpul__Frame *reader_next(struct reader *r)
{
    const uint8_t *body;
    size_t n;
    uint8_t bytes[4096];
    while (gpul_deframer_next(&r->deframer, &body, &n, NULL) == 0) {
        size_t got = wire_read(&r->wire, bytes, sizeof(bytes));
        if (got == 0) {
            return NULL;
        }
        assert_int_equal(gpul_deframer_feed(&r->deframer, bytes, got, NULL), 0);
    }
    Gpul__Frame *frame;
    assert_int_equal(gpul_message_decode(&frame, body, n, r->from, NULL), 0);
    return frame;
}

Gpul__Frame *reader_expect(struct reader *r, unsigned body_case)
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

void reader_expect_one(struct reader *r, unsigned body_case)
{
    gpul_message_release(reader_expect(r, body_case));
}

void reader_expect_end(struct reader *front_end, uint32_t code)
{
    Gpul__Frame *end = reader_expect(front_end, GPUL__FRAME__BODY_JOB_END);
    assert_int_equal(end->job_end->exit_code, code);
    gpul_message_release(end);
}

/* ---- the server ---------------------------------------------------------- */

static void serve(int operator_fd, int listen_fd, struct gpul_secret *secret)
{
    struct gpul_error err = {0};
    int exit_code = 0;
    struct server_config config = {.operator_fd = operator_fd,
                                   .listen_fds = {listen_fd},
                                   .listen_count = 1,
                                   .secret = secret,
                                   .epoch = 1};
    int rc = server_run(&exit_code, &config, &err);
    if (rc != 0) {
        fprintf(stderr, "server: %s\n", err.text);
    }
    exit(rc == 0 ? exit_code : 125);
}

void stage_start(struct stage *s, uint8_t secret)
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
    s->port = ntohs(address.sin_port);
    s->front_end = pair[0];
    s->lent = mmap(NULL, sizeof(*s->lent), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s->lent != MAP_FAILED);
    *s->lent = (struct gpul_secret){{secret}};
    s->server = fork();
    assert_true(s->server >= 0);
    if (s->server == 0) {
        close(pair[0]);
        serve(pair[1], listener, secret != 0 ? s->lent : NULL);
    }
    close(pair[1]);
    close(listener);
}

int stage_reap(struct stage *s)
{
    int status;
    assert_int_equal(waitpid(s->server, &status, 0), s->server);
    munmap(s->lent, sizeof(*s->lent));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int stage_dial(const struct stage *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(s->port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    return fd;
}

/* ---- frames -------------------------------------------------------------- */

void stage_send(struct reader *to, const Gpul__Frame *frame)
{
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, GPUL_JOB_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&bytes, frame, NULL), 0);
    assert_true(wire_write(&to->wire, bytes.data, bytes.used));
    gpul_buf_release(&bytes);
}

void stage_send_job(struct reader *front_end, uint32_t node_count,
                    uint32_t join_timeout_ms)
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
    stage_send(front_end, &frame);
}

void stage_send_hello(struct reader *node, const char *name)
{
    Gpul__Facts facts = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    facts.hostname = wire_text("host");
    facts.boot_id = wire_text("boot");
    facts.address = wire_text("127.0.0.1");
    facts.cores = 1;
    hello.protocol_min = GPUL_PROTOCOL_MIN;
    hello.protocol_max = GPUL_PROTOCOL;
    hello.job_id = wire_text("job");
    hello.node_name = wire_text(name);
    hello.facts = &facts;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_HELLO;
    frame.hello = &hello;
    stage_send(node, &frame);
}

Gpul__Frame stage_frame(void)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = 1;
    frame.generation = 1;
    return frame;
}

void stage_send_ready(struct reader *node)
{
    Gpul__Ready ready = GPUL__READY__INIT;
    Gpul__Frame frame = stage_frame();
    ready.port_base = 20000;
    frame.body_case = GPUL__FRAME__BODY_READY;
    frame.ready = &ready;
    stage_send(node, &frame);
}

void stage_send_exit(struct reader *node, uint32_t rank, uint32_t code)
{
    Gpul__Exit one = GPUL__EXIT__INIT;
    Gpul__Exit *list = &one;
    Gpul__Exits exits = GPUL__EXITS__INIT;
    Gpul__Idle idle = GPUL__IDLE__INIT;
    Gpul__Frame frame = stage_frame();
    one.rank = rank;
    one.code = code;
    exits.exits = &list;
    exits.n_exits = 1;
    frame.body_case = GPUL__FRAME__BODY_EXITS;
    frame.exits = &exits;
    stage_send(node, &frame);
    frame.body_case = GPUL__FRAME__BODY_IDLE;
    frame.idle = &idle;
    stage_send(node, &frame);
}
