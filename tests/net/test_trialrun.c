/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials between two nodes over loopback: two threads, or two probes as
 * processes of their own of which the test is the agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/clock.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "worker/probe.h"
#include "worker/trialrun.h"
#include "worker/trialsocket.h"

enum {
    PATIENCE_MS = 60000,
    BYTES_MAX = 64 << 20,
    EPOCH = 5,
    GENERATION = 9,
    TOKEN = 4711,
};

/* ---- two threads --------------------------------------------------------- */

struct side {
    struct trialrun_order order;
    struct trialrun_result result;
    struct gpul_error err;
    int watch[2];
    uint16_t port;
    int status;
    pthread_t thread;
};

static void side_open(struct side *s, uint32_t self)
{
    const char *address = self == 0 ? "127.0.0.1" : "127.0.0.2";
    memset(s, 0, sizeof(*s));
    assert_int_equal(pipe(s->watch), 0);
    int fd = trialsocket_listen(address, &s->port, &s->err);
    assert_true(fd >= 0);
    s->order = (struct trialrun_order){
        .watch_fd = s->watch[0],
        .listen_fd = fd,
        .address = address,
        .peer_address = self == 0 ? "127.0.0.2" : "127.0.0.1",
        .dials_first = self == 0,
        .plan = {.token = TOKEN,
                 .self = self,
                 .peer = 1 - self,
                 .run_ms = 50,
                 .bytes_max = BYTES_MAX},
        .deadline_ms = PATIENCE_MS,
    };
}

static void side_close(struct side *s)
{
    close(s->watch[0]);
    close(s->watch[1]);
    if (s->order.listen_fd >= 0) {
        close(s->order.listen_fd);
    }
}

static void *side_body(void *arg)
{
    struct side *s = arg;
    s->status = trialrun(&s->result, &s->order, &s->err);
    return NULL;
}

static void side_start(struct side *s)
{
    assert_int_equal(pthread_create(&s->thread, NULL, side_body, s), 0);
}

