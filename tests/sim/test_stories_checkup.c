/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of checks, docs/check.md. What must be in the trace, in this order;
 * how many checks there are is no part of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fakecheck.h"
#include "tests/lib/story.h"

enum { END_MS = 600000 };

static void init(struct cluster *c, uint32_t nodes)
{
    cluster_init(c, "node", nodes, 1);
    fake_check_begin(c);
    c->self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    c->is_traced = true;
    for (uint32_t i = 0; i < nodes; i++) {
        c->nodes[i].survey_ms = 50;
    }
}

static void init_tested(struct cluster *c, uint32_t nodes)
{
    init(c, nodes);
    c->self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
}

/* Run the check; the trace holds these parts, the last one NULL. */
static void expect(struct cluster *c, const char *const *parts)
{
    cluster_run(c, END_MS);
    cluster_settle(c);
    assert_true(c->is_finished);
    const char *at = gpul_buf_text(&c->trace);
    assert_null(strstr(at, "launch"));
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
        cluster_start(c);                                                      \
        expect(c, parts);                                                      \
    } while (0)

/* Nothing is launched; every node is told to stop, and says that it is idle. */
static void test_good(void **state)
{
    (void)state;
    struct cluster c;
    init_tested(&c, 4);
    EXPECT(&c,
           "4 assigning -> asking the nodes for their facts: every node is "
           "ready\n"
           "4 user: surveying\n"
           "4 all <- survey_start, 56000 ms\n"
           "56 user: facts node0\n",
           "56 user: facts node3\n", "56 user:   pass CLOCK-541: ",
           "56 asking the nodes for their facts -> listening: every node has "
           "told its facts\n",
           "71 user: test passed 4/4 by host-tcp\n",
           "71 probing -> draining: the check passed: ",
           "71 all <- stop signal 15 grace 30000\n",
           "78 user: end 0 success: the check passed: ", "finish 0\n");
}

/* Without a self-test the check ends behind the facts. */
static void test_untested(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 2);
    EXPECT(&c, "asking the nodes for their facts -> draining: the check passed",
           "user: end 0 success");
}

/* A node whose survey never comes is named; what the others told is there. */
static void test_no_survey(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[1].never_surveys = true;
    EXPECT(&c, "56 user: facts node0\n56 user: facts node2\n",
           "user: waiting 2/3: node1\n",
           "60004 asking the nodes for their facts -> draining: 2 of 3 nodes "
           "told their facts within 1 min; missing: node1\n",
           "user:   fail INIT-901: 2 of 3 nodes told their facts within 1 min; "
           "missing: node1\n",
           "user: end 40 deadline: 2 of 3 nodes told");
}

/* The clock is a part of it. */
static void test_no_pong(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 2);
    c.nodes[0].never_pongs = true;
    EXPECT(&c, "user: facts node0\n",
           "user: end 40 deadline: ", "missing: node0");
}

/* A node that is lost ends the check early: what is known is told. */
static void test_lost(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[2].dies_at = GPUL__FRAME__BODY_SURVEY_START;
    EXPECT(&c, "user: facts node0\n",
           "user:   fail INIT-902 node2: node node2 (host) was lost while "
           "asking the nodes for their facts: ",
           "user: end 41 node_lost: ");
}

/* A clock that is away is a warning; --strict makes it a failure. */
static void test_clock(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 3);
    c.nodes[1].clock_ahead_ms = 2500;
    EXPECT(&c,
           "user:   warn CLOCK-541 node1: its clock is 2.5 s ahead of those of "
           "the other nodes\n",
           "user: end 0 success: ");
    init(&c, 3);
    c.check.is_strict = true;
    c.nodes[1].clock_ahead_ms = 2500;
    EXPECT(&c, "user:   warn CLOCK-541 node1: ",
           "user: end 20 check_failed: the check failed: ");
}

/* Wrong data is found behind a warning, and decides. */
static void test_wrong_data(void **state)
{
    (void)state;
    struct cluster c;
    init_tested(&c, 3);
    c.nodes[1].clock_ahead_ms = 2500;
    c.nodes[2].wrong_elements = 3;
    EXPECT(&c, "user:   warn CLOCK-541 node1: ",
           "user:   fail DATA-801 node2: self-test: wrong data on node node2: "
           "element ",
           "user: end 21 check_wrong_data: the check failed: ",
           "DATA-801 node2: ");
}

/* Below what was asked for, and who asks for what nobody can tell. */
static void test_slow(void **state)
{
    (void)state;
    struct cluster c;
    init_tested(&c, 3);
    c.sweep.busbw_min_gbps = 1000;
    EXPECT(&c, "user:   fail PERF-705: all-reduce of 1 MiB over 3 ranks: ",
           "user: test slow 3/3", "user: end 30 check_slow: ");
}

/* Addresses that do not reach each other: the pair, and no self-test. */
static void test_unlinked(void **state)
{
    (void)state;
    static const char *const addresses[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
    struct cluster c;
    init_tested(&c, 3);
    for (uint32_t i = 0; i < 3; i++) {
        c.nodes[i].network_namespace = 100 + i;
        c.nodes[i].link_count = 1;
        c.nodes[i].links[0] =
            (struct fake_link){.name = "eth0", .address = addresses[i]};
    }
    c.nodes[2].links[0].cut_for = 1;
    c.nodes[2].links[0].kind = GPUL__LINK_FAILURE__KIND__TIMED_OUT;
    EXPECT(&c, "user: links failed 3/3\n",
           "user:   fail NET-110 node[0,2]: node0 -> node2 (10.0.0.3, eth0): "
           "timed out; node2 -> node0 works\n",
           "user:   unknown TEST-601: the self-test was not run: ",
           "user: end 20 check_failed: ");
}

/* A node that has a new agent is asked again, and nothing is told twice. */
static void test_anew(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 2);
    c.nodes[0].survey_ms = 3000;
    cluster_crash(&c, 1, 500);
    EXPECT(&c, "user: back node1", "-> restarting: ", "user: facts node1\n",
           "user: end 0 success: ");
}

/* The user wants out. */
static void test_canceled(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, 2);
    c.nodes[1].survey_ms = 5000;
    cluster_cancel(&c, 100, 2, false, false);
    EXPECT(&c, "user: facts node0\n", "user: end 130 canceled: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_untested),
        cmocka_unit_test(test_no_survey),  cmocka_unit_test(test_no_pong),
        cmocka_unit_test(test_lost),       cmocka_unit_test(test_clock),
        cmocka_unit_test(test_wrong_data), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_unlinked),   cmocka_unit_test(test_anew),
        cmocka_unit_test(test_canceled),
    };
    return cmocka_run_group_tests_name("stories of checks", tests, NULL, NULL);
}
