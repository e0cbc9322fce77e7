/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories from the assignment to the end of the self-test. The notation is that
 * of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "tests/lib/story.h"

/* One rank per GPU needs a GPU. */
static void test_no_gpu(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 0);
    c.nodes[0].gpus = 4;
    story_expect(&c, 1,
                 "1 user: joined node0 1/2\n"
                 "1 joined node0 from 10.9.0.0\n"
                 "1 user: joined node1 2/2\n"
                 "1 joined node1 from 10.9.0.1\n"
                 "1 gathering -> done: exit code 20, node node1 (host) has no "
                 "GPU and one rank per GPU was asked for; leave the node out, "
                 "or give --per-node a number\n"
                 "1 user: end 20 self_test_failed: node node1 (host) has no "
                 "GPU and one rank per GPU was asked for; leave the node out, "
                 "or give --per-node a number\n"
                 "1 all <- finish, logs stay\n"
                 "3 done -> over: every node has left\n"
                 "3 finish 20\n");
}

/* One rank per GPU, as many as each node has. */
static void test_uneven_gpus(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 0);
    c.nodes[0].gpus = 1;
    c.nodes[1].gpus = 2;
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    story_expect(&c, 1,
                 "1 user: joined node0 1/2\n"
                 "1 joined node0 from 10.9.0.0\n"
                 "1 user: joined node1 2/2\n"
                 "1 joined node1 from 10.9.0.1\n"
                 "1 gathering -> assigning: every node is here\n"
                 "1 all <- job job\n"
                 "1 node0 <- assign node 0/2, ranks 0+1 of 3, host 0/2 with 3\n"
                 "1 node1 <- assign node 1/2, ranks 1+2 of 3, host 1/2 with 3\n"
                 "1 user: assigned 2/2\n"
                 "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
                 "4 assigning -> running: every node is ready\n"
                 "4 all <- launch attempt 1\n"
                 "4 user: launched 3/3\n"
                 "106 user: exited node0 1/3\n"
                 "106 user: exited node1 2/3\n"
                 "106 user: exited node1 3/3\n"
                 "106 running -> draining: every rank ended with 0\n"
                 "107 draining -> done: exit code 0, every rank ended with 0\n"
                 "107 user: end 0 success: every rank ended with 0\n"
                 "107 all <- finish\n"
                 "109 done -> over: every node has left\n"
                 "109 finish 0\n");
}

/* Roles that do not add up are found when the ranks are counted. */
static void test_roles_mismatch(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    Gpul__Role role = GPUL__ROLE__INIT;
    Gpul__Role *roles = &role;
    role.name = wire_text("worker");
    role.count = 3;
    c.job.roles = &roles;
    c.job.n_roles = 1;
    story_expect(&c, 1,
                 "1 user: joined node0 1/2\n"
                 "1 joined node0 from 10.9.0.0\n"
                 "1 user: joined node1 2/2\n"
                 "1 joined node1 from 10.9.0.1\n"
                 "1 gathering -> done: exit code 125, the roles are for 3 "
                 "ranks and the nodes have 2; make --roles add up to 2\n"
                 "1 user: end 125 usage: the roles are for 3 ranks and the "
                 "nodes have 2; make --roles add up to 2\n"
                 "1 all <- finish, logs stay\n"
                 "3 done -> over: every node has left\n"
                 "3 finish 125\n");
}

/* A list of names that does not fit the job is answered, not crashed on. */
static void test_bad_names(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.job.node_count = 3;
    story_expect(
        &c, 0,
        "0 start -> done: exit code 125, 2 node names were given for 3 nodes\n"
        "0 user: end 125 usage: 2 node names were given for 3 nodes\n"
        "0 done -> over: every node has left\n"
        "0 finish 125\n");
}

