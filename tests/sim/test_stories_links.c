/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of addresses that are proved before anything runs. The notation is
 * that of test_stories_gather.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/story.h"

enum { ALL = 7 };

/* Three machines; the second network has no link until a story gives one. */
static void init_machines(struct cluster *c)
{
    static const char *const boots[] = {"b0", "b1", "b2"};
    static const char *const first[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
    static const char *const second[] = {"10.1.0.1", "10.1.0.2", "10.1.0.3"};
    cluster_init(c, "node", 3, 1);
    c->self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    for (uint32_t i = 0; i < 3; i++) {
        struct fake_node *node = &c->nodes[i];
        node->boot_id = boots[i];
        node->link_count = 1;
        node->links[0] =
            (struct fake_link){.name = "eth0", .address = first[i]};
        node->links[1] =
            (struct fake_link){.name = "eth1", .address = second[i]};
    }
}

/* Every node joined by a loopback address, as through a tunnel; the roster has
 * what they were reached by. */
static void test_chosen(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[1].links[0].name = "ens5";
    c.nodes[2].links[0].name = "ib0";
    c.nodes[0].link_rejection = "a bridge without a port to the network";
    story_expect_part(
        &c, 4, 19,
        "4 assigning -> opening its addresses: every node is ready\n"
        "4 all <- link_start, 16000 ms\n"
        "7 opening its addresses -> dialling the others: every node has told "
        "where it listens\n"
        "7 all <- link_peers 1/1: 10.0.0.[1-3]\n"
        "19 user: links 3/3\n"
        "19 user:   node0 10.0.0.1 eth0\n"
        "19 user:     not docker0 172.17.0.1 (bridge): a bridge without a "
        "port to the network\n"
        "19 user:   node1 10.0.0.2 ens5\n"
        "19 user:   node2 10.0.0.3 ib0\n"
        "19 all <- roster 1/1: 10.0.0.[1-3] ports 20000 ranks 1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
}

/* One host and one namespace: nothing to prove. But the user's own choice is
 * proved there too. */
static void test_one_host(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, "node", 2, 1);
    c.self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    story_expect_part(&c, 4, 4,
                      "4 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks "
                      "1\n"
                      "4 assigning -> running: every node is ready\n"
                      "4 all <- launch attempt 1\n"
                      "4 user: launched 2/2\n");
    cluster_init(&c, "node", 2, 1);
    c.job.interface = (char[]){"lo"};
    story_expect_part(
        &c, 4, 4,
        "4 assigning -> opening its addresses: every node is ready\n"
        "4 all <- link_start, 16000 ms\n");
    cluster_init(&c, "node", 2, 1);
    c.nodes[1].network_namespace = 4026531840;
    story_expect_part(
        &c, 4, 4,
        "4 assigning -> opening its addresses: every node is ready\n"
        "4 all <- link_start, 16000 ms\n");
}

/* A network that is cut one way, from node0 to node2: the other is taken, by
 * node0 too, since what it dials does not get through on the first. */
static void test_cut_one_way(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].link_count = 2;
        c.nodes[i].links[0].mbits = 100000;
    }
    c.nodes[2].links[0].cut_for = 1;
    story_expect_part(
        &c, 19, 19,
        "19 user: links 3/3\n"
        "19 user:   node0 10.1.0.1 eth1\n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 10.0.0.2 eth0\n"
        "19 user:     not eth1 10.1.0.2: can be used, another is better\n"
        "19 user:   node2 10.1.0.3 eth1\n"
        "19 user:     not eth0 10.0.0.3: 1 other node did not reach it\n"
        "19 all <- roster 1/1: 10.1.0.1,10.0.0.2,10.1.0.3 ports 20000 ranks "
        "1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
}