static void side_wait(struct side *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

static void open_both(struct side sides[2])
{
    side_open(&sides[0], 0);
    side_open(&sides[1], 1);
    sides[0].order.peer_port = sides[1].port;
    sides[1].order.peer_port = sides[0].port;
}

static void run_both(struct side sides[2])
{
    side_start(&sides[0]);
    side_start(&sides[1]);
    side_wait(&sides[0]);
    side_wait(&sides[1]);
}

static void close_both(struct side sides[2])
{
    side_close(&sides[0]);
    side_close(&sides[1]);
}

static void assert_measured(const struct side *s)
{
    const Gpul__TrialWay *sent = &s->result.sending.message;
    const Gpul__TrialWay *got = &s->result.receiving.message;
    assert_int_equal(s->status, 0);
    assert_string_equal(sent->text, "");
    assert_string_equal(got->text, "");
    assert_int_equal(sent->failure, 0);
    assert_int_equal(got->failure, 0);
    assert_true(got->bytes > 0 && got->ns > 0);
    assert_in_range(sent->rtt_count, 1, TRIAL_PINGS_MAX);
    assert_true(sent->rtt_min_ns > 0);
    assert_true(sent->rtt_min_ns <= sent->rtt_median_ns);
    assert_true(sent->segments > 0);
    assert_true(sent->retransmits <= sent->segments);
}

static void test_both_ways(void **state)
{
    (void)state;
    struct side sides[2];
    open_both(sides);
    for (int i = 0; i < 3; i++) {
        run_both(sides);
        assert_measured(&sides[0]);
        assert_measured(&sides[1]);
    }
    close_both(sides);
}

/* One way is refused; the other one is measured all the same. */
static void test_refused(void **state)
{
    (void)state;
    struct side sides[2];
    struct side closed;
    open_both(sides);
    side_open(&closed, 1);
    side_close(&closed); /* nobody listens at its port now */
    sides[0].order.peer_port = closed.port;
    run_both(sides);
    const Gpul__TrialWay *sent = &sides[0].result.sending.message;
    assert_int_equal(sent->failure, GPUL__TRIAL_WAY__FAILURE__REFUSED);
    assert_non_null(strstr(sent->text, "Connection refused"));
    assert_int_equal(sides[1].result.receiving.message.failure,
                     GPUL__TRIAL_WAY__FAILURE__NO_CALLER);
    assert_int_equal(sides[1].result.sending.message.failure, 0);
    assert_int_equal(sides[0].result.receiving.message.failure, 0);
    assert_true(sides[0].result.receiving.message.bytes > 0);
    close_both(sides);
}

/* A peer that has answered to another trial is none of this one. */
static void test_wrong_token(void **state)
{
    (void)state;
    struct side sides[2];
    open_both(sides);
    sides[0].order.deadline_ms = 2000;
    sides[1].order.deadline_ms = 2000;
    sides[1].order.plan.token = TOKEN + 1;
    run_both(sides);
    assert_int_equal(sides[0].status, 0);
    assert_int_equal(sides[0].result.sending.message.failure,
                     GPUL__TRIAL_WAY__FAILURE__BROKEN);
    assert_int_equal(sides[1].result.receiving.message.failure,
                     GPUL__TRIAL_WAY__FAILURE__NO_CALLER);
    close_both(sides);
}

static int dial_port(uint16_t port, const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* More strangers than places, silent or not, keep the peer out of nothing. */
static void test_strangers(void **state)
{
    (void)state;
    enum { STRANGERS = TRIALRUN_CALLERS_MAX + 4 };
    struct side sides[2];
    int strangers[STRANGERS];
    open_both(sides);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = dial_port(sides[1].port, "127.0.0.2");
        if (i % 2 == 0) {
            static const char words[] = "GET / HTTP/1.1 and more of that";
            assert_true(send(strangers[i], words, sizeof(words), 0) > 0);
        }
    }
    run_both(sides);
    assert_measured(&sides[0]);
    assert_measured(&sides[1]);
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    close_both(sides);
}

/* Somebody takes the connection and says nothing; or hangs up. */
static void test_silent_peer(void **state)
{
    (void)state;
    struct side sides[2];
    open_both(sides);
    sides[0].order.deadline_ms = 1000;
    side_start(&sides[0]);
    side_wait(&sides[0]);
    assert_int_equal(sides[0].status, 0);
    assert_int_equal(sides[0].result.sending.message.failure,
                     GPUL__TRIAL_WAY__FAILURE__STALLED);
    assert_string_equal(sides[0].result.sending.message.text,
                        "connected, but no answer came in time");
    assert_int_equal(sides[0].result.receiving.message.failure,
                     GPUL__TRIAL_WAY__FAILURE__NO_CALLER);
    close_both(sides);
}

/* The agent is gone, or speaks: it is off. */
static void test_watched(void **state)
{
    (void)state;
    struct side sides[2];
    open_both(sides);
    close(sides[1].watch[1]);
    sides[1].watch[1] = -1;
    side_start(&sides[1]);
    side_wait(&sides[1]);
    assert_int_equal(sides[1].status, GPUL_ECLOSED);
    assert_int_equal(write(sides[0].watch[1], "x", 1), 1);
    side_start(&sides[0]);
    side_wait(&sides[0]);
    assert_int_equal(sides[0].status, GPUL_ECLOSED);
    close_both(sides);
}

/* ---- probes as processes ------------------------------------------------- */

struct child {
    pid_t pid;
    int fd;
    struct gpul_deframer in;
    uint32_t port;
};

static void child_start(struct child *child)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0) {
        close_range(3, (unsigned)pair[1] - 1, 0);
        close_range((unsigned)pair[1] + 1, ~0u, 0);
        _exit(probe_run(pair[1], NULL, NULL, NULL));
    }
    close(pair[1]);
    child->fd = pair[0];
    gpul_deframer_init(&child->in, GPUL_PEER_PROBE);
}

static void child_end(struct child *child, int code)
{
    int status = 0;
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
    close(child->fd);
    gpul_deframer_release(&child->in);
}

static void child_send(struct child *child, Gpul__Frame *frame)
{
    struct gpul_buf out;
    gpul_buf_init(&out, GPUL_FRAME_BYTES_MAX);
    frame->epoch = EPOCH;
    frame->generation = GENERATION;
    assert_int_equal(gpul_message_encode(&out, frame, NULL), 0);
    assert_int_equal(send(child->fd, out.data, out.used, MSG_NOSIGNAL),
                     out.used);
    gpul_buf_release(&out);
}