/* A node that cannot take its place says why. */
static void test_ready_error(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].ready_error = "no 4 free ports in a row";
    story_expect(&c, 3,
                 "4 assigning -> draining: node node1 (host) cannot take its "
                 "place: no 4 free ports in a row\n"
                 "4 user: stopping: node node1 (host) cannot take its place: "
                 "no 4 free ports in a row\n"
                 "4 all <- stop signal 15 grace 30000\n"
                 "11 draining -> done: exit code 20, node node1 (host) cannot "
                 "take its place: no 4 free ports in a row\n"
                 "11 user: end 20 self_test_failed: node node1 (host) cannot "
                 "take its place: no 4 free ports in a row\n"
                 "11 all <- finish, logs stay\n"
                 "13 done -> over: every node has left\n"
                 "13 finish 20\n");
}

/* Each phase before the launch has a bound and names who missed it. */
static void test_ready_deadline(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].never_ready = true;
    story_expect(&c, 3,
                 "15001 assigning: still waiting for node1\n"
                 "15001 user: waiting 1/2: node1\n"
                 "30001 assigning -> draining: 1 of 2 nodes took their places "
                 "within 30 s; missing: node1\n"
                 "30001 user: stopping: 1 of 2 nodes took their places within "
                 "30 s; missing: node1\n"
                 "30001 all <- stop signal 15 grace 30000\n"
                 "30008 draining -> done: exit code 40, 1 of 2 nodes took "
                 "their places within 30 s; missing: node1\n"
                 "30008 user: end 40 deadline: 1 of 2 nodes took their places "
                 "within 30 s; missing: node1\n"
                 "30008 all <- finish, logs stay\n"
                 "30010 done -> over: every node has left\n"
                 "30010 finish 40\n");
}

static void test_listen_deadline(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[0].never_listens = true;
    story_expect(&c, 10,
                 "10004 listening: still waiting for node0\n"
                 "10004 user: waiting 1/2: node0\n"
                 "20004 listening -> draining: 1 of 2 nodes started their "
                 "probe of the self-test within 20 s; missing: node0\n"
                 "20004 user: stopping: 1 of 2 nodes started their probe of "
                 "the self-test within 20 s; missing: node0\n"
                 "20004 all <- stop signal 15 grace 30000\n"
                 "20011 draining -> done: exit code 40, 1 of 2 nodes started "
                 "their probe of the self-test within 20 s; missing: node0\n"
                 "20011 user: end 40 deadline: 1 of 2 nodes started their "
                 "probe of the self-test within 20 s; missing: node0\n"
                 "20011 all <- finish, logs stay\n"
                 "20013 done -> over: every node has left\n"
                 "20013 finish 40\n");
}

static void test_run_deadline(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[0].never_results = true;
    c.nodes[1].never_results = true;
    story_expect(
        &c, 10,
        "30007 probing: still waiting for node[0-1]\n"
        "30007 user: waiting 0/2: node[0-1]\n"
        "60007 probing -> draining: 0 of 2 nodes finished the all-reduce of "
        "the self-test within 1 min; missing: node[0-1]\n"
        "60007 user: stopping: 0 of 2 nodes finished the all-reduce of the "
        "self-test within 1 min; missing: node[0-1]\n"
        "60007 all <- stop signal 15 grace 30000\n"
        "60014 draining -> done: exit code 40, 0 of 2 nodes finished the "
        "all-reduce of the self-test within 1 min; missing: node[0-1]\n"
        "60014 user: end 40 deadline: 0 of 2 nodes finished the all-reduce of "
        "the self-test within 1 min; missing: node[0-1]\n"
        "60014 all <- finish, logs stay\n"
        "60016 done -> over: every node has left\n"
        "60016 finish 40\n");
}

/* Wrong data names the node, the element and the message. */
static void test_wrong_data(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].wrong_elements = 3;
    story_expect(
        &c, 10,
        "19 probing -> draining: self-test: wrong data on node node1: element "
        "4711 of an all-reduce of 1048576 bytes has the wrong sum (3 wrong "
        "elements in all); do not train on this node before its memory and "
        "network have been checked\n"
        "19 user: stopping: self-test: wrong data on node node1: element 4711 "
        "of an all-reduce of 1048576 bytes has the wrong sum (3 wrong elements "
        "in all); do not train on this node before its memory and network have "
        "been checked\n"
        "19 all <- stop signal 15 grace 30000\n"
        "26 draining -> done: exit code 21, self-test: wrong data on node "
        "node1: element 4711 of an all-reduce of 1048576 bytes has the wrong "
        "sum (3 wrong elements in all); do not train on this node before its "
        "memory and network have been checked\n"
        "26 user: end 21 self_test_wrong_data: self-test: wrong data on node "
        "node1: element 4711 of an all-reduce of 1048576 bytes has the wrong "
        "sum (3 wrong elements in all); do not train on this node before its "
        "memory and network have been checked\n"
        "26 all <- finish, logs stay\n"
        "28 done -> over: every node has left\n"
        "28 finish 21\n");
}