/* No other way: who does not reach whom, and whether it works back. */
static void test_no_way(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[2].links[0].cut_for = 1;
    c.nodes[1].links[0].cut_for = 4;
    c.nodes[1].links[0].kind = GPUL__LINK_FAILURE__KIND__OTHER_MACHINE;
    c.nodes[1].links[0].answered_by = 3;
    c.nodes[2].link_rejection = "a bridge without a port to the network";
#define WHY                                                                    \
    "nodes do not reach each other: node2 -> node1 (10.0.0.2, eth0): it "      \
    "reaches itself there; node1 -> node2 works. node0 -> node2 (10.0.0.3, "   \
    "eth0): timed out; node2 -> node0 works\n"
    story_expect(
        &c, 19,
        "19 user: links failed 3/3\n"
        "19 user:   node0 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.2: 1 other node did not reach it\n"
        "19 user:   node2 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.3: 1 other node did not reach it\n"
        "19 user:     not docker0 172.17.0.1 (bridge): a bridge without a "
        "port to the network\n"
        "19 dialling the others -> draining: " WHY "19 user: stopping: " WHY
        "19 all <- stop signal 15 grace 30000\n"
        "26 draining -> done: exit code 20, " WHY
        "26 user: end 20 links_failed: " WHY "26 all <- finish, logs stay\n"
        "28 done -> over: every node has left\n"
        "28 finish 20\n");
#undef WHY
}

/* Dials for which there was no time: what gives them longer. */
static void test_late(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[2].links[0].cut_for = 1;
    c.nodes[2].links[0].kind = GPUL__LINK_FAILURE__KIND__NOT_TRIED;
#define WHY                                                                    \
    "nodes do not reach each other: node0 -> node2 (10.0.0.3, eth0): not "     \
    "tried; node2 -> node0 works; the time was over: --self-test-timeout "     \
    "gives it longer\n"
    story_expect_part(
        &c, 19, 19,
        "19 user: links failed 3/3\n"
        "19 user:   node0 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node2 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.3: 1 other node did not reach it\n"
        "19 dialling the others -> draining: " WHY "19 user: stopping: " WHY
        "19 all <- stop signal 15 grace 30000\n");
#undef WHY
}

/* A node that nobody reaches, and that reaches nobody: each pair once; and of
 * two networks, which one still works. */
static void test_cut_off(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[2].links[0].cut_for = 3;
    c.nodes[0].links[0].cut_for = 4;
    c.nodes[1].link_count = 2;
    c.nodes[1].links[0].cut_for = 4;
    c.nodes[1].links[1].cut_for = 1;
    c.nodes[1].links[1].kind = GPUL__LINK_FAILURE__KIND__REFUSED;
#define WHY                                                                    \
    "nodes do not reach each other: node2 -> node0 (10.0.0.1, eth0): timed "   \
    "out; node0 -> node2 fails too. node2 -> node1 (10.0.0.2, eth0): timed "   \
    "out, but 10.1.0.2, eth1 works; node1 -> node2 fails too. node1 -> "       \
    "node2 (10.0.0.3, eth0): timed out; node2 -> node1 works\n"
    story_expect_part(
        &c, 19, 19,
        "19 user: links failed 3/3\n"
        "19 user:   node0 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.1: 1 other node did not reach it\n"
        "19 user:   node1 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.2: 1 other node did not reach it\n"
        "19 user:     not eth1 10.1.0.2: 1 other node did not reach it\n"
        "19 user:   node2 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.3: 2 other nodes did not reach it\n"
        "19 dialling the others -> draining: " WHY "19 user: stopping: " WHY
        "19 all <- stop signal 15 grace 30000\n");
#undef WHY
}

/* A node has nothing to dial. */
static void test_no_candidate(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[1].link_error = "lo 127.0.0.1: loopback";
    c.nodes[1].link_rejection = "loopback";
#define WHY                                                                    \
    "node node1 (host) has no address for the others: lo 127.0.0.1: "          \
    "loopback\n"
    story_expect(
        &c, 7,
        "7 user: links failed 3/3\n"
        "7 user:   node1 127.0.0.1 \n"
        "7 user:     not docker0 172.17.0.1 (bridge): loopback\n"
        "7 opening its addresses -> draining: " WHY "7 user: stopping: " WHY
        "7 all <- stop signal 15 grace 30000\n"
        "14 draining -> done: exit code 20, " WHY
        "14 user: end 20 links_failed: " WHY "14 all <- finish, logs stay\n"
        "16 done -> over: every node has left\n"
        "16 finish 20\n");
#undef WHY
}

