/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of nodes that do not come back, of those that are not the one that
 * was away, and of what is still on its way when a connection closes. The
 * notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/story.h"

/* Another instance of the name is a twin, not the successor. */
static void test_twin(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].restart_ms = 500;
    cluster_add(&c, 1)->dial_ms = 100;
    cluster_crash(&c, 1, 50);
    story_expect_part(
        &c, 50, 600,
        "51 away node1: it closed its connection\n"
        "101 node1 <- refuse 3\n"
        "101 refused 10.9.0.2: a second node of the name node1 came from "
        "10.9.0.2 while the first, from 127.0.0.1, is away for a moment; "
        "give each its own name\n"
        "101 user: refused: a second node of the name node1 came from "
        "10.9.0.2 while the first, from 127.0.0.1, is away for a moment; "
        "give each its own name\n"
        "551 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "551 user: back node1 2/2: its agent was started again\n"
        "551 node1 <- job job\n"
        "551 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "551 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "551 node1 <- launch attempt 1\n");
}

/* A node that is idle has nothing more to give; its next agent gets in. */
static void test_idle(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0].run_ms = 500;
    cluster_crash(&c, 1, 200);
    story_expect(
        &c, 200,
        "201 lost node1: it closed its connection\n"
        "201 user: left node1 1/2: it closed its connection\n"
        "221 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "221 user: back node1 2/2: its agent was started again\n"
        "221 node1 <- job job\n"
        "221 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "221 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "221 node1 <- launch attempt 1\n"
        "506 user: exited node0 4/4\n"
        "506 running -> draining: every rank ended with 0\n"
        "507 draining -> done: exit code 0, every rank ended with 0\n"
        "507 user: end 0 success: every rank ended with 0\n"
        "507 all <- finish\n"
        "509 done -> over: every node has left\n"
        "509 finish 0\n");
}

/* What the front end has of the dead connection is not credited to the new
 * one. */
static void test_credit(void **state)
{
    (void)state;
    struct cluster c;
    Gpul__Credit credit = GPUL__CREDIT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_CREDIT;
    frame.credit = &credit;
    credit.node_rank = 1;
    credit.bytes = 150;
    story_init(&c);
    story_run_for_ever();
    c.gives_credit = false;
    story_plans[0][2] = (struct rank_plan){.run_ms = 10, .output_bytes = 100};
    story_plans[0][3] = (struct rank_plan){.run_ms = 90, .output_bytes = 100};
    cluster_crash(&c, 1, 50);
    cluster_operate(&c, 200, &frame);
    cluster_operate(&c, 300, &frame);
    story_expect_part(
        &c, 12, 400,
        "16 user: output of rank 2, 100 bytes from node 1\n"
        "16 user: exited node1 1/4\n"
        "51 away node1: it closed its connection\n"
        "71 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "71 user: back node1 2/2: its agent was started again\n"
        "71 node1 <- job job\n"
        "71 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "71 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node1 <- launch attempt 1\n"
        "96 user: output of rank 3, 100 bytes from node 1\n"
        "96 user: exited node1 2/4\n"
        "200 node1 <- credit 50\n"
        "300 node1 <- credit 50\n");
}

/* Its keeper dies: the agent says so, and what is left there. */
static void test_leave(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_kill_keeper(&c, 1, 50);
    story_expect(
        &c, 50,
        "51 lost node1: its keeper ended; its ranks were killed\n"
        "51 user: left node1 1/2: its keeper ended; its ranks were killed\n"
        "51 running -> draining: node node1 (host) was lost while running: "
        "its keeper ended; its ranks were killed\n"
        "51 user: stopping: node node1 (host) was lost while running: its "
        "keeper ended; its ranks were killed\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 user: exited node0 1/4\n"
        "58 user: exited node0 2/4\n"
        "59 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: its keeper ended; its ranks were killed\n"
        "59 user: end 75 node_lost: node node1 (host) was lost while "
        "running: its keeper ended; its ranks were killed\n"
        "59 user:   rank 0 code 0 signal 15\n"
        "59 user:   rank 1 code 0 signal 15\n"
        "59 user:   stopped 2: 0-1\n"
        "59 all <- finish, logs stay\n"
        "61 done -> over: every node has left\n"
        "61 finish 75\n");
}