/* A probe that fails gives its node and its words. */
static void test_probe_error(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[0].probe_error = "cannot connect to 10.0.0.2:30000: timed out";
    story_expect(
        &c, 10,
        "19 probing -> draining: self-test: node node0 failed in the "
        "all-reduce: "
        "cannot connect to 10.0.0.2:30000: timed out\n"
        "19 user: stopping: self-test: node node0 failed in the all-reduce: "
        "cannot "
        "connect to 10.0.0.2:30000: timed out\n"
        "19 all <- stop signal 15 grace 30000\n"
        "26 draining -> done: exit code 20, self-test: node node0 failed in "
        "the all-reduce: cannot connect to 10.0.0.2:30000: timed out\n"
        "26 user: end 20 self_test_failed: self-test: node node0 failed in the "
        "all-reduce: cannot connect to 10.0.0.2:30000: timed out\n"
        "26 all <- finish, logs stay\n"
        "28 done -> over: every node has left\n"
        "28 finish 20\n");
}

/* The slowest node makes the table. */
static void test_slowest_counts(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 3, 1);
    c.nodes[1].probe_ns = 4000000;
    story_expect(
        &c, 19,
        "19 user: test passed 3/3 by host-tcp\n"
        "19 user:   1048576 B: 4000000 ns, algbw 0.262 busbw 0.350 GB/s\n"
        "19 probing -> running: the self-test passed\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n"
        "121 user: exited node0 1/3\n"
        "121 user: exited node1 2/3\n"
        "121 user: exited node2 3/3\n"
        "121 running -> draining: every rank ended with 0\n"
        "122 draining -> done: exit code 0, every rank ended with 0\n"
        "122 user: end 0 success: every rank ended with 0\n"
        "122 all <- finish\n"
        "124 done -> over: every node has left\n"
        "124 finish 0\n");
}

/* One node has nothing to reduce with: the self-test is skipped, and said to
 * be. */
static void test_one_node(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 1, 2);
    story_expect(&c, 3,
                 "4 all <- roster 1/1: 127.0.0.1 ports 20000 ranks 2\n"
                 "4 user: test skipped: one node has nothing to reduce with\n"
                 "4 assigning -> running: every node is ready\n"
                 "4 all <- launch attempt 1\n"
                 "4 user: launched 2/2\n"
                 "106 user: exited node0 1/2\n"
                 "106 user: exited node0 2/2\n"
                 "106 running -> draining: every rank ended with 0\n"
                 "107 draining -> done: exit code 0, every rank ended with 0\n"
                 "107 user: end 0 success: every rank ended with 0\n"
                 "107 all <- finish\n"
                 "109 done -> over: every node has left\n"
                 "109 finish 0\n");
}

/* A node lost in any phase before the launch ends the job with 41. */
static void lose_at(unsigned body_case, uint64_t from_ms, const char *expected)
{
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].dies_at = body_case;
    story_expect(&c, from_ms, expected);
}

static void test_lost_assigning(void **state)
{
    (void)state;
    lose_at(GPUL__FRAME__BODY_ASSIGN, 2,
            "3 away node1: it closed its connection\n"
            "1003 user: away node1 1/2: its connection is gone; waiting up to "
            "10 s for it\n"
            "10003 lost node1: it was away for 10 s\n"
            "10003 user: left node1 1/2: it was away for 10 s\n"
            "10003 assigning -> draining: node node1 (host) was lost while "
            "assigning: it was away for 10 s\n"
            "10003 user: stopping: node node1 (host) was lost while assigning: "
            "it was away for 10 s\n"
            "10003 all <- stop signal 15 grace 30000\n"
            "10010 draining -> done: exit code 41, node node1 (host) was lost "
            "while assigning: it was away for 10 s\n"
            "10010 user: end 41 node_lost: node node1 (host) was lost while "
            "assigning: it was away for 10 s\n"
            "10010 all <- finish, logs stay\n"
            "10012 done -> over: every node has left\n"
            "10012 finish 41\n");
}

