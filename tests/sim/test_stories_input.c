/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of what goes to the ranks: standard input and its credit, signals
 * that stop nothing, the warning before the time limit. The notation is that
 * of test_stories_gather.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/story.h"

enum { WINDOW = 1 << 20 };

/* Two nodes of two ranks that run until they are stopped, and `bytes` for
 * rank 2, which is on node1. */
static void init(struct cluster *c, uint64_t bytes)
{
    story_init(c);
    story_run_for_ever();
    c->job.input_target = &c->input_target;
    c->input_target.rank = 2;
    c->input_bytes = bytes;
}

/* One rank reads: its node alone gets the bytes, and their end. */
static void test_one(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 40000);
    story_expect_part(&c, 4, 100,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
                      "4 assigning -> running: every node is ready\n"
                      "4 all <- launch attempt 1\n"
                      "4 user: launched 4/4\n"
                      "4 user: may send 1048576\n"
                      "4 node1 <- input 32768\n"
                      "4 node1 <- input 7232, end\n");
}

/* All read: the one that takes nothing stops the front end after a window. */
static void test_slowest(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3 * WINDOW);
    c.input_target.is_all = true;
    c.input_target.rank = 0;
    c.nodes[0].never_takes = true;
    cluster_start(&c);
    cluster_run(&c, 2000);
    rendezvous_check(c.core);
    assert_int_equal(c.input_sent, WINDOW);
    assert_int_equal(c.nodes[0].input_bytes, WINDOW);
    assert_int_equal(c.nodes[1].input_credited, WINDOW);
    /* When that one has gone, the other sets the pace. */
    c.nodes[0].never_takes = false;
    story_plans[0][0].runs_for_ever = false;
    cluster_plan(&c, SIM_RANK_END, 0, 0, 1, 0);
    cluster_plan(&c, SIM_RANK_END, 0, 1, 1, 0);
    cluster_run(&c, 3000);
    assert_int_equal(c.input_sent, 3 * WINDOW);
    assert_int_equal(c.nodes[1].input_credited, 3 * WINDOW);
    assert_true(c.nodes[1].has_input_end);
    cluster_release(&c);
}

/* Nobody reads any more: the window is swallowed, and that is all. */
static void test_swallowed(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3 * WINDOW);
    c.nodes[1].take_ms = 500;
    story_plans[0][2] = (struct rank_plan){.run_ms = 10};
    story_plans[0][3] = (struct rank_plan){.run_ms = 10};
    cluster_start(&c);
    cluster_run(&c, 5000);
    rendezvous_check(c.core);
    assert_int_equal(c.input_sent, WINDOW);
    assert_int_equal(c.input_granted, WINDOW);
    assert_false(c.is_finished);
    cluster_release(&c);
}

/* Who reads nobody's input gets none, and an empty one has an end. */
static void test_empty(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 0);
    story_expect_part(&c, 4, 100,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
                      "4 assigning -> running: every node is ready\n"
                      "4 all <- launch attempt 1\n"
                      "4 user: launched 4/4\n"
                      "4 user: may send 1048576\n"
                      "4 node1 <- input 0, end\n");
    init(&c, 100);
    c.job.input_target = NULL;
    story_expect_part(&c, 4, 100,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
                      "4 assigning -> running: every node is ready\n"
                      "4 all <- launch attempt 1\n"
                      "4 user: launched 4/4\n");
}

/* Ranks that start again read from the first byte on; what came meanwhile is
 * behind it. */
static void test_retry(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.input_target = &c.input_target;
    c.input_bytes = 70000;
    c.nodes[0].take_ms = 1;
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 6, .code = 1, .is_bind_error = true};
    story_expect_part(
        &c, 21, 30,
        "23 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "23 assigning -> running: every node is ready\n"
        "23 all <- launch attempt 2\n"
        "23 user: launched 4/4\n"
        "23 node0 <- input 32768\n"
        "23 node0 <- input 32768\n"
        "23 node0 <- input 4464\n"
        "23 node0 <- input 0, end\n");
}

static void send_input(struct cluster *c, uint64_t at_ms, const char *text,
                       bool is_end)
{
    static uint8_t bytes[16];
    Gpul__Input input = GPUL__INPUT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    memcpy(bytes, text, strlen(text));
    input.data.data = bytes;
    input.data.len = strlen(text);
    input.is_end = is_end;
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = &input;
    cluster_operate(c, at_ms, &frame);
}

/* An agent dies whose ranks have all that it was sent: what comes meanwhile,
 * the end too, is for the next one. */
static void test_away(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.ends_input = false;
    cluster_crash(&c, 1, 50);
    send_input(&c, 60, "\3\4", false);
    send_input(&c, 61, "\5", true);
    story_expect_part(
        &c, 50, 200,
        "51 away node1: it closed its connection\n"
        "71 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "71 user: back node1 2/2: its agent was started again\n"
        "71 node1 <- job job\n"
        "71 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "71 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node1 <- launch attempt 1\n"
        "71 node1 <- input 3\n"
        "71 node1 <- input 0, end\n");
}

