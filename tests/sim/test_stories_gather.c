/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of the gathering: who comes, who does not, who is refused. A line is
 * the time in ms and what was decided, sent ("node0 <- ..."), or told to the
 * front end ("user: ...").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "tests/lib/story.h"

/* Four nodes of two ranks: everything goes well. */
static void test_good(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 4, 2);
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 4\n"
        "1 user: joined node0 1/4\n"
        "1 joined node0 from 10.9.0.0\n"
        "1 user: joined node1 2/4\n"
        "1 joined node1 from 10.9.0.1\n"
        "1 user: joined node2 3/4\n"
        "1 joined node2 from 10.9.0.2\n"
        "1 user: joined node3 4/4\n"
        "1 joined node3 from 10.9.0.3\n"
        "1 gathering -> assigning: every node is here\n"
        "1 all <- job job\n"
        "1 node0 <- assign node 0/4, ranks 0+2 of 8, host 0/4 with 8\n"
        "1 node1 <- assign node 1/4, ranks 2+2 of 8, host 1/4 with 8\n"
        "1 node2 <- assign node 2/4, ranks 4+2 of 8, host 2/4 with 8\n"
        "1 node3 <- assign node 3/4, ranks 6+2 of 8, host 3/4 with 8\n"
        "1 user: assigned 4/4\n"
        "4 all <- roster 1/1: 127.0.0.[1,1,1,1] ports 20000 ranks 2\n"
        "4 assigning -> listening: every node is ready\n"
        "4 user: testing by host-tcp: all-reduce over 4 nodes\n"
        "4 node0 <- probe_start node 0/4 on 127.0.0.1\n"
        "4 node1 <- probe_start node 1/4 on 127.0.0.1\n"
        "4 node2 <- probe_start node 2/4 on 127.0.0.1\n"
        "4 node3 <- probe_start node 3/4 on 127.0.0.1\n"
        "7 listening -> probing: every probe listens\n"
        "7 node0 <- probe_connect 127.0.0.1:30000\n"
        "7 node1 <- probe_connect 127.0.0.1:30000\n"
        "7 node2 <- probe_connect 127.0.0.1:30000\n"
        "7 node3 <- probe_connect 127.0.0.1:30000\n"
        "19 user: test passed 4/4 by host-tcp\n"
        "19 user:   1048576 B: 1000000 ns, algbw 1.049 busbw 1.573 GB/s\n"
        "19 probing -> running: the self-test passed\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 8/8\n"
        "121 user: exited node0 1/8\n"
        "121 user: exited node0 2/8\n"
        "121 user: exited node1 3/8\n"
        "121 user: exited node1 4/8\n"
        "121 user: exited node2 5/8\n"
        "121 user: exited node2 6/8\n"
        "121 user: exited node3 7/8\n"
        "121 user: exited node3 8/8\n"
        "121 running -> draining: every rank ended with 0\n"
        "122 draining -> done: exit code 0, every rank ended with 0\n"
        "122 user: end 0 success: every rank ended with 0\n"
        "122 all <- finish\n"
        "124 done -> over: every node has left\n"
        "124 finish 0\n");
}

static void name_nodes(struct cluster *c, const char *expression,
                       const char *first, const char *second)
{
    free(c->names);
    free(wire_text(c->nodes[0].name));
    free(wire_text(c->nodes[1].name));
    c->names = strdup(expression);
    c->nodes[0].name = strdup(first);
    c->nodes[1].name = strdup(second);
}

/* A late joiner is waited for; node9 has rank 0 before node10, whatever the
 * order of the list and of the arrival. */
static void test_late_joiner(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    name_nodes(&c, "node10,node9", "node10", "node9");
    c.nodes[1].dial_ms = 400000;
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined node10 1/2\n"
        "1 joined node10 from 10.9.0.0\n"
        "300000 gathering: still waiting for node9\n"
        "300000 user: waiting 1/2: node9\n"
        "400001 user: joined node9 2/2\n"
        "400001 joined node9 from 10.9.0.1\n"
        "400001 gathering -> assigning: every node is here\n"
        "400001 all <- job job\n"
        "400001 node9 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "400001 node10 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "400001 user: assigned 2/2\n"
        "400004 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "400004 assigning -> running: every node is ready\n"
        "400004 all <- launch attempt 1\n"
        "400004 user: launched 2/2\n"
        "400106 user: exited node9 1/2\n"
        "400106 user: exited node10 2/2\n"
        "400106 running -> draining: every rank ended with 0\n"
        "400107 draining -> done: exit code 0, every rank ended with 0\n"
        "400107 user: end 0 success: every rank ended with 0\n"
        "400107 all <- finish\n"
        "400109 done -> over: every node has left\n"
        "400109 finish 0\n");
}