static void test_leave_unclean(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].unclean = "4711 python (D, nfs_wait)";
    cluster_kill_keeper(&c, 1, 50);
    story_expect(
        &c, 50,
        "51 lost node1: its keeper ended; its ranks were killed\n"
        "51 user: left node1 1/2: its keeper ended; its ranks were killed\n"
        "51 running -> draining: node node1 (host) was lost while running: "
        "its keeper ended; its ranks were killed\n"
        "51 user: stopping: node node1 (host) was lost while running: its "
        "keeper ended; its ranks were killed\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 user: exited node0 1/4\n"
        "58 user: exited node0 2/4\n"
        "59 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: its keeper ended; its ranks were killed\n"
        "59 user: end 75 node_lost: node node1 (host) was lost while "
        "running: its keeper ended; its ranks were killed\n"
        "59 user:   unclean node1: 4711 python (D, nfs_wait)\n"
        "59 user:   rank 0 code 0 signal 15\n"
        "59 user:   rank 1 code 0 signal 15\n"
        "59 user:   stopped 2: 0-1\n"
        "59 all <- finish, logs stay\n"
        "61 done -> over: every node has left\n"
        "61 finish 75\n");
}

/* The front end tells that both are gone: before the connection closes ... */
static void test_gone(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].leaves_silently = true;
    cluster_kill_keeper(&c, 1, 50);
    cluster_tell_gone(&c, 1, 50);
    story_expect(
        &c, 50,
        "51 lost node1: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "51 user: left node1 1/2: gpulaunch-worker ended by signal 9 "
        "(SIGKILL)\n"
        "51 running -> draining: node node1 (host) was lost while running: "
        "gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "51 user: stopping: node node1 (host) was lost while running: "
        "gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "51 all <- stop signal 15 grace 30000\n"
        "58 user: exited node0 1/4\n"
        "58 user: exited node0 2/4\n"
        "59 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "59 user: end 75 node_lost: node node1 (host) was lost while "
        "running: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "59 user:   unclean node1: lost; what ran there was not seen to end\n"
        "59 user:   rank 0 code 0 signal 15\n"
        "59 user:   rank 1 code 0 signal 15\n"
        "59 user:   stopped 2: 0-1\n"
        "59 all <- finish, logs stay\n"
        "61 done -> over: every node has left\n"
        "61 finish 75\n");
}

/* ... or while the agent is away. */
static void test_gone_while_away(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].restart_ms = 200;
    cluster_crash(&c, 1, 50);
    cluster_kill_keeper(&c, 1, 100);
    cluster_tell_gone(&c, 1, 110);
    story_expect(
        &c, 50,
        "51 away node1: it closed its connection\n"
        "110 lost node1: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "110 user: left node1 1/2: gpulaunch-worker ended by signal 9 "
        "(SIGKILL)\n"
        "110 running -> draining: node node1 (host) was lost while "
        "running: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "110 user: stopping: node node1 (host) was lost while running: "
        "gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "110 all <- stop signal 15 grace 30000\n"
        "117 user: exited node0 1/4\n"
        "117 user: exited node0 2/4\n"
        "118 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "118 user: end 75 node_lost: node node1 (host) was lost while "
        "running: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "118 user:   unclean node1: lost; what ran there was not seen to "
        "end\n"
        "118 user:   rank 0 code 0 signal 15\n"
        "118 user:   rank 1 code 0 signal 15\n"
        "118 user:   stopped 2: 0-1\n"
        "118 all <- finish, logs stay\n"
        "120 done -> over: every node has left\n"
        "120 finish 75\n");
}

/* An agent that dies with input for which it has not given credit takes some of
 * it along: a rank must not take that for the end of its data. */
static void test_input(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.job.input_target = &c.input_target;
    c.input_target.rank = 2;
    c.input_bytes = 3;
    c.ends_input = false;
    c.nodes[1].never_takes = true;
    cluster_crash(&c, 0, 40);
    cluster_crash(&c, 1, 80);
    story_expect(
        &c, 40,
        "41 away node0: it closed its connection\n"
        "61 back node0 from 10.9.0.0: agent 1 of its keeper\n"
        "61 user: back node0 2/2: its agent was started again\n"
        "61 node0 <- job job\n"
        "61 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "61 node0 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "61 node0 <- launch attempt 1\n"
        "81 lost node1: its agent ended while standard input was on its way, "
        "of "
        "which some may be lost\n"
        "81 user: left node1 1/2: its agent ended while standard input was "
        "on its way, of which some may be lost\n"
        "81 running -> draining: node node1 (host) was lost while running: "
        "its agent ended while standard input was on its way, of which some "
        "may "
        "be lost\n"
        "81 user: stopping: node node1 (host) was lost while running: its "
        "agent ended while standard input was on its way, of which some may be "
        "lost\n"
        "81 all <- stop signal 15 grace 30000\n"
        "88 user: exited node0 1/4\n"
        "88 user: exited node0 2/4\n"
        "89 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: its agent ended while standard input was on its way, "
        "of "
        "which some may be lost\n"
        "89 user: end 75 node_lost: node node1 (host) was lost while "
        "running: its agent ended while standard input was on its way, of "
        "which "
        "some may be lost\n"
        "89 user:   unclean node1: lost; what ran there was not seen to end\n"
        "89 user:   rank 0 code 0 signal 15\n"
        "89 user:   rank 1 code 0 signal 15\n"
        "89 user:   stopped 2: 0-1\n"
        "89 all <- finish, logs stay\n"
        "91 done -> over: every node has left\n"
        "91 finish 75\n");
}