/* IPv6 serves where IPv4 does not; and a mixture serves nobody. */
static void test_families(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].link_count = 2;
    }
    c.nodes[0].links[1].address = "fd00::1";
    c.nodes[1].links[1].address = "fd00::2";
    c.nodes[2].links[1].address = "fd00::3";
    c.nodes[1].links[0].cut_for = ALL;
    story_expect_part(
        &c, 19, 19,
        "19 user: links 3/3\n"
        "19 user:   node0 fd00::1 eth1\n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 fd00::2 eth1\n"
        "19 user:     not eth0 10.0.0.2: 2 other nodes did not reach it\n"
        "19 user:   node2 fd00::3 eth1\n"
        "19 user:     not eth0 10.0.0.3: can be used, another is better\n"
        "19 all <- roster 1/1: fd00::1,fd00::2,fd00::3 ports 20000 ranks 1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
    init_machines(&c);
    c.nodes[1].links[0].address = "fd00::2";
    story_expect_part(
        &c, 19, 19,
        "19 user: links failed 3/3\n"
        "19 user:   node0 127.0.0.1 \n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 127.0.0.1 \n"
        "19 dialling the others -> draining: no family of addresses serves "
        "all nodes: node0 is reached by IPv4 only, node1 by IPv6 only\n"
        "19 user: stopping: no family of addresses serves all nodes: node0 is "
        "reached by IPv4 only, node1 by IPv6 only\n"
        "19 all <- stop signal 15 grace 30000\n");
}

/* RDMA before a faster card, a faster one before the first. */
static void test_preference(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].link_count = 2;
        c.nodes[i].links[1].mbits = 100000;
    }
    c.nodes[1].links[0].is_rdma = true;
    story_expect_part(
        &c, 19, 19,
        "19 user: links 3/3\n"
        "19 user:   node0 10.1.0.1 eth1\n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 10.0.0.2 eth0\n"
        "19 user:     not eth1 10.1.0.2: can be used, another is better\n"
        "19 user:   node2 10.1.0.3 eth1\n"
        "19 user:     not eth0 10.0.0.3: can be used, another is better\n"
        "19 all <- roster 1/1: 10.1.0.1,10.0.0.2,10.1.0.3 ports 20000 ranks "
        "1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
}

/* Of two that are as good, the one by which the node has joined. */
static void test_joined(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].link_count = 2;
        c.nodes[i].address = c.nodes[i].links[1].address;
    }
    c.nodes[2].links[0].mbits = 1000;
    story_expect_part(
        &c, 19, 19,
        "19 user: links 3/3\n"
        "19 user:   node0 10.1.0.1 eth1\n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 10.1.0.2 eth1\n"
        "19 user:     not eth0 10.0.0.2: can be used, another is better\n"
        "19 user:   node2 10.0.0.3 eth0\n"
        "19 user:     not eth1 10.1.0.3: can be used, another is better\n"
        "19 all <- roster 1/1: 10.1.0.[1-2],10.0.0.3 ports 20000 ranks 1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
}

/* A tunnel by which the nodes have joined, where a card leads everywhere too;
 * the tunnel is faster, since nobody knows how fast the card is. */
static void test_tunnel(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].link_count = 2;
        c.nodes[i].links[1].name = "wg0";
        c.nodes[i].links[1].is_tunnel = true;
        c.nodes[i].links[1].mbits = 10;
        c.nodes[i].address = c.nodes[i].links[1].address;
    }
    c.nodes[2].links[0].cut_for = 1; /* node0 needs the tunnel to node2 */
    story_expect_part(
        &c, 19, 19,
        "19 user: links 3/3\n"
        "19 user:   node0 10.1.0.1 wg0\n"
        "19 user:     not eth0 10.0.0.1: can be used, another is better\n"
        "19 user:   node1 10.0.0.2 eth0\n"
        "19 user:     not wg0 10.1.0.2: can be used, another is better\n"
        "19 user:   node2 10.1.0.3 wg0\n"
        "19 user:     not eth0 10.0.0.3: 1 other node did not reach it\n"
        "19 all <- roster 1/1: 10.1.0.1,10.0.0.2,10.1.0.3 ports 20000 ranks "
        "1\n"
        "19 dialling the others -> running: every node was reached by all "
        "others\n"
        "19 all <- launch attempt 1\n"
        "19 user: launched 3/3\n");
}

