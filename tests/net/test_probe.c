/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes as processes of their own; the test is their agents and their
 * coordinator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/clock.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "worker/probe.h"

enum { PROBES_MAX = 8, PATIENCE_MS = 120000, EPOCH = 5, GENERATION = 9 };

/* One probe, seen from its agent. */
struct child {
    pid_t pid;
    int fd;
    struct gpul_deframer in;
    uint32_t port;
};

/* ---- processes ----------------------------------------------------------- */

static void child_start(struct child *child, sweep_fault_fn fault, void *arg)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0) {
        /* Only its own end: the test's ends of other probes must not be held
         * open by this one. */
        close_range(3, (unsigned)pair[1] - 1, 0);
        close_range((unsigned)pair[1] + 1, ~0u, 0);
        _exit(probe_run(pair[1], NULL, fault, arg));
    }
    close(pair[1]);
    child->fd = pair[0];
    gpul_deframer_init(&child->in, GPUL_PEER_PROBE);
}

static int child_wait(struct child *child)
{
    int status = 0;
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    return status;
}

static void child_close(struct child *child)
{
    if (child->fd >= 0) {
        close(child->fd);
        child->fd = -1;
    }
    gpul_deframer_release(&child->in);
}

static void assert_exits_with(struct child *child, int code)
{
    int status = child_wait(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

/* ---- frames -------------------------------------------------------------- */

static void child_send(struct child *child, Gpul__Frame *frame)
{
    struct gpul_buf out;
    struct gpul_error err;
    gpul_buf_init(&out, GPUL_FRAME_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    frame->epoch = EPOCH;
    frame->generation = GENERATION;
    assert_int_equal(gpul_message_encode(&out, frame, &err), 0);
    assert_int_equal(send(child->fd, out.data, out.used, MSG_NOSIGNAL),
                     out.used);
    gpul_buf_release(&out);
}

/* The next message of the probe, which must be of this kind. */
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
    assert_int_equal(status, 1);
    Gpul__Frame *frame;
    assert_int_equal(
        gpul_message_decode(&frame, body, n, GPUL_PEER_PROBE, &err), 0);
    assert_int_equal(frame->body_case, kind);
    assert_int_equal(frame->epoch, EPOCH);
    assert_int_equal(frame->generation, GENERATION);
    return frame;
}

static void send_start(struct child *child, uint32_t rank, uint32_t n,
                       const char *address, uint32_t deadline_ms)
{
    char text[64];
    snprintf(text, sizeof(text), "%s", address);
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = GPUL__SELF_TEST__LEVEL__QUICK;
    start.node_rank = rank;
    start.node_count = n;
    start.token = 42;
    start.address = text;
    start.deadline_ms = deadline_ms;
    char left[32];
    char right[32];
    snprintf(left, sizeof(left), "local-%u", (rank + n - 1) % n);
    snprintf(right, sizeof(right), "local-%u", (rank + 1) % n);
    start.left_name = left;
    start.right_name = right;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    child_send(child, &frame);
}

static void receive_listening(struct child *child)
{
    Gpul__Frame *frame =
        child_receive(child, GPUL__FRAME__BODY_PROBE_LISTENING);
    assert_string_equal(frame->probe_listening->address, "127.0.0.1");
    child->port = frame->probe_listening->port;
    gpul_message_release(frame);
}

static void send_connect(struct child *child, uint32_t port,
                         uint32_t deadline_ms)
{
    char address[] = "127.0.0.1";
    Gpul__ProbeConnect connect = GPUL__PROBE_CONNECT__INIT;
    connect.address = address;
    connect.port = port;
    connect.deadline_ms = deadline_ms;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_CONNECT;
    frame.probe_connect = &connect;
    child_send(child, &frame);
}

/* Start n probes and take them to the point where each knows its port. */
static void start_ring(struct child *children, uint32_t n, uint32_t faulty_rank,
                       sweep_fault_fn fault)
{
    for (uint32_t i = 0; i < n; i++) {
        child_start(&children[i], i == faulty_rank ? fault : NULL, NULL);
        send_start(&children[i], i, n, "127.0.0.1", PATIENCE_MS);
    }
    for (uint32_t i = 0; i < n; i++) {
        receive_listening(&children[i]);
    }
}

static void connect_ring(struct child *children, uint32_t n,
                         uint32_t deadline_ms)
{
    for (uint32_t i = 0; i < n; i++) {
        send_connect(&children[i], children[(i + 1) % n].port, deadline_ms);
    }
}

/* ---- tests --------------------------------------------------------------- */

/* Four probes run the quick test and end with 0; each reports every row, no
 * error and no wrong element, and the whole takes less than 2 s. */
static void test_quick(void **state)
{
    (void)state;
    struct child children[4];
    struct measure_plan plan;
    uint64_t start_ms = gpul_clock_ms();
    measure_plan_quick(&plan);
    start_ring(children, 4, 0, NULL);
    connect_ring(children, 4, PATIENCE_MS);
    for (uint32_t i = 0; i < 4; i++) {
        Gpul__Frame *frame =
            child_receive(&children[i], GPUL__FRAME__BODY_PROBE_RESULT);
        const Gpul__ProbeResult *result = frame->probe_result;
        assert_string_equal(result->error, "");
        assert_string_equal(result->phase, "coll");
        assert_int_equal(result->wrong_elements, 0);
        assert_int_equal(result->n_rows, plan.step_count);
        for (size_t r = 0; r < result->n_rows; r++) {
            const Gpul__ProbeRow *row = result->rows[r];
            assert_int_equal(row->count, plan.steps[r].count);
            assert_int_equal(row->bytes, 4 * plan.steps[r].count);
            assert_int_equal(row->iterations, plan.steps[r].iterations);
            assert_true(row->min_ns > 0 && row->min_ns <= row->median_ns &&
                        row->median_ns <= row->max_ns);
            assert_in_range(row->mean_ns, row->min_ns, row->max_ns);
        }
        gpul_message_release(frame);
        assert_exits_with(&children[i], 0);
        child_close(&children[i]);
    }
    print_message("quick self-test of 4 probes: %u ms\n",
                  (unsigned)(gpul_clock_ms() - start_ms));
}

static void flip_odd_message(void *arg, float *data, uint64_t count)
{
    (void)arg;
    if (count == 100003) {
        data[77777] += 1;
    }
}

/* A wrong element on one node comes out in that node's result: how many,
 * which, at what size; the other node's data is right. */
static void test_wrong_element(void **state)
{
    (void)state;
    struct child children[2];
    start_ring(children, 2, 1, flip_odd_message);
    connect_ring(children, 2, PATIENCE_MS);
    for (uint32_t i = 0; i < 2; i++) {
        Gpul__Frame *frame =
            child_receive(&children[i], GPUL__FRAME__BODY_PROBE_RESULT);
        const Gpul__ProbeResult *result = frame->probe_result;
        assert_string_equal(result->error, "");
        assert_int_equal(result->wrong_elements, i == 1 ? 4 : 0);
        assert_int_equal(result->first_wrong_offset, i == 1 ? 77777 : 0);
        assert_int_equal(result->first_wrong_bytes, i == 1 ? 400012 : 0);
        gpul_message_release(frame);
        assert_exits_with(&children[i], 0);
        child_close(&children[i]);
    }
}

static void assert_fails(struct child *child, const char *phase, bool is_remote,
                         const char *error)
{
    Gpul__Frame *frame = child_receive(child, GPUL__FRAME__BODY_PROBE_RESULT);
    assert_int_equal(frame->probe_result->is_remote, is_remote);
    assert_string_equal(frame->probe_result->phase, phase);
    assert_string_equal(frame->probe_result->error, error);
    gpul_message_release(frame);
    assert_exits_with(child, 0);
    child_close(child);
}

/* The right neighbour's address never comes: at the deadline the probe says
 * whose, and ends. */
static void test_no_connect(void **state)
{
    (void)state;
    struct child child;
    child_start(&child, NULL, NULL);
    send_start(&child, 2, 3, "127.0.0.1", 100);
    receive_listening(&child);
    assert_fails(&child, "init", true,
                 "waiting for the address of the right neighbour (node "
                 "local-0): deadline reached");
}

/* The left neighbour never dials: at the deadline the probe says so. */
static void test_neighbour_never_comes(void **state)
{
    (void)state;
    struct child children[3];
    char expected[256];
    start_ring(children, 3, 0, NULL);
    send_connect(&children[0], children[1].port, 1000);
    send_connect(&children[1], children[2].port, PATIENCE_MS);
    snprintf(expected, sizeof(expected),
             "left neighbour (node local-2): did not dial 127.0.0.1:%u before "
             "the deadline; is TCP from it allowed?",
             children[0].port);
    assert_fails(&children[0], "init", true, expected);
    for (uint32_t i = 1; i < 3; i++) {
        child_close(&children[i]);
        assert_exits_with(&children[i], 125);
    }
}

/* What cannot be a place in a ring is refused, with the phase. */
static void test_bad_start(void **state)
{
    (void)state;
    struct child child;
    child_start(&child, NULL, NULL);
    send_start(&child, 0, 1, "127.0.0.1", PATIENCE_MS);
    assert_fails(&child, "init", false,
                 "node rank 0 of 1 is no place in a ring");
    child_start(&child, NULL, NULL);
    send_start(&child, 0, 2, "192.0.2.1", PATIENCE_MS);
    assert_fails(&child, "init", false,
                 "cannot listen on 192.0.2.1: Cannot assign requested address");
}

static void stop_here(void *arg, float *data, uint64_t count)
{
    (void)arg;
    (void)data;
    if (count == 16384) {
        raise(SIGKILL);
    }
}

/* A probe that is killed in the middle: its neighbours report the phase, the
 * message size and the step, well before the deadline, and end; and they say
 * that the fault is not their own. */
static void test_probe_dies(void **state)
{
    (void)state;
    struct child children[3];
    bool is_named = false;
    uint64_t start_ms = gpul_clock_ms();
    start_ring(children, 3, 1, stop_here);
    connect_ring(children, 3, PATIENCE_MS);
    assert_true(WIFSIGNALED(child_wait(&children[1])));
    for (uint32_t i = 0; i < 3; i += 2) {
        Gpul__Frame *frame =
            child_receive(&children[i], GPUL__FRAME__BODY_PROBE_RESULT);
        const Gpul__ProbeResult *result = frame->probe_result;
        const char *start = "all-reduce of 65536 bytes: ";
        assert_true(result->is_remote);
        assert_string_equal(result->phase, "coll");
        assert_memory_equal(result->error, start, strlen(start));
        is_named |= strstr(result->error, "(node local-1, 127") != NULL;
        assert_int_equal(result->n_rows, 2); /* 8 B and 1 KiB were done */
        gpul_message_release(frame);
        assert_exits_with(&children[i], 0);
    }
    assert_true(is_named);
    assert_true(gpul_clock_ms() - start_ms < PATIENCE_MS / 2);
    for (uint32_t i = 0; i < 3; i++) {
        child_close(&children[i]);
    }
}

/* The agent's end closes: the probe is gone at once, wherever it is. */
static void test_agent_goes(void **state)
{
    (void)state;
    struct child children[3];
    child_start(&children[0], NULL, NULL); /* before ProbeStart */
    child_close(&children[0]);
    assert_exits_with(&children[0], 125);

    start_ring(children, 3, 0, NULL); /* before ProbeConnect */
    child_close(&children[0]);
    assert_exits_with(&children[0], 125);

    /* waiting for a neighbour that listens and does no more */
    send_connect(&children[1], children[2].port, PATIENCE_MS);
    child_close(&children[1]);
    assert_exits_with(&children[1], 125);
    child_close(&children[2]);
    assert_exits_with(&children[2], 125);
}

/* An agent in between: it starts a probe by probe_main's rules and dies. The
 * probe must be killed by the kernel: the agent's end of the socket pair is
 * still open in the test. */
static void test_agent_is_killed(void **state)
{
    (void)state;
    int pair[2];
    int report[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(pipe(report), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    fflush(NULL);
    pid_t agent = fork();
    if (agent == 0) {
        pid_t probe = fork();
        if (probe == 0) {
            dup2(pair[1], 3);
            _exit(probe_main(NULL));
        }
        if (write(report[1], &probe, sizeof(probe)) != sizeof(probe)) {
            _exit(1);
        }
        pause();
    }
    struct child child = {.fd = pair[0]};
    gpul_deframer_init(&child.in, GPUL_PEER_PROBE);
    assert_int_equal(read(report[0], &child.pid, sizeof(child.pid)),
                     sizeof(child.pid));
    send_start(&child, 0, 2, "127.0.0.1", PATIENCE_MS);
    receive_listening(&child); /* by now it has asked to die with its agent */
    kill(agent, SIGKILL);
    assert_int_equal(waitpid(agent, NULL, 0), agent);
    int status = child_wait(&child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    child_close(&child);
    close(pair[1]);
    close(report[0]);
    close(report[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* An agent that does not speak the protocol: nobody to tell, exit 125. */
static void test_garbage(void **state)
{
    (void)state;
    struct child child;
    child_start(&child, NULL, NULL);
    assert_int_equal(send(child.fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0),
                     8);
    assert_exits_with(&child, 125);
    child_close(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_wrong_element),
        cmocka_unit_test(test_no_connect),
        cmocka_unit_test(test_neighbour_never_comes),
        cmocka_unit_test(test_bad_start),
        cmocka_unit_test(test_probe_dies),
        cmocka_unit_test(test_agent_goes),
        cmocka_unit_test(test_agent_is_killed),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