static void test_lost_listening(void **state)
{
    (void)state;
    lose_at(GPUL__FRAME__BODY_PROBE_START, 5,
            "6 away node1: it closed its connection\n"
            "1006 user: away node1 1/2: its connection is gone; waiting up to "
            "10 s for it\n"
            "10004 listening: still waiting for node1\n"
            "10004 user: waiting 1/2: node1\n"
            "10006 lost node1: it was away for 10 s\n"
            "10006 user: left node1 1/2: it was away for 10 s\n"
            "10006 listening -> draining: node node1 (host) was lost while "
            "listening: it was away for 10 s\n"
            "10006 user: stopping: node node1 (host) was lost while listening: "
            "it was away for 10 s\n"
            "10006 all <- stop signal 15 grace 30000\n"
            "10013 draining -> done: exit code 41, node node1 (host) was lost "
            "while listening: it was away for 10 s\n"
            "10013 user: end 41 node_lost: node node1 (host) was lost while "
            "listening: it was away for 10 s\n"
            "10013 all <- finish, logs stay\n"
            "10015 done -> over: every node has left\n"
            "10015 finish 41\n");
}

static void test_lost_probing(void **state)
{
    (void)state;
    lose_at(GPUL__FRAME__BODY_PROBE_CONNECT, 8,
            "9 away node1: it closed its connection\n"
            "1009 user: away node1 1/2: its connection is gone; waiting up to "
            "10 s for it\n"
            "10009 lost node1: it was away for 10 s\n"
            "10009 user: left node1 1/2: it was away for 10 s\n"
            "10009 probing -> draining: node node1 (host) was lost while "
            "probing: it was away for 10 s\n"
            "10009 user: stopping: node node1 (host) was lost while probing: "
            "it was away for 10 s\n"
            "10009 all <- stop signal 15 grace 30000\n"
            "10016 draining -> done: exit code 41, node node1 (host) was lost "
            "while probing: it was away for 10 s\n"
            "10016 user: end 41 node_lost: node node1 (host) was lost while "
            "probing: it was away for 10 s\n"
            "10016 all <- finish, logs stay\n"
            "10018 done -> over: every node has left\n"
            "10018 finish 41\n");
}

/* A node that falls silent is lost after its lease, not before. */
static void test_silent(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].dies_at = GPUL__FRAME__BODY_PROBE_CONNECT;
    c.nodes[1].dies_silently = true;
    story_expect(
        &c, 20,
        "15007 lost node1: nothing was heard from it for 15 s\n"
        "15007 user: left node1 1/2: nothing was heard from it for 15 s\n"
        "15007 probing -> draining: node node1 (host) was lost while probing: "
        "nothing was heard from it for 15 s\n"
        "15007 user: stopping: node node1 (host) was lost while probing: "
        "nothing was heard from it for 15 s\n"
        "15007 all <- stop signal 15 grace 30000\n"
        "15014 draining -> done: exit code 41, node node1 (host) was lost "
        "while probing: nothing was heard from it for 15 s\n"
        "15014 user: end 41 node_lost: node node1 (host) was lost while "
        "probing: nothing was heard from it for 15 s\n"
        "15014 all <- finish, logs stay\n"
        "15016 done -> over: every node has left\n"
        "15016 finish 41\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_uneven_gpus),
        cmocka_unit_test(test_roles_mismatch),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_ready_error),
        cmocka_unit_test(test_ready_deadline),
        cmocka_unit_test(test_listen_deadline),
        cmocka_unit_test(test_run_deadline),
        cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_probe_error),
        cmocka_unit_test(test_slowest_counts),
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_lost_assigning),
        cmocka_unit_test(test_lost_listening),
        cmocka_unit_test(test_lost_probing),
        cmocka_unit_test(test_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
