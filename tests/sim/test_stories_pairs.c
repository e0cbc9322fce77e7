/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of pair trials, docs/check.md. The notation is that of
 * test_stories_gather.c; what must be in the trace, in this order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fakecheck.h"
#include "tests/lib/story.h"

enum { END_MS = 600000, NODES_MAX = 8 };

static void init(struct cluster *c, uint32_t nodes)
{
    static char hosts[NODES_MAX][16];
    cluster_init(c, "node", nodes, 1);
    fake_check_begin(c);
    c->self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    c->is_traced = true;
    for (uint32_t i = 0; i < nodes; i++) {
        snprintf(hosts[i], sizeof(hosts[i]), "host%u", i);
        c->nodes[i].hostname = hosts[i];
    }
}

static void expect(struct cluster *c, const char *const *parts)
{
    cluster_start(c);
    cluster_run(c, END_MS);
    cluster_settle(c);
    assert_true(c->is_finished);
    const char *at = gpul_buf_text(&c->trace);
    for (; *parts != NULL; parts++) {
        const char *found = strstr(at, *parts);
        if (found == NULL) {
            fail_msg("no \"%s\" in what is left: %s", *parts, at);
        }
        at = found + strlen(*parts);
    }
    cluster_release(c);
}

#define EXPECT(c, ...)                                                         \
    do {                                                                       \
        static const char *const parts[] = {__VA_ARGS__, NULL};                \
        expect(c, parts);                                                      \
    } while (0)

/* Two rounds of neighbours and one of others; then the self-test. */
static void test_good(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 4);
    EXPECT(&c,
           "dialling the others -> measuring pairs of nodes: every node "
           "was reached by all others\n",
           "node0 <- pair_start 127.0.0.1\n",
           "node0 <- trial 1 with 1 at 127.0.0.1:41001, dials first\n",
           "node1 <- trial 1 with 0 at 127.0.0.1:41000\n",
           "user:   round 1: node0 > node1 1.000, < 1.000 GB/s\n",
           "node1 <- trial 2 with 2 at 127.0.0.1:41002, dials first\n",
           "user: verdicts\n1544 user: findings\n1544 all <- pair_end\n",
           "measuring pairs of nodes -> listening: the pair trials are over\n",
           "user: end 0 success");
}

/* Slow with all others, and alone too. */
static void test_slow_node(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 8);
    c.nodes[5].pair_gbps = 0.01;
    EXPECT(&c, "user:   round 1: node4 > node5 0.010, < 0.010 GB/s\n",
           " alone: ", "user:   node5 slow both, round 2: ",
           "user:   fail PERF-701 node5: ", "all <- pair_end\n",
           "user: end 30 check_slow: ");
}

static double slow_path(struct cluster *c, uint32_t from, uint32_t to)
{
    (void)c;
    return (from == 2 && to == 3) ? 0.01 : 1;
}

/* One direction between two good nodes. */
static void test_slow_path(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 7);
    c.path_gbps = slow_path;
    EXPECT(&c, "user:   round 1: node2 > node3 0.010, < 1.000 GB/s\n",
           "user:   node2 - node3 slow send, round ",
           "user:   fail PERF-702 node[2-3]: ", "user: end 30 check_slow: ");
}

static double blocked_path(struct cluster *c, uint32_t from, uint32_t to)
{
    (void)c;
    return (from == 3 && to == 2) ? 0 : 1;
}

static void test_blocked_path(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 4);
    c.path_gbps = blocked_path;
    EXPECT(&c,
           "user:   round 1: node2 > node3 1.000, < 0.000 GB/s; b to a: no "
           "connection within 3 s\n",
           "user:   node2 - node3 blocked receive, round ",
           "user:   fail NET-110 node[2-3]: ", "user: end 20 check_failed: ");
}

/* One node has nobody to be measured with; nodes of one host have no network
 * between them. */
static void test_nothing_to_measure(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 1);
    EXPECT(&c, "user: notice: no pair trials: there is only one node\n",
           "user: end 0 success");
    init(&c, 2);
    c.nodes[1].hostname = c.nodes[0].hostname;
    EXPECT(&c, "user: notice: no pair trials: all nodes are on one host\n",
           "user: end 0 success");
}

/* Who does not listen, who hangs, and whose probe dies. */
static void test_no_address(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[1].pair_error = "cannot listen on 10.0.0.2: no";
    EXPECT(&c,
           "user:   fail TEST-601 node1: the probe of the pair trials on "
           "node node1 failed: cannot listen on 10.0.0.2: no\n",
           "user: end 20 check_failed: ");
}

static void test_silent(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[2].never_pairs = true;
    EXPECT(&c, "measuring pairs of nodes: still waiting for node2\n",
           "user: end 40 deadline: 2 of 3 nodes started their probe of the "
           "pair trials within 10 s; missing: node2\n");
    init(&c, 4);
    c.nodes[1].hangs_in_trial = 2;
    EXPECT(&c, "measuring pairs of nodes: still waiting for node1\n",
           "user: end 40 deadline: 3 of 4 nodes told the result of their trial "
           "within 16 s; missing: node1\n");
    init(&c, 3);
    c.nodes[0].never_ends_pairs = true;
    EXPECT(&c, "all <- pair_end\n",
           "user: end 40 deadline: 2 of 3 nodes ended their probe of the pair "
           "trials within 10 s; missing: node0\n");
}

static void test_probe_dies(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 4);
    c.nodes[3].dies_in_trial = 1;
    EXPECT(&c,
           "user:   fail TEST-601 node3: the probe of the pair trials on "
           "node node3 failed: it was ended by signal 9 (SIGKILL)\n",
           "user: end 20 check_failed: ");
}

/* A node that is lost, though it rests in this round; one whose agent has died
 * begins the generation anew, and the trials with it. */
static void test_lost(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[1].dies_at = GPUL__FRAME__BODY_TRIAL_START;
    EXPECT(&c, "away node1: ",
           "user: end 41 node_lost: node node1 (host1) was lost while "
           "measuring pairs of nodes: ");
    init(&c, 3);
    cluster_crash(&c, 2, 300);
    EXPECT(&c, "away node2: ", "measuring pairs of nodes -> restarting: ",
           "node0 <- pair_start 127.0.0.1\n", "user: verdicts\n",
           "user: end 0 success");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_slow_node),
        cmocka_unit_test(test_slow_path),
        cmocka_unit_test(test_blocked_path),
        cmocka_unit_test(test_nothing_to_measure),
        cmocka_unit_test(test_no_address),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_probe_dies),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests_name("stories of pair trials", tests, NULL,
                                       NULL);
}