/* The user's own order is kept as it is. */
static void test_given_order(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    name_nodes(&c, "node10,node9", "node10", "node9");
    c.job.names_are_ordered = true;
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined node10 1/2\n"
        "1 joined node10 from 10.9.0.0\n"
        "1 user: joined node9 2/2\n"
        "1 joined node9 from 10.9.0.1\n"
        "1 gathering -> assigning: every node is here\n"
        "1 all <- job job\n"
        "1 node10 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "1 node9 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "1 user: assigned 2/2\n"
        "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "4 assigning -> running: every node is ready\n"
        "4 all <- launch attempt 1\n"
        "4 user: launched 2/2\n"
        "106 user: exited node10 1/2\n"
        "106 user: exited node9 2/2\n"
        "106 running -> draining: every rank ended with 0\n"
        "107 draining -> done: exit code 0, every rank ended with 0\n"
        "107 user: end 0 success: every rank ended with 0\n"
        "107 all <- finish\n"
        "109 done -> over: every node has left\n"
        "109 finish 0\n");
}

/* Nodes that never come are named at half time and at the bound. */
static void test_never_comes(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 14, 1);
    for (uint32_t i = 1; i < 14; i++) {
        c.nodes[i].never_dials = true;
    }
    story_expect(&c, 0,
                 "0 start -> gathering: job job wants nodes: 14\n"
                 "1 user: joined node0 1/14\n"
                 "1 joined node0 from 10.9.0.0\n"
                 "300000 gathering: still waiting for node[1-10] and 3 more\n"
                 "300000 user: waiting 1/14: node[1-10] and 3 more\n"
                 "600000 gathering -> done: exit code 40, 1 of 14 nodes joined "
                 "within 10 min; missing: node[1-10] and 3 more\n"
                 "600000 user: end 40 deadline: 1 of 14 nodes joined within 10 "
                 "min; missing: node[1-10] and 3 more\n"
                 "600000 all <- finish, logs stay\n"
                 "600002 done -> over: every node has left\n"
                 "600002 finish 40\n");
}

/* A second node of a name is refused while the first is there; its place is
 * free again when the first has gone. */
static void test_duplicate(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].dial_ms = 100;
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    cluster_add(&c, 0)->dial_ms = 10;
    cluster_add(&c, 0)->dial_ms = 30;
    cluster_kill(&c, 0, 20);
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined node0 1/2\n"
        "1 joined node0 from 10.9.0.0\n"
        "11 node0 <- refuse 3\n"
        "11 refused 10.9.0.2: a second node of the name node0 came from "
        "10.9.0.2 while the first, from 10.9.0.0, is there; give each its own "
        "name\n"
        "11 user: refused: a second node of the name node0 came from 10.9.0.2 "
        "while the first, from 10.9.0.0, is there; give each its own name\n"
        "21 lost node0: it closed its connection\n"
        "21 user: left node0 0/2: it closed its connection\n"
        "31 user: joined node0 1/2\n"
        "31 joined node0 from 10.9.0.3\n"
        "101 user: joined node1 2/2\n"
        "101 joined node1 from 10.9.0.1\n"
        "101 gathering -> assigning: every node is here\n"
        "101 all <- job job\n"
        "101 node0 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "101 node1 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "101 user: assigned 2/2\n"
        "104 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "104 assigning -> running: every node is ready\n"
        "104 all <- launch attempt 1\n"
        "104 user: launched 2/2\n"
        "206 user: exited node0 1/2\n"
        "206 user: exited node1 2/2\n"
        "206 running -> draining: every rank ended with 0\n"
        "207 draining -> done: exit code 0, every rank ended with 0\n"
        "207 user: end 0 success: every rank ended with 0\n"
        "207 all <- finish\n"
        "209 done -> over: every node has left\n"
        "209 finish 0\n");
}

/* The same agent that dials twice keeps its place, on the new connection. */
static void test_dials_twice(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].dial_ms = 100;
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    struct fake_node *again = cluster_add(&c, 0);
    again->instance = c.nodes[0].instance;
    again->dial_ms = 10;
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined node0 1/2\n"
        "1 joined node0 from 10.9.0.0\n"
        "11 user: joined node0 1/2\n"
        "11 joined node0 from 10.9.0.2\n"
        "101 user: joined node1 2/2\n"
        "101 joined node1 from 10.9.0.1\n"
        "101 gathering -> assigning: every node is here\n"
        "101 all <- job job\n"
        "101 node0 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "101 node1 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "101 user: assigned 2/2\n"
        "104 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "104 assigning -> running: every node is ready\n"
        "104 all <- launch attempt 1\n"
        "104 user: launched 2/2\n"
        "206 user: exited node0 1/2\n"
        "206 user: exited node1 2/2\n"
        "206 running -> draining: every rank ended with 0\n"
        "207 draining -> done: exit code 0, every rank ended with 0\n"
        "207 user: end 0 success: every rank ended with 0\n"
        "207 all <- finish\n"
        "209 done -> over: every node has left\n"
        "209 finish 0\n");
}

