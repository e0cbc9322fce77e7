/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of agents that die while the ranks run, and of their successors. The
 * notation is that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/story.h"

/* While the ranks run, an agent dies: its successor is told where the job is,
 * and tells the exits that happened meanwhile. */
static void test_back(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0].run_ms = 300;
    cluster_crash(&c, 1, 90);
    story_expect(
        &c, 90,
        "91 away node1: it closed its connection\n"
        "106 user: exited node0 1/4\n"
        "111 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "111 user: back node1 2/2: its agent was started again\n"
        "111 node1 <- job job\n"
        "111 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "111 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "111 node1 <- launch attempt 1\n"
        "113 user: exited node1 2/4\n"
        "113 user: exited node1 3/4\n"
        "306 user: exited node0 4/4\n"
        "306 running -> draining: every rank ended with 0\n"
        "307 draining -> done: exit code 0, every rank ended with 0\n"
        "307 user: end 0 success: every rank ended with 0\n"
        "307 all <- finish\n"
        "309 done -> over: every node has left\n"
        "309 finish 0\n");
}

/* The Welcome of the last node that comes is lost with its connection: it knows
 * nothing of it and dials again, as the same agent. */
static void test_lost_welcome(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    c.nodes[1].dial_ms = 5;
    c.nodes[1].loses_welcome = 1;
    story_expect_part(
        &c, 0, 37,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined node0 1/2\n"
        "1 joined node0 from 10.9.0.0\n"
        "6 user: joined node1 2/2\n"
        "6 joined node1 from 10.9.0.1\n"
        "6 gathering -> assigning: every node is here\n"
        "6 all <- job job\n"
        "6 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "6 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "6 user: assigned 2/2\n"
        "8 away node1: it closed its connection\n"
        "28 back node1 from 10.9.0.1: agent 0 of its keeper\n"
        "28 user: back node1 2/2: its agent dialed again\n"
        "28 node1 <- job job\n"
        "28 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "28 assigning -> restarting: node node1 (host) has a new "
        "connection\n"
        "28 user: retrying: node node1 (host) has a new connection\n"
        "28 all <- stop signal 15 grace 30000\n"
        "35 restarting -> assigning: every node is idle\n"
        "35 node0 <- assign node 0/2, ranks 0+2 of 4, host 0/2 with 4\n"
        "35 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "35 user: assigned 2/2\n");
}

/* The same of an agent that comes back while the ranks run. */
static void test_lost_welcome_running(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    cluster_crash(&c, 1, 50);
    c.nodes[1].loses_welcome = 2;
    story_expect_part(
        &c, 50, 150,
        "51 away node1: it closed its connection\n"
        "71 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "71 user: back node1 2/2: its agent was started again\n"
        "71 node1 <- job job\n"
        "71 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "71 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node1 <- launch attempt 1\n"
        "73 away node1: it closed its connection\n"
        "93 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "93 user: back node1 2/2: its agent dialed again\n"
        "93 node1 <- job job\n"
        "93 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "93 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "93 node1 <- launch attempt 1\n");
}

/* Exits that the first agent has told are told again, and are no news. */
static void test_twice(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_plans[0][0].run_ms = 300;
    story_plans[0][2].run_ms = 10;
    cluster_crash(&c, 1, 50);
    story_expect(
        &c, 12,
        "16 user: exited node1 1/4\n"
        "51 away node1: it closed its connection\n"
        "71 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "71 user: back node1 2/2: its agent was started again\n"
        "71 node1 <- job job\n"
        "71 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "71 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node1 <- launch attempt 1\n"
        "106 user: exited node0 2/4\n"
        "106 user: exited node1 3/4\n"
        "306 user: exited node0 4/4\n"
        "306 running -> draining: every rank ended with 0\n"
        "307 draining -> done: exit code 0, every rank ended with 0\n"
        "307 user: end 0 success: every rank ended with 0\n"
        "307 all <- finish\n"
        "309 done -> over: every node has left\n"
        "309 finish 0\n");
}

/* A rank fails while its agent is away: that is the first failure. */
static void test_failure_while_away(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    story_plans[0][3] = (struct rank_plan){.run_ms = 100, .code = 7};
    cluster_crash(&c, 1, 90);
    story_expect(
        &c, 90,
        "91 away node1: it closed its connection\n"
        "111 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "111 user: back node1 2/2: its agent was started again\n"
        "111 node1 <- job job\n"
        "111 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "111 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "111 node1 <- launch attempt 1\n"
        "113 user: exited node1 1/4\n"
        "113 running -> draining: rank 3 on node node1 (host) exited with "
        "code 7\n"
        "113 user: stopping: rank 3 on node node1 (host) exited with code 7\n"
        "113 all <- stop signal 15 grace 30000\n"
        "120 user: exited node0 2/4\n"
        "120 user: exited node0 3/4\n"
        "120 user: exited node1 4/4\n"
        "121 draining -> done: exit code 7, rank 3 on node node1 (host) "
        "exited with code 7\n"
        "121 user: end 7 rank_failed: rank 3 on node node1 (host) exited "
        "with code 7\n"
        "121 user:   rank 3 code 7 signal 0\n"
        "121 user:   rank 0 code 0 signal 15\n"
        "121 user:   rank 1 code 0 signal 15\n"
        "121 user:   rank 2 code 0 signal 15\n"
        "121 user:   stopped 3: 0-2\n"
        "121 all <- finish, logs stay\n"
        "123 done -> over: every node has left\n"
        "123 finish 7\n");
}

/* Away for more than a second is said; for more than ten it is lost. */
static void test_late(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].restart_ms = 3000;
    cluster_crash(&c, 1, 50);
    cluster_cancel(&c, 4000, SIGTERM, false, false);
    story_expect_part(
        &c, 50, 3999,
        "51 away node1: it closed its connection\n"
        "1051 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "3051 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "3051 user: back node1 2/2: its agent was started again\n"
        "3051 node1 <- job job\n"
        "3051 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "3051 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "3051 node1 <- launch attempt 1\n");
}