/* Silent nodes are named at half of the bound, and at its end. */
static void test_deadlines(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[1].never_links = true;
    story_expect_part(
        &c, 19, 20005,
        "10004 opening its addresses: still waiting for node1\n"
        "10004 user: waiting 2/3: node1\n"
        "20004 opening its addresses -> draining: 2 of 3 nodes told where they "
        "listen within 20 s; missing: node1\n"
        "20004 user: stopping: 2 of 3 nodes told where they listen within 20 "
        "s; missing: node1\n"
        "20004 all <- stop signal 15 grace 30000\n");
    init_machines(&c);
    c.nodes[0].never_dials_links = true;
    c.nodes[2].never_dials_links = true;
    story_expect_part(
        &c, 19, 20007,
        "10007 dialling the others: still waiting for node[0,2]\n"
        "10007 user: waiting 1/3: node[0,2]\n"
        "20007 dialling the others -> draining: 1 of 3 nodes dialled the "
        "others within 20 s; missing: node[0,2]\n"
        "20007 user: stopping: 1 of 3 nodes dialled the others within 20 s; "
        "missing: node[0,2]\n"
        "20007 all <- stop signal 15 grace 30000\n");
}

/* A node whose agent dies while it dials begins the generation anew. */
static void test_crash(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    cluster_crash(&c, 1, 9);
    story_expect_part(
        &c, 19, 42,
        "30 back node1 from 10.9.0.1: agent 1 of its keeper\n"
        "30 user: back node1 3/3: its agent was started again\n"
        "30 node1 <- job job\n"
        "30 node1 <- assign node 1/3, ranks 1+1 of 3, host 0/1 with 1\n"
        "30 dialling the others -> restarting: node node1 (host) has a new "
        "agent\n"
        "30 user: retrying: node node1 (host) has a new agent\n"
        "30 all <- stop signal 15 grace 30000\n"
        "37 restarting -> assigning: every node is idle\n"
        "37 node0 <- assign node 0/3, ranks 0+1 of 3, host 0/1 with 1\n"
        "37 node1 <- assign node 1/3, ranks 1+1 of 3, host 0/1 with 1\n"
        "37 node2 <- assign node 2/3, ranks 2+1 of 3, host 0/1 with 1\n"
        "37 user: assigned 3/3\n"
        "40 assigning -> opening its addresses: every node is ready\n"
        "40 all <- link_start, 16000 ms\n");
}

/* What a node cannot know ends it. */
static void test_lie(void **state)
{
    (void)state;
    struct cluster c;
    init_machines(&c);
    c.nodes[1].links[0].cut_for = 1;
    c.nodes[0].lies_about_links = true;
    story_expect_part(
        &c, 19, 19,
        "19 lost node0: it reported on addresses that there are not\n"
        "19 user: left node0 2/3: it reported on addresses that there are "
        "not\n"
        "19 dialling the others -> draining: node node0 (host) was lost while "
        "dialling the others: it reported on addresses that there are not\n"
        "19 user: stopping: node node0 (host) was lost while dialling the "
        "others: it reported on addresses that there are not\n"
        "19 all <- stop signal 15 grace 30000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen),       cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_cut_one_way),  cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_late),         cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_no_candidate), cmocka_unit_test(test_families),
        cmocka_unit_test(test_preference),   cmocka_unit_test(test_joined),
        cmocka_unit_test(test_tunnel),       cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_crash),        cmocka_unit_test(test_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