/* What comes while ranks are stopped for a retry is not for them: once that is
 * given up they do not get what comes behind it either, nor its end. */
static void test_retry_given_up(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.input_target = &c.input_target;
    c.input_bytes = 3;
    c.ends_input = false;
    c.nodes[0].stop_ms = 100;
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 6, .code = 1, .is_bind_error = true};
    story_plans[0][1].runs_for_ever = true;
    send_input(&c, 20, "\3\4", false);
    cluster_cancel(&c, 40, SIGTERM, false, false);
    send_input(&c, 50, "\5\6", true);
    story_expect_part(
        &c, 12, 60,
        "12 user: exited node0 1/4\n"
        "12 running -> restarting: a port that rank 0 on node node0 was given "
        "had been taken\n"
        "12 user: retrying: a port that rank 0 on node node0 was given had "
        "been taken\n"
        "12 all <- stop signal 15 grace 30000\n"
        "19 user: exited node1 2/4\n"
        "19 user: exited node1 3/4\n"
        "40 restarting -> draining: canceled by signal 15 (SIGTERM)\n"
        "40 user: stopping: canceled by signal 15 (SIGTERM)\n"
        "40 all <- stop signal 15 grace 30000\n");
}

/* After more than a window nobody could read it again. */
static void test_no_retry(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.input_target = &c.input_target;
    c.input_bytes = WINDOW + 1;
    story_plans[0][0] =
        (struct rank_plan){.run_ms = 60, .code = 1, .is_bind_error = true};
    cluster_start(&c);
    cluster_run(&c, 10000);
    assert_true(c.is_finished);
    assert_int_equal(c.exit_code, 1);
    cluster_release(&c);
}

/* More than there is credit for, and credit for more than there was. */
static void test_no_credit(void **state)
{
    (void)state;
    struct cluster c;
    Gpul__Input input = GPUL__INPUT__INIT;
    static uint8_t data[10];
    Gpul__Frame frame = GPUL__FRAME__INIT;
    init(&c, 2 * WINDOW);
    c.nodes[1].never_takes = true;
    input.data.data = data;
    input.data.len = sizeof(data);
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = &input;
    cluster_operate(&c, 50, &frame);
    story_expect_part(&c, 40, 50,
                      "50 running -> draining: the front end sent more "
                      "standard input than the ranks had room for\n"
                      "50 user: stopping: the front end sent more standard "
                      "input than the ranks had room for\n"
                      "50 all <- stop signal 15 grace 30000\n");

    init(&c, 100);
    c.nodes[1].lies_about = 1;
    story_expect_part(
        &c, 7, 8,
        "8 lost node1: it took more standard input than it was sent\n"
        "8 user: left node1 1/2: it took more standard input than it was sent\n"
        "8 running -> draining: node node1 (host) was lost while running: it "
        "took more standard input than it was sent\n"
        "8 user: stopping: node node1 (host) was lost while running: it took "
        "more standard input than it was sent\n"
        "8 all <- stop signal 15 grace 30000\n");
}

/* A rank that is not there is refused when the ranks are counted. */
static void test_no_rank(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 100);
    c.input_target.rank = 4;
    cluster_start(&c);
    cluster_run(&c, 1000);
    assert_true(c.is_finished);
    assert_int_equal(c.exit_code, 125);
    cluster_release(&c);
}

/* A signal goes to all nodes while ranks run, and changes nothing. */
static void test_signal(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    cluster_signal(&c, 2, SIGUSR1); /* no rank runs yet */
    cluster_signal(&c, 50, SIGUSR2);
    story_expect_part(&c, 2, 100,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
                      "4 assigning -> running: every node is ready\n"
                      "4 all <- launch attempt 1\n"
                      "4 user: launched 4/4\n"
                      "50 all <- signal 12\n");
}

/* The warning comes before the time limit, to whoever runs. */
static void test_warning(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.job.timeout_ms = 60000;
    c.job.warning_signal = SIGUSR1;
    c.job.warning_ms = 20000;
    story_expect_part(
        &c, 40000, 60000,
        "40000 all <- signal 10\n"
        "40000 user: notice: signal 10 (SIGUSR1) was sent to all ranks: 20 s "
        "are left of the time limit of 1 min\n"
        "60000 running -> draining: the job reached its time limit of 1 min\n"
        "60000 user: stopping: the job reached its time limit of 1 min\n"
        "60000 all <- stop signal 15 grace 30000\n");
}

static void test_warning_early(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.timeout_ms = 60000;
    c.job.warning_signal = 40;
    c.job.warning_ms = 59998;
    c.nodes[0].ready_ms = 10;
    story_expect_part(
        &c, 2, 60,
        "2 user: notice: signal 40 was not sent, since no rank runs yet: 59.9 "
        "s are left of the time limit of 1 min\n"
        "13 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "13 assigning -> running: every node is ready\n"
        "13 all <- launch attempt 1\n"
        "13 user: launched 4/4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_swallowed),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_no_retry),
        cmocka_unit_test(test_no_credit),
        cmocka_unit_test(test_no_rank),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_warning_early),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_retry_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