static Gpul__Frame *child_receive(struct child *child,
                                  Gpul__Frame__BodyCase kind)
{
    struct gpul_error err;
    const uint8_t *body;
    size_t n;
    int status;
    while ((status = gpul_deframer_next(&child->in, &body, &n, &err)) == 0) {
        uint8_t bytes[4096];
        struct pollfd fd = {.fd = child->fd, .events = POLLIN};
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        ssize_t got = recv(child->fd, bytes, sizeof(bytes), 0);
        assert_true(got > 0);
        assert_int_equal(
            gpul_deframer_feed(&child->in, bytes, (size_t)got, &err), 0);
    }
    Gpul__Frame *frame;
    assert_int_equal(status, 1);
    assert_int_equal(
        gpul_message_decode(&frame, body, n, GPUL_PEER_PROBE, &err), 0);
    assert_int_equal(frame->body_case, kind);
    assert_int_equal(frame->generation, GENERATION);
    return frame;
}

static void say_start(struct child *child, uint32_t node_rank, char *address,
                      uint32_t idle_ms)
{
    Gpul__PairStart start = GPUL__PAIR_START__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    start.node_rank = node_rank;
    start.node_count = 2;
    start.addresses = &address;
    start.n_addresses = 1;
    start.idle_ms = idle_ms;
    frame.body_case = GPUL__FRAME__BODY_PAIR_START;
    frame.pair_start = &start;
    child_send(child, &frame);
}

static void say_trial(struct child *child, const struct child *peer,
                      uint32_t node_rank, uint32_t trial)
{
    char address[] = "127.0.0.1";
    Gpul__TrialStart start = GPUL__TRIAL_START__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    start.trial = trial;
    start.token = TOKEN + trial;
    start.peer_rank = 1 - node_rank;
    start.peer_address = address;
    start.peer_port = peer->port;
    start.dials_first = node_rank == trial % 2;
    start.run_ms = 50;
    start.bytes_max = BYTES_MAX;
    start.deadline_ms = PATIENCE_MS;
    frame.body_case = GPUL__FRAME__BODY_TRIAL_START;
    frame.trial_start = &start;
    child_send(child, &frame);
}

static void say_end(struct child *child)
{
    Gpul__PairEnd end = GPUL__PAIR_END__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PAIR_END;
    frame.pair_end = &end;
    child_send(child, &frame);
}

static void test_probes(void **state)
{
    (void)state;
    struct child children[2];
    char address[] = "127.0.0.1";
    for (uint32_t i = 0; i < 2; i++) {
        child_start(&children[i]);
        say_start(&children[i], i, address, PATIENCE_MS);
        Gpul__Frame *frame =
            child_receive(&children[i], GPUL__FRAME__BODY_PAIR_LISTENING);
        assert_int_equal(frame->pair_listening->n_ports, 1);
        children[i].port = frame->pair_listening->ports[0];
        gpul_message_release(frame);
    }
    for (uint32_t trial = 1; trial <= 3; trial++) {
        for (uint32_t i = 0; i < 2; i++) {
            say_trial(&children[i], &children[1 - i], i, trial);
        }
        for (uint32_t i = 0; i < 2; i++) {
            Gpul__Frame *frame =
                child_receive(&children[i], GPUL__FRAME__BODY_TRIAL_RESULT);
            const Gpul__TrialResult *result = frame->trial_result;
            assert_int_equal(result->trial, trial);
            assert_int_equal(result->sending->failure, 0);
            assert_int_equal(result->receiving->failure, 0);
            assert_true(result->receiving->bytes > 0);
            gpul_message_release(frame);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        say_end(&children[i]);
        child_end(&children[i], 0);
    }
}

static void test_no_address(void **state)
{
    (void)state;
    struct child child;
    char address[] = "192.0.2.1";
    child_start(&child);
    say_start(&child, 0, address, PATIENCE_MS);
    Gpul__Frame *frame =
        child_receive(&child, GPUL__FRAME__BODY_PAIR_LISTENING);
    assert_int_equal(frame->pair_listening->n_ports, 0);
    assert_non_null(
        strstr(frame->pair_listening->error, "cannot listen on 192.0.2.1"));
    gpul_message_release(frame);
    child_end(&child, 0);
}

/* Without orders it ends; nobody could be told. */
static void test_idle(void **state)
{
    (void)state;
    struct child child;
    char address[] = "127.0.0.1";
    child_start(&child);
    say_start(&child, 0, address, 50);
    gpul_message_release(
        child_receive(&child, GPUL__FRAME__BODY_PAIR_LISTENING));
    child_end(&child, 125);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_token), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_silent_peer), cmocka_unit_test(test_watched),
        cmocka_unit_test(test_probes),      cmocka_unit_test(test_no_address),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