/* What the coordinator sees of the crash comes behind the next Hello. */
static uint64_t slow_cut_ms(struct cluster *c)
{
    return c->now_ms == 50 ? 200 : 1;
}

/* Its successor is here before such an agent's connection is seen to close. The
 * loss is the end of the job, and that closes what is no node's: the successor
 * is refused first, or else its keeper would not stop the ranks. */
static void test_input_replaced(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 1, 2);
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    c.delay_ms = slow_cut_ms;
    c.job.input_target = &c.input_target;
    c.input_bytes = 3;
    c.ends_input = false;
    c.nodes[0].never_takes = true;
    cluster_crash(&c, 0, 50);
    cluster_start(&c);
    cluster_run(&c, 50);
    c.is_traced = true;
    cluster_run(&c, 10000);
    assert_string_equal(
        gpul_buf_text(&c.trace),
        "71 node0 <- refuse 8\n"
        "71 refused 10.9.0.0: the job has ended since standard input was cut "
        "off\n"
        "71 lost node0: its agent ended while standard input was on its way, "
        "of which some may be lost\n"
        "71 user: left node0 0/1: its agent ended while standard input was on "
        "its way, of which some may be lost\n"
        "71 running -> draining: node node0 (host) was lost while running: its "
        "agent ended while standard input was on its way, of which some may be "
        "lost\n"
        "71 draining -> done: exit code 75, node node0 (host) was lost while "
        "running: its agent ended while standard input was on its way, of "
        "which some may be lost\n"
        "71 user: end 75 node_lost: node node0 (host) was lost while running: "
        "its agent ended while standard input was on its way, of which some "
        "may be lost\n"
        "71 user:   unclean node0: lost; what ran there was not seen to end\n"
        "71 done -> over: every node has left\n"
        "71 finish 75\n");
    assert_true(c.is_finished);
    assert_int_equal(c.nodes[0].ranks_alive, 2);
    cluster_settle(&c);
    assert_int_equal(c.nodes[0].refusal, GPUL__REFUSE__REASON__JOB_OVER);
    assert_int_equal(c.nodes[0].ranks_alive, 0);
    cluster_release(&c);
}

/* Its keeper has ended, and that is known before its last agent's Hello is
 * here: nobody else will come, so nothing is waited for. */
static void test_gone_replaced(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.delay_ms = slow_cut_ms;
    cluster_crash(&c, 1, 50);
    cluster_tell_gone(&c, 1, 60);
    story_expect_part(
        &c, 50, 71,
        "71 node1 <- refuse 5\n"
        "71 refused 10.9.0.1: node node1 came when its worker had been seen to "
        "end\n"
        "71 lost node1: gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "71 user: left node1 1/2: gpulaunch-worker ended by signal 9 "
        "(SIGKILL)\n"
        "71 running -> draining: node node1 (host) was lost while running: "
        "gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "71 user: stopping: node node1 (host) was lost while running: "
        "gpulaunch-worker ended by signal 9 (SIGKILL)\n"
        "71 all <- stop signal 15 grace 30000\n");
}

/* The next agent of an idle node has to find that it is idle: until it says so,
 * too, no place of a new generation is for it. */
static uint64_t slow_launch_ms(struct cluster *c)
{
    return c->now_ms == 71 ? 100 : 1;
}

static void test_idle_resumes(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.delay_ms = slow_launch_ms;
    story_plans[0][0] = story_plans[0][1] = (struct rank_plan){.run_ms = 10};
    story_plans[0][2] =
        (struct rank_plan){.run_ms = 90, .code = 1, .is_bind_error = true};
    cluster_crash(&c, 0, 50);
    story_expect_part(
        &c, 71, 175,
        "71 back node0 from 10.9.0.0: agent 1 of its keeper\n"
        "71 user: back node0 2/2: its agent was started again\n"
        "71 node0 <- job job\n"
        "71 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "71 node0 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node0 <- launch attempt 1\n"
        "96 user: exited node1 3/4\n"
        "96 running -> restarting: a port that rank 2 on node node1 was given "
        "had been taken\n"
        "96 user: retrying: a port that rank 2 on node node1 was given had "
        "been taken\n"
        "96 all <- stop signal 15 grace 30000\n"
        "103 user: exited node1 4/4\n"
        "173 restarting -> assigning: every node is idle\n"
        "173 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4, avoid "
        "20000 20002 20003 20004\n"
        "173 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4, avoid "
        "20000 20002 20003 20004\n"
        "173 user: assigned 2/2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_leave_unclean),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_gone_while_away),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_input_replaced),
        cmocka_unit_test(test_gone_replaced),
        cmocka_unit_test(test_idle_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
