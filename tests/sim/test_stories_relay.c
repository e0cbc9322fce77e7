/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of what passes through: reports, output and its credit, notices; and
 * of a coordinator that did not run for a while. The notation is that of
 * test_stories_gather.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "tests/lib/story.h"

/* Mode ENV: the reports of the asked rank pass through, nothing is started.
 */
static void test_env(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.mode = GPUL__JOB__MODE__ENV;
    c.job.report_rank = 3;
    story_expect(
        &c, 2,
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "4 assigning -> reporting: every node is ready\n"
        "4 all <- launch attempt 1\n"
        "6 user: report of rank 3\n"
        "6 user: report of rank 3, last\n"
        "6 reporting -> draining: every rank asked for was reported\n"
        "6 all <- stop signal 15 grace 30000\n"
        "7 draining -> done: exit code 0, every rank asked for was reported\n"
        "7 user: end 0 success: every rank asked for was reported\n"
        "7 all <- finish\n"
        "9 done -> over: every node has left\n"
        "9 finish 0\n");
}

/* A rank that is not there is refused when the ranks are counted. */
static void test_env_no_rank(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.mode = GPUL__JOB__MODE__ENV;
    c.job.report_rank = 4;
    story_expect(
        &c, 1,
        "1 user: joined node0 1/2\n"
        "1 joined node0 from 10.9.0.0\n"
        "1 user: joined node1 2/2\n"
        "1 joined node1 from 10.9.0.1\n"
        "1 gathering -> done: exit code 125, rank 4 was asked for and the "
        "ranks are 0 to 3\n"
        "1 user: end 125 usage: rank 4 was asked for and the ranks are 0 to 3\n"
        "1 all <- finish, logs stay\n"
        "3 done -> over: every node has left\n"
        "3 finish 125\n");
}

/* Reports that do not come have a bound. */
static void test_env_late(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.mode = GPUL__JOB__MODE__ENV;
    c.job.report_all_ranks = true;
    c.nodes[0].never_reports = true;
    story_expect(&c, 6,
                 "6 user: report of rank 2\n"
                 "6 user: report of rank 2, last\n"
                 "6 user: report of rank 3\n"
                 "6 user: report of rank 3, last\n"
                 "15004 reporting: still waiting for node0\n"
                 "15004 user: waiting 1/2: node0\n"
                 "30004 reporting -> draining: 1 of 2 nodes reported within 30 "
                 "s; missing: node0\n"
                 "30004 user: stopping: 1 of 2 nodes reported within 30 s; "
                 "missing: node0\n"
                 "30004 all <- stop signal 15 grace 30000\n"
                 "30011 draining -> done: exit code 40, 1 of 2 nodes reported "
                 "within 30 s; missing: node0\n"
                 "30011 user: end 40 deadline: 1 of 2 nodes reported within 30 "
                 "s; missing: node0\n"
                 "30011 all <- finish, logs stay\n"
                 "30013 done -> over: every node has left\n"
                 "30013 finish 40\n");
}

/* Output goes up and credit comes down, both with the node's rank. */
static void test_output(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][2].output_bytes = 40000;
    story_expect(&c, 6,
                 "106 user: exited node0 1/4\n"
                 "106 user: exited node0 2/4\n"
                 "106 user: output of rank 2, 32768 bytes from node 1\n"
                 "106 user: output of rank 2, 7232 bytes from node 1\n"
                 "106 user: exited node1 3/4\n"
                 "106 user: exited node1 4/4\n"
                 "106 running -> draining: every rank ended with 0\n"
                 "106 node1 <- credit 32768\n"
                 "106 node1 <- credit 7232\n"
                 "107 draining -> done: exit code 0, every rank ended with 0\n"
                 "107 user: end 0 success: every rank ended with 0\n"
                 "107 all <- finish\n"
                 "109 done -> over: every node has left\n"
                 "109 finish 0\n");
}

/* The end waits for a front end that has not taken the output yet: a node is
 * not unclean because the user's terminal is paused. */
