/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of a gathering that knows no names: whoever has a key and asks
 * first gets a place. The form of the lines is that of test_stories_gather.c.
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

static void rename_node(struct fake_node *node, const char *name)
{
    free(wire_text(node->name));
    node->name = strdup(name);
}

/* Two places, no self-test. */
static void init(struct cluster *c, const char *first, const char *second)
{
    cluster_init(c, "node", 2, 1);
    c->job.n_node_names = 0;
    c->self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    rename_node(&c->nodes[0], first);
    rename_node(&c->nodes[1], second);
}

/* The order is that of the names, not of the arrival; who comes when all
 * places are taken is told so, and the job goes on. */
static void test_any_name(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, "gpu10", "gpu9");
    c.nodes[1].dial_ms = 10;
    struct fake_node *surplus = cluster_add(&c, 0);
    rename_node(surplus, "gpu1");
    surplus->dial_ms = 20;
    story_expect(
        &c, 0,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined gpu10 1/2\n"
        "1 joined gpu10 from 10.9.0.0\n"
        "11 user: joined gpu9 2/2\n"
        "11 joined gpu9 from 10.9.0.1\n"
        "11 gathering -> assigning: every node is here\n"
        "11 all <- job job\n"
        "11 gpu9 <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "11 gpu10 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "11 user: assigned 2/2\n"
        "14 all <- roster 1/1: 127.0.0.[1,1] ports 20000 ranks 1\n"
        "14 assigning -> running: every node is ready\n"
        "14 all <- launch attempt 1\n"
        "14 user: launched 2/2\n"
        "21 gpu1 <- refuse 10\n"
        "21 refused 10.9.0.2: node gpu1 from 10.9.0.2 is one too many: job job "
        "has its 2 nodes already\n"
        "21 user: refused: node gpu1 from 10.9.0.2 is one too many: job job "
        "has its 2 nodes already\n"
        "116 user: exited gpu9 1/2\n"
        "116 user: exited gpu10 2/2\n"
        "116 running -> draining: every rank ended with 0\n"
        "117 draining -> done: exit code 0, every rank ended with 0\n"
        "117 user: end 0 success: every rank ended with 0\n"
        "117 all <- finish\n"
        "119 done -> over: every node has left\n"
        "119 finish 0\n");
}

/* Two machines of one name: the second is refused, with both addresses, and
 * takes no place from the one that is still to come. */
static void test_duplicate(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, "gpu", "gpu");
    c.nodes[1].dial_ms = 10;
    struct fake_node *third = cluster_add(&c, 0);
    rename_node(third, "gpu1");
    third->dial_ms = 20;
    story_expect_part(
        &c, 0, 22,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined gpu 1/2\n"
        "1 joined gpu from 10.9.0.0\n"
        "11 gpu <- refuse 3\n"
        "11 refused 10.9.0.1: a second node of the name gpu came from 10.9.0.1 "
        "while the first, from 10.9.0.0, is there; give each its own name\n"
        "11 user: refused: a second node of the name gpu came from 10.9.0.1 "
        "while the first, from 10.9.0.0, is there; give each its own name\n"
        "21 user: joined gpu1 2/2\n"
        "21 joined gpu1 from 10.9.0.2\n"
        "21 gathering -> assigning: every node is here\n"
        "21 all <- job job\n"
        "21 gpu <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "21 gpu1 <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "21 user: assigned 2/2\n");
}

/* A place is free again when its connection is gone, for any name. */
static void test_place_is_free_again(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, "b", "c");
    c.nodes[1].dial_ms = 400;
    struct fake_node *third = cluster_add(&c, 0);
    rename_node(third, "a");
    third->dial_ms = 500;
    cluster_kill(&c, 0, 100);
    story_expect_part(
        &c, 0, 502,
        "0 start -> gathering: job job wants nodes: 2\n"
        "1 user: joined b 1/2\n"
        "1 joined b from 10.9.0.0\n"
        "101 lost b: it closed its connection\n"
        "101 user: left b 0/2: it closed its connection\n"
        "401 user: joined c 1/2\n"
        "401 joined c from 10.9.0.1\n"
        "501 user: joined a 2/2\n"
        "501 joined a from 10.9.0.2\n"
        "501 gathering -> assigning: every node is here\n"
        "501 all <- job job\n"
        "501 a <- assign node 0/2, ranks 0+1 of 2, host 0/2 with 2\n"
        "501 c <- assign node 1/2, ranks 1+1 of 2, host 1/2 with 2\n"
        "501 user: assigned 2/2\n");
}

/* Nobody knows who is missing, but how many are. */
static void test_never_comes(void **state)
{
    (void)state;
    struct cluster c;
    init(&c, "b", "c");
    c.nodes[1].never_dials = true;
    story_expect(
        &c, 10,
        "300000 gathering: still waiting for 1 node\n"
        "300000 user: waiting 1/2: 1 node\n"
        "600000 gathering -> done: exit code 40, 1 of 2 nodes joined within "
        "10 min; missing: 1 node\n"
        "600000 user: end 40 deadline: 1 of 2 nodes joined within 10 min; "
        "missing: 1 node\n"
        "600000 all <- finish, logs stay\n"
        "600002 done -> over: every node has left\n"
        "600002 finish 40\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_name),
        cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_place_is_free_again),
        cmocka_unit_test(test_never_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