static void test_too_late(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].restart_ms = 10001;
    cluster_crash(&c, 1, 50);
    story_expect(
        &c, 50,
        "51 away node1: it closed its connection\n"
        "1051 user: away node1 1/2: its connection is gone; waiting up to "
        "10 s for it\n"
        "10051 lost node1: it was away for 10 s\n"
        "10051 user: left node1 1/2: it was away for 10 s\n"
        "10051 running -> draining: node node1 (host) was lost while "
        "running: it was away for 10 s\n"
        "10051 user: stopping: node node1 (host) was lost while running: "
        "it was away for 10 s\n"
        "10051 all <- stop signal 15 grace 30000\n"
        "10052 node1 <- refuse 8\n"
        "10052 refused 10.9.0.1: node node1 came when the job had ended\n"
        "10058 user: exited node0 1/4\n"
        "10058 user: exited node0 2/4\n"
        "10059 draining -> done: exit code 75, node node1 (host) was lost "
        "while running: it was away for 10 s\n"
        "10059 user: end 75 node_lost: node node1 (host) was lost while "
        "running: it was away for 10 s\n"
        "10059 user:   unclean node1: lost; what ran there was not seen to "
        "end\n"
        "10059 user:   rank 0 code 0 signal 15\n"
        "10059 user:   rank 1 code 0 signal 15\n"
        "10059 user:   stopped 2: 0-1\n"
        "10059 all <- finish, logs stay\n"
        "10061 done -> over: every node has left\n"
        "10061 finish 75\n");
}

/* The stop began while it was away: it gets what is left of the grace. */
static void test_stop_while_away(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].restart_ms = 500;
    cluster_crash(&c, 1, 50);
    cluster_cancel(&c, 100, SIGTERM, false, false);
    story_expect(
        &c, 50,
        "51 away node1: it closed its connection\n"
        "100 running -> draining: canceled by signal 15 (SIGTERM)\n"
        "100 user: stopping: canceled by signal 15 (SIGTERM)\n"
        "100 all <- stop signal 15 grace 30000\n"
        "107 user: exited node0 1/4\n"
        "107 user: exited node0 2/4\n"
        "551 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "551 user: back node1 2/2: its agent was started again\n"
        "551 node1 <- job job\n"
        "551 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "551 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "551 node1 <- launch attempt 1\n"
        "551 node1 <- stop signal 15 grace 29549\n"
        "558 user: exited node1 3/4\n"
        "558 user: exited node1 4/4\n"
        "559 draining -> done: exit code 143, canceled by signal 15 "
        "(SIGTERM)\n"
        "559 user: end 143 canceled: canceled by signal 15 (SIGTERM)\n"
        "559 user:   rank 0 code 0 signal 15\n"
        "559 user:   rank 1 code 0 signal 15\n"
        "559 user:   rank 2 code 0 signal 15\n"
        "559 user:   rank 3 code 0 signal 15\n"
        "559 user:   stopped 4: 0-3\n"
        "559 all <- finish, logs stay\n"
        "561 done -> over: every node has left\n"
        "561 finish 143\n");
}