static void test_paused_terminal(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.grace_ms = 1000;
    c.gives_credit = false;
    c.nodes[0].never_idle = true; /* its output has no credit */
    story_plans[0][0].output_bytes = 100;
    cluster_cancel(&c, 60000, SIGINT, false, false);
    story_expect(
        &c, 106,
        "106 user: output of rank 0, 100 bytes from node 0\n"
        "106 user: exited node0 1/4\n"
        "106 user: exited node0 2/4\n"
        "106 user: exited node1 3/4\n"
        "106 user: exited node1 4/4\n"
        "106 running -> draining: every rank ended with 0\n"
        "5606 draining: still waiting for node0\n"
        "5606 user: waiting 1/2: node0\n"
        "60000 stopping at once\n"
        "60000 all <- stop signal 9 grace 0\n"
        "66106 draining -> done: exit code 0, every rank ended with 0\n"
        "66106 user: end 0 success: every rank ended with 0\n"
        "66106 user:   unclean node0: did not become idle in time\n"
        "66106 node0 <- credit 100\n"
        "66106 all <- finish\n"
        "66108 done -> over: every node has left\n"
        "66108 finish 0\n");
}

/* Without forwarding, output is credited and dropped. */
static void test_output_unwanted(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.job.forwards_output = false;
    story_plans[0][2].output_bytes = 100;
    story_expect(&c, 100,
                 "106 user: exited node0 1/4\n"
                 "106 user: exited node0 2/4\n"
                 "106 node1 <- credit 100\n"
                 "106 user: exited node1 3/4\n"
                 "106 user: exited node1 4/4\n"
                 "106 running -> draining: every rank ended with 0\n"
                 "107 draining -> done: exit code 0, every rank ended with 0\n"
                 "107 user: end 0 success: every rank ended with 0\n"
                 "107 all <- finish\n"
                 "109 done -> over: every node has left\n"
                 "109 finish 0\n");
}

/* Two windows of output without credit are too much. */
static void test_output_flood(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.gives_credit = false;
    story_plans[0][2] =
        (struct rank_plan){.run_ms = 10, .output_bytes = (2u << 20) + 1};
    cluster_start(&c);
    cluster_run(&c, 17);
    c.is_traced = true;
    cluster_run(&c, 1000);
    assert_string_equal(
        gpul_buf_text(&c.trace),
        "23 user: exited node0 1/4\n"
        "23 user: exited node0 2/4\n"
        "24 draining -> done: exit code 75, node node1 (host) was lost while "
        "running: it sent more output than it has credit for\n"
        "24 user: end 75 node_lost: node node1 (host) was lost while running: "
        "it sent more output than it has credit for\n"
        "24 user:   unclean node1: lost; what ran there was not seen to end\n"
        "24 user:   rank 0 code 0 signal 15\n"
        "24 user:   rank 1 code 0 signal 15\n"
        "24 user:   stopped 2: 0-1\n"
        "24 all <- finish, logs stay\n"
        "26 done -> over: every node has left\n"
        "26 finish 75\n");
    cluster_release(&c);
}

/* What every node has to say is said once. */
static void test_notices(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.nodes[0].notice = "HTTP_PROXY is set";
    c.nodes[1].notice = "HTTP_PROXY is set";
    story_expect(&c, 6,
                 "6 user: notice node0: HTTP_PROXY is set\n"
                 "106 user: exited node0 1/4\n"
                 "106 user: exited node0 2/4\n"
                 "106 user: exited node1 3/4\n"
                 "106 user: exited node1 4/4\n"
                 "106 running -> draining: every rank ended with 0\n"
                 "107 draining -> done: exit code 0, every rank ended with 0\n"
                 "107 user: end 0 success: every rank ended with 0\n"
                 "107 all <- finish\n"
                 "109 done -> over: every node has left\n"
                 "109 finish 0\n");
}

/* After a stall of our own, silence is first checked, then believed. */
static void test_stall(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_start(&c);
    cluster_run(&c, 3000);
    c.now_ms = 60000; /* nothing was read or ticked since */
    c.is_traced = true;
    cluster_run(&c, 60500);
    assert_string_equal(gpul_buf_text(&c.trace), "");
    cluster_cancel(&c, 61000, SIGTERM, false, false);
    cluster_run(&c, 70000);
    assert_true(c.is_finished);
    assert_int_equal(c.exit_code, 128 + SIGTERM);
    cluster_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_env_no_rank),
        cmocka_unit_test(test_env_late),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_paused_terminal),
        cmocka_unit_test(test_output_unwanted),
        cmocka_unit_test(test_output_flood),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_stall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