/* Each reason to refuse has its sentence. */
static void test_refusals(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 1, 1);
    c.nodes[0].dial_ms = 50;
    struct fake_node *old = cluster_add(&c, 0);
    old->dial_ms = 10;
    old->protocol_min = 7;
    old->protocol_max = 9;
    struct fake_node *lost = cluster_add(&c, 0);
    lost->dial_ms = 20;
    lost->job_id = "other";
    struct fake_node *unknown = cluster_add(&c, 0);
    unknown->dial_ms = 30;
    free(wire_text(unknown->name));
    unknown->name = strdup("nodeX");
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 1\n"
        "11 node0 <- refuse 1\n"
        "11 refused 10.9.0.1: node node0 (gpulaunch-worker 0.1.0) speaks "
        "protocol 7 to 9, this coordinator (0.1.0) 1 to 1; install the same "
        "release on both\n"
        "11 user: refused: node node0 (gpulaunch-worker 0.1.0) speaks protocol "
        "7 to 9, this coordinator (0.1.0) 1 to 1; install the same release on "
        "both\n"
        "21 node0 <- refuse 2\n"
        "21 refused 10.9.0.2: node node0 belongs to job other and this "
        "coordinator runs job job\n"
        "21 user: refused: node node0 belongs to job other and this "
        "coordinator runs job job\n"
        "31 nodeX <- refuse 4\n"
        "31 refused 10.9.0.3: no node of the name nodeX is expected in job "
        "job\n"
        "31 user: refused: no node of the name nodeX is expected in job job\n"
        "51 user: joined node0 1/1\n"
        "51 joined node0 from 10.9.0.0\n"
        "51 gathering -> assigning: every node is here\n"
        "51 all <- job job\n"
        "51 node0 <- assign node 0/1, ranks 0+1 of 1, host 0/1 with 1\n"
        "51 user: assigned 1/1\n"
        "54 all <- roster 1/1: 127.0.0.1 ports 20000 ranks 1\n"
        "54 user: test skipped: one node has nothing to reduce with\n"
        "54 assigning -> running: every node is ready\n"
        "54 all <- launch attempt 1\n"
        "54 user: launched 1/1\n"
        "156 user: exited node0 1/1\n"
        "156 running -> draining: every rank ended with 0\n"
        "157 draining -> done: exit code 0, every rank ended with 0\n"
        "157 user: end 0 success: every rank ended with 0\n"
        "157 all <- finish\n"
        "159 done -> over: every node has left\n"
        "159 finish 0\n");
}

/* A worker that ended before it joined ends the wait at once. */
static void test_worker_gone(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].never_dials = true;
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    gone.node_name = wire_text("node1");
    gone.text = wire_text("it ended with 127: no such program");
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
    frame.node_gone = &gone;
    cluster_operate(&c, 30, &frame);
    story_expect(&c, 0,
                 "0 start -> gathering: job job wants nodes: 2\n"
                 "1 user: joined node0 1/2\n"
                 "1 joined node0 from 10.9.0.0\n"
                 "30 gathering -> done: exit code 40, node node1 did not join: "
                 "it ended with 127: no such program\n"
                 "30 user: end 40 node_gone: node node1 did not join: it ended "
                 "with 127: no such program\n"
                 "30 all <- finish, logs stay\n"
                 "32 done -> over: every node has left\n"
                 "32 finish 40\n");
}

/* ... also when its connection is seen to end after the front end said so. */
static void test_worker_gone_first(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].never_dials = true;
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    gone.node_name = wire_text("node0");
    gone.text = wire_text("it was ended by signal 9");
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
    frame.node_gone = &gone;
    cluster_operate(&c, 30, &frame);
    cluster_kill(&c, 0, 40);
    story_expect(&c, 30,
                 "41 lost node0: it closed its connection\n"
                 "41 user: left node0 0/2: it closed its connection\n"
                 "41 gathering -> done: exit code 40, node node0 did not join: "
                 "it was ended by signal 9\n"
                 "41 user: end 40 node_gone: node node0 did not join: it was "
                 "ended by signal 9\n"
                 "41 done -> over: every node has left\n"
                 "41 finish 40\n");
}

/* A connection that never says Hello is closed, and nobody minds. */
static void test_no_hello(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 1, 1);
    c.nodes[0].dial_ms = 6000;
    struct fake_node *mute = cluster_add(&c, 0);
    mute->is_mute = true;
    mute->state = FAKE_HELLO; /* dialled by hand, below */
    cluster_run(&c, 0);
    c.is_traced = true;
    cluster_start(&c);
    cluster_run(&c, 10);
    assert_non_null(cluster_connect(&c, 1));
    cluster_run(&c, 5500);
    assert_string_equal(gpul_buf_text(&c.trace),
                        "0 start -> gathering: job job wants nodes: 1\n"
                        "5000 closed 10.9.0.1: it sent no Hello within 5 s\n");
    cluster_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_late_joiner),
        cmocka_unit_test(test_given_order),
        cmocka_unit_test(test_never_comes),
        cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_dials_twice),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_worker_gone),
        cmocka_unit_test(test_worker_gone_first),
        cmocka_unit_test(test_no_hello),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