/* The front end and all agents die together. Nobody can tell whether their
 * keepers live, and then the ranks do: who comes within 10 s hears the stop,
 * and need not wait for the orphan time-out. Then the coordinator ends, too. */
static void test_all_die_but_keepers(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[0].restart_ms = 20000;
    c.nodes[1].restart_ms = 500;
    cluster_crash(&c, 0, 50);
    cluster_crash(&c, 1, 50);
    cluster_operator_leaves(&c, 50);
    story_expect(
        &c, 50,
        "50 the front end is gone; stopping the job\n"
        "50 running -> draining: canceled by signal 15 (SIGTERM)\n"
        "50 all <- stop signal 15 grace 30000\n"
        "51 away node0: it closed its connection\n"
        "51 away node1: it closed its connection\n"
        "551 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "551 node1 <- job job\n"
        "551 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "551 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "551 node1 <- launch attempt 1\n"
        "551 node1 <- stop signal 15 grace 29499\n"
        "10051 lost node0: it was away for 10 s\n"
        "10051 draining -> done: exit code 143, canceled by signal 15 "
        "(SIGTERM)\n"
        "10051 all <- finish, logs stay\n"
        "10053 done -> over: every node has left\n"
        "10053 finish 143\n");
}

/* It dies while it stops, and its successor goes on with the stop. */
static void test_crash_draining(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.nodes[1].stop_ms = 100;
    cluster_cancel(&c, 50, SIGINT, false, false);
    cluster_crash(&c, 1, 80);
    story_expect(
        &c, 50,
        "50 running -> draining: canceled by signal 2 (SIGINT)\n"
        "50 user: stopping: canceled by signal 2 (SIGINT)\n"
        "50 all <- stop signal 2 grace 30000\n"
        "57 user: exited node0 1/4\n"
        "57 user: exited node0 2/4\n"
        "81 away node1: it closed its connection\n"
        "101 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "101 user: back node1 2/2: its agent was started again\n"
        "101 node1 <- job job\n"
        "101 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "101 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "101 node1 <- launch attempt 1\n"
        "101 node1 <- stop signal 2 grace 29949\n"
        "152 user: exited node1 3/4\n"
        "152 user: exited node1 4/4\n"
        "153 draining -> done: exit code 130, canceled by signal 2 (SIGINT)\n"
        "153 user: end 130 canceled: canceled by signal 2 (SIGINT)\n"
        "153 user:   rank 0 code 0 signal 2\n"
        "153 user:   rank 1 code 0 signal 2\n"
        "153 user:   rank 2 code 0 signal 2\n"
        "153 user:   rank 3 code 0 signal 2\n"
        "153 user:   stopped 4: 0-3\n"
        "153 all <- finish, logs stay\n"
        "155 done -> over: every node has left\n"
        "155 finish 130\n");
}

/* An agent whose connection is still there has died all the same when its
 * successor says Hello. */
static uint64_t slow_cut_ms(struct cluster *c)
{
    return c->now_ms == 50 ? 200 : 1;
}

static void test_replaced(void **state)
{
    (void)state;
    struct cluster c;
    story_init(&c);
    story_run_for_ever();
    c.delay_ms = slow_cut_ms;
    cluster_crash(&c, 1, 50);
    story_expect_part(
        &c, 50, 300,
        "71 away node1: its next agent is here\n"
        "71 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "71 user: back node1 2/2: its agent was started again\n"
        "71 node1 <- job job\n"
        "71 node1 <- assign node 1/2, ranks 2+2 of 4, host 1/2 with 4\n"
        "71 node1 <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 2\n"
        "71 node1 <- launch attempt 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_lost_welcome),
        cmocka_unit_test(test_lost_welcome_running),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_failure_while_away),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_stop_while_away),
        cmocka_unit_test(test_all_die_but_keepers),
        cmocka_unit_test(test_crash_draining),
        cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
