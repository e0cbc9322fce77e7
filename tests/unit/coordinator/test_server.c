/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "server_stage.h"

/* One node, one rank that ends with 7: the whole way over real sockets, and
 * the server's own exit code is the job's. */
static void test_one_rank(void **state)
{
    (void)state;
    struct stage f;
    struct reader front_end;
    struct reader node;
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    reader_init(&node, stage_dial(&f), GPUL_PEER_COORDINATOR);
    stage_send_hello(&node,
                     "node0"); /* before the job: it waits in the backlog */
    stage_send_job(&front_end, 1, 60000);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_ASSIGN));
    stage_send_ready(&node);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_LAUNCH));
    stage_send_exit(&node, 0, 7);
    reader_expect_end(&front_end, 7);
    gpul_message_release(reader_expect(&node, GPUL__FRAME__BODY_FINISH));
    reader_release(&node);
    assert_int_equal(stage_reap(&f), 7);
    assert_null(reader_next(&front_end));
    reader_release(&front_end);
}

static void send_output(struct reader *node, uint32_t rank, size_t bytes)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    Gpul__Frame frame = stage_frame();
    output.rank = rank;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data.data = data;
    output.data.len = sizeof(data);
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    for (size_t sent = 0; sent < bytes; sent += sizeof(data)) {
        stage_send(node, &frame);
    }
}

/* The front end's channel holds the windows of all nodes: a terminal that is
 * paused does not end the job. */
static void test_paused_front_end(void **state)
{
    (void)state;
    enum { NODES = 12, WINDOW_BYTES = GPUL_OUTPUT_WINDOW_BYTES_MAX };
    struct stage f;
    struct reader front_end;
    struct reader nodes[NODES];
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    stage_send_job(&front_end, NODES, 60000);
    for (uint32_t i = 0; i < NODES; i++) {
        reader_init(&nodes[i], stage_dial(&f), GPUL_PEER_COORDINATOR);
        char name[16];
        snprintf(name, sizeof(name), "node%u", i);
        stage_send_hello(&nodes[i], name);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        reader_expect_one(&nodes[i], GPUL__FRAME__BODY_ASSIGN);
        stage_send_ready(&nodes[i]);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        reader_expect_one(&nodes[i], GPUL__FRAME__BODY_LAUNCH);
        send_output(&nodes[i], i, WINDOW_BYTES);
        stage_send_exit(&nodes[i], i, 0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        reader_expect_one(&nodes[i], GPUL__FRAME__BODY_FINISH);
        reader_release(&nodes[i]);
    }
    reader_expect_end(&front_end, 0);
    assert_int_equal(stage_reap(&f), 0);
    reader_release(&front_end);
}

/* The timer works: a join timeout of 50 ms ends the job with 40, by itself. */
static void test_join_timeout(void **state)
{
    (void)state;
    struct stage f;
    struct reader front_end;
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    stage_send_job(&front_end, 1, 50);
    reader_expect_end(&front_end, 40);
    assert_int_equal(stage_reap(&f), 40);
    reader_release(&front_end);
}

/* A connection that talks nonsense is closed, and harms nobody. */
static void test_nonsense(void **state)
{
    (void)state;
    struct stage f;
    struct reader front_end;
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    stage_send_job(&front_end, 1, 300);
    int fd = stage_dial(&f);
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint8_t byte;
    assert_int_equal(poll(&ready, 1, WIRE_WAIT_MS), 1);
    assert_true(read(fd, &byte, 1) <= 0);
    close(fd);
    reader_expect_end(&front_end, 40);
    assert_int_equal(stage_reap(&f), 40);
    reader_release(&front_end);
}

/* A node that sends what no node has cause for is closed, and the user is
 * told why. */
static void test_flood(void **state)
{
    (void)state;
    struct stage f;
    struct reader front_end;
    struct reader node;
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    reader_init(&node, stage_dial(&f), GPUL_PEER_COORDINATOR);
    stage_send_job(&front_end, 1, 60000);
    stage_send_hello(&node, "node0");
    reader_expect_one(&node, GPUL__FRAME__BODY_ASSIGN);
    Gpul__Heartbeat heartbeat = GPUL__HEARTBEAT__INIT;
    Gpul__Frame frame = stage_frame();
    struct gpul_buf bytes;
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT;
    frame.heartbeat = &heartbeat;
    gpul_buf_init(&bytes, GPUL_FRAME_BYTES_MAX);
    for (uint32_t i = 0; i < 2 * GPUL_PACE_BURST; i++) {
        assert_int_equal(gpul_message_encode(&bytes, &frame, NULL), 0);
    }
    assert_true(wire_write(&node.wire, bytes.data, bytes.used));
    gpul_buf_release(&bytes);
    Gpul__Frame *end = reader_expect(&front_end, GPUL__FRAME__BODY_JOB_END);
    assert_int_equal(end->job_end->exit_code, 41);
    assert_string_equal(end->job_end->text,
                        "node node0 (host) was lost while assigning: it sent "
                        "more messages than a node has cause for");
    gpul_message_release(end);
    reader_release(&node);
    assert_int_equal(stage_reap(&f), 41);
    reader_release(&front_end);
}

/* A front end that goes away takes the server with it. */
static void test_front_end_gone(void **state)
{
    (void)state;
    struct stage f;
    struct reader front_end;
    stage_start(&f, 0);
    reader_init(&front_end, f.front_end, GPUL_PEER_DESK);
    stage_send_job(&front_end, 1, 60000);
    reader_release(&front_end);
    assert_int_equal(stage_reap(&f), 128 + SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_paused_front_end),
        cmocka_unit_test(test_join_timeout),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_front_end_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
