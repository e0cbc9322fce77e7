/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by pairs as a story: every round with its figures, then what is
 * said of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/pairsearch_words.h"
#include "pairnet.h"

enum { STORY_BYTES_MAX = 1 << 16 };

static struct pairnet net;
static struct gpul_buf story;

static int setup(void **state)
{
    (void)state;
    gpul_buf_init(&story, STORY_BYTES_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pairnet_end(&net);
    gpul_buf_release(&story);
    return 0;
}

static void begin(uint32_t nodes)
{
    pairnet_end(&net);
    pairnet_init(&net, nodes, 1);
    gpul_buf_clear(&story);
    net.story = &story;
}

static const char *letter(const void *arg, uint32_t node)
{
    static const char *const letters[] = {"a", "b", "c", "d", "e",
                                          "f", "g", "h", "i", "j"};
    (void)arg;
    return letters[node];
}

static const struct pairsearch_names names = {.name = letter};

static void tell(const struct text *text)
{
    assert_int_equal(gpul_buf_appendf(&story, "\n%s", text->bytes), 0);
}

/* The rounds, one line for all, one for each that is not good. */
static void expect_story(const char *expected)
{
    const struct pairsearch_result *r = &net.result;
    struct text text;
    pairnet_run(&net);
    pairsearch_summarize(&text, r);
    tell(&text);
    for (uint32_t i = 0; i < r->node_count; i++) {
        if (r->nodes[i].state != PAIRSEARCH_NODE_OK) {
            pairsearch_describe_node(&text, r, i, &names);
            tell(&text);
        }
    }
    for (uint32_t i = 0; i < r->path_count; i++) {
        pairsearch_describe_path(&text, r, i, &names);
        tell(&text);
    }
    for (uint32_t i = 0; i < r->group_count; i++) {
        pairsearch_describe_group(&text, r, i, &names);
        tell(&text);
    }
    /* cmocka cuts what it prints of long strings. */
    if (strcmp(gpul_buf_text(&story), expected) != 0) {
        fprintf(stderr, "<<%s>>\n", gpul_buf_text(&story));
        fail();
    }
}

/* Neighbours tell it, a good node elsewhere and silence confirm it. */
static void test_eight_nodes(void **state)
{
    (void)state;
    begin(8);
    pairnet_slow(&net, 2, PAIRSEARCH_BOTH_WAYS, 0.2);
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 2.0 2.0  4-5 10.0 10.0  6-7 10.0 "
        "10.0\n"
        "2 neighbours:  1-2 2.0 2.0  3-4 10.0 10.0  5-6 10.0 10.0  7-0 10.0 "
        "10.0\n"
        "3 cross:  2-6 2.0 2.0  0-4 10.0 10.0  1-5 10.0 10.0  3-7 10.0 10.0\n"
        "4 alone:  2-6 2.0 2.0\n"
        "8 nodes in 4 rounds: 1 node is slow; named within 2 rounds\n"
        "node c is slow: 2.00 GB/s to node g, 2.00 GB/s from node g, 2.00 GB/s "
        "to node b, 2.00 GB/s from node b; healthy pairs have 10.00 GB/s (20 "
        "%); alone too; named in round 2");
}

/* The last of an odd ring has had one neighbour only after two rounds; the
 * third is with a good node elsewhere. */
static void test_seven_nodes(void **state)
{
    (void)state;
    begin(7);
    pairnet_slow(&net, 6, PAIRSEARCH_SENDS, 0.2);
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 10.0 10.0  4-5 10.0 10.0\n"
        "2 neighbours:  1-2 10.0 10.0  3-4 10.0 10.0  5-6 10.0 2.0\n"
        "3 cross:  6-2 2.0 10.0  0-3 10.0 10.0  1-4 10.0 10.0\n"
        "4 alone:  6-2 2.0 10.0\n"
        "7 nodes in 4 rounds: 1 node is slow; named within 3 rounds\n"
        "node g is slow in sending: 2.00 GB/s to node c, 2.00 GB/s to node f; "
        "healthy pairs have 10.00 GB/s (20 %); alone too; named in round 3");
}

/* The one in the middle is bad with both, until it meets another. */
static void test_two_with_a_good_one_between(void **state)
{
    (void)state;
    begin(8);
    pairnet_slow(&net, 2, PAIRSEARCH_BOTH_WAYS, 0.2);
    pairnet_slow(&net, 4, PAIRSEARCH_BOTH_WAYS, 0.3);
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 2.0 2.0  4-5 3.0 3.0  6-7 10.0 "
        "10.0\n"
        "2 neighbours:  1-2 2.0 2.0  3-4 3.0 3.0  5-6 10.0 10.0  7-0 10.0 "
        "10.0\n"
        "3 cross:  2-6 2.0 2.0  3-7 10.0 10.0  4-0 3.0 3.0  1-5 10.0 10.0\n"
        "4 alone:  2-6 2.0 2.0\n"
        "5 alone:  4-0 3.0 3.0\n"
        "8 nodes in 5 rounds: 2 nodes are slow; named within 3 rounds\n"
        "node c is slow: 2.00 GB/s to node g, 2.00 GB/s from node g, 2.00 GB/s "
        "to node b, 2.00 GB/s from node b; healthy pairs have 10.00 GB/s (20 "
        "%); alone too; named in round 3\n"
        "node e is slow: 3.00 GB/s to node a, 3.00 GB/s from node a, 3.00 GB/s "
        "to node d, 3.00 GB/s from node d; healthy pairs have 10.00 GB/s (30 "
        "%); alone too; named in round 3");
}

/* nccl#325: slow with each other, each is good with others. */
static void test_one_path(void **state)
{
    (void)state;
    begin(6);
    pairnet_bad_path(&net, 1, 2, 0.6);
    pairnet_bad_path(&net, 2, 1, 0.6);
    expect_story("1 neighbours:  0-1 10.0 10.0  2-3 10.0 10.0  4-5 10.0 10.0\n"
                 "2 neighbours:  1-2 6.0 6.0  3-4 10.0 10.0  5-0 10.0 10.0\n"
                 "3 cross:  0-2 10.0 10.0  1-3 10.0 10.0  4-5 10.0 10.0\n"
                 "4 alone:  1-2 6.0 6.0\n"
                 "6 nodes in 4 rounds: 1 path is bad; named within 2 rounds\n"
                 "the path between node b and node c is slow: 6.00 GB/s there, "
                 "6.00 GB/s back; healthy pairs have 10.00 GB/s (60 %); both "
                 "nodes are good with others; alone too; named in round 2");
}

static void test_blocked_one_way(void **state)
{
    (void)state;
    begin(4);
    pairnet_bad_path(&net, 3, 2, 1);
    net.paths[0].status = PAIRSEARCH_REFUSED;
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 10.0 -\n"
        "2 neighbours:  1-2 10.0 10.0  3-0 10.0 10.0\n"
        "3 cross:  0-2 10.0 10.0  1-3 10.0 10.0\n"
        "4 alone:  2-3 10.0 -\n"
        "4 nodes in 4 rounds: 1 path is bad; named within 2 rounds\n"
        "the path from node d to node c is blocked: no connection; both nodes "
        "are good with others; alone too; named in round 2");
}

static void test_lossy(void **state)
{
    (void)state;
    begin(5);
    pairnet_bad_path(&net, 0, 1, 0.02);
    net.paths[0].loss = 0.1;
    expect_story("1 neighbours:  0-1 0.2 10.0  2-3 10.0 10.0\n"
                 "2 neighbours:  1-2 10.0 10.0  3-4 10.0 10.0\n"
                 "3 cross:  0-2 10.0 10.0  1-3 10.0 10.0\n"
                 "4 cross:  4-0 10.0 10.0  1-3 10.0 10.0\n"
                 "5 alone:  0-1 0.2 10.0\n"
                 "5 nodes in 5 rounds: 1 path is bad; named within 3 rounds\n"
                 "the path from node a to node b loses data: 200.0 MB/s with "
                 "10.0 % sent again; healthy pairs have 10.00 GB/s (2 %); both "
                 "nodes are good with others; alone too; named in round 3");
}

static void test_dead(void **state)
{
    (void)state;
    begin(5);
    net.is_dead[3] = true;
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 - -\n"
        "2 neighbours:  1-2 10.0 10.0  3-4 - -\n"
        "3 cross:  3-0 - -  4-1 10.0 10.0\n"
        "4 cross:  4-0 10.0 10.0  1-2 10.0 10.0\n"
        "5 nodes in 4 rounds: 1 node is cut off; named within 3 rounds\n"
        "node d cannot be reached: no connection from node a, no connection "
        "from node e, no connection from node c; named in round 3");
}

static void test_mute(void **state)
{
    (void)state;
    begin(4);
    net.is_mute[1] = true;
    expect_story(
        "1 neighbours:  0-1 - -  2-3 10.0 10.0\n"
        "2 neighbours:  1-2 - -  3-0 10.0 10.0\n"
        "3 cross:  1-3 - -  0-2 10.0 10.0\n"
        "4 nodes in 3 rounds: nothing bad was found, but 1 node is unknown\n"
        "node b is unknown in sending and receiving: not measured");
}

static void test_two_nodes(void **state)
{
    (void)state;
    begin(2);
    net.config.floor_bytes_per_s = 8e9;
    pairnet_slow(&net, 0, PAIRSEARCH_BOTH_WAYS, 0.02);
    expect_story("1 neighbours:  0-1 0.2 0.2\n"
                 "2 alone:  0-1 0.2 0.2\n"
                 "2 nodes in 2 rounds: their pair is bad, and which of them it "
                 "is cannot be resolved: a third node is needed\n"
                 "node a is unknown in sending and receiving: no good partner "
                 "tells whether it is the node\n"
                 "node b is unknown in sending and receiving: no good partner "
                 "tells whether it is the node\n"
                 "node a, node b or the path between them is bad: 200.0 MB/s "
                 "there, 200.0 MB/s back; at least 8.00 GB/s are asked for; to "
                 "tell which, a third node is needed");
}

static void test_all_bad(void **state)
{
    (void)state;
    begin(3);
    net.config.floor_bytes_per_s = 8e9;
    pairnet_slow(&net, 0, PAIRSEARCH_BOTH_WAYS, 0.5);
    pairnet_slow(&net, 1, PAIRSEARCH_BOTH_WAYS, 0.5);
    expect_story(
        "1 neighbours:  0-1 5.0 5.0\n"
        "2 neighbours:  1-2 5.0 5.0\n"
        "3 neighbours:  2-0 5.0 5.0\n"
        "4 alone:  0-1 5.0 5.0\n"
        "3 nodes in 4 rounds: no pair is good, so no node can be told from the "
        "others: is it the whole network, or is too much asked for?\n"
        "node a is unknown in sending and receiving: no good partner tells "
        "whether it is the node\n"
        "node b is unknown in sending and receiving: no good partner tells "
        "whether it is the node\n"
        "node c is unknown in sending and receiving: no good partner tells "
        "whether it is the node\n"
        "node a, node b or the path between them is bad: 5.00 GB/s there, 5.00 "
        "GB/s back; at least 8.00 GB/s are asked for; no good partner tells "
        "which\n"
        "node b, node c or the path between them is bad: 5.00 GB/s there, 5.00 "
        "GB/s back; at least 8.00 GB/s are asked for; no good partner tells "
        "which\n"
        "node c, node a or the path between them is bad: 5.00 GB/s there, 5.00 "
        "GB/s back; at least 8.00 GB/s are asked for; no good partner tells "
        "which");
}

static void test_shared(void **state)
{
    (void)state;
    begin(8);
    net.middle = 1.5;
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 10.0 10.0  4-5 10.0 10.0  6-7 10.0 "
        "10.0\n"
        "2 neighbours:  1-2 10.0 10.0  3-4 7.5 7.5  5-6 10.0 10.0  7-0 7.5 "
        "7.5\n"
        "3 cross:  0-4 3.8 3.8  1-5 3.8 3.8  2-6 3.8 3.8  3-7 3.8 3.8\n"
        "4 alone:  3-4 10.0 10.0\n"
        "5 alone:  7-0 10.0 10.0\n"
        "6 alone:  1-5 10.0 10.0\n"
        "8 nodes in 6 rounds: pairs that are tested at once slow each other "
        "down, those tested again alone are good: the network between them is "
        "shared\n"
        "the path between node d and node e is shared: 7.50 GB/s there, 7.50 "
        "GB/s back while other pairs were tested, good alone\n"
        "the path between node h and node a is shared: 7.50 GB/s there, 7.50 "
        "GB/s back while other pairs were tested, good alone\n"
        "the path between node a and node e is shared: 3.75 GB/s there, 3.75 "
        "GB/s back while other pairs were tested, not tested alone\n"
        "the path between node b and node f is shared: 3.75 GB/s there, 3.75 "
        "GB/s back while other pairs were tested, good alone\n"
        "the path between node c and node g is shared: 3.75 GB/s there, 3.75 "
        "GB/s back while other pairs were tested, not tested alone\n"
        "the path between node d and node h is shared: 3.75 GB/s there, 3.75 "
        "GB/s back while other pairs were tested, not tested alone");
}

static void test_faster(void **state)
{
    (void)state;
    begin(5);
    for (uint32_t i = 0; i < 5; i += 2) {
        pairnet_slow(&net, i, PAIRSEARCH_BOTH_WAYS, 0.5);
    }
    expect_story("1 neighbours:  0-1 5.0 5.0  2-3 5.0 5.0\n"
                 "2 neighbours:  1-2 5.0 5.0  3-4 5.0 5.0\n"
                 "3 cross:  4-0 5.0 5.0  1-3 10.0 10.0\n"
                 "4 cross:  0-3 5.0 5.0  4-1 5.0 5.0\n"
                 "5 cross:  0-2 5.0 5.0  1-3 10.0 10.0\n"
                 "6 cross:  2-4 5.0 5.0  0-3 5.0 5.0\n"
                 "5 nodes in 6 rounds: all pairs are good, at 5.00 GB/s; 2 "
                 "nodes reach more than that");
}

static void test_halves(void **state)
{
    (void)state;
    begin(8);
    net.config.whole_bytes_per_s = 3e9;
    net.config.whole_floor_bytes_per_s = 8e9;
    net.whole = 3.2e9;
    net.whole_from = 2;
    expect_story(
        "1 neighbours:  0-1 10.0 10.0  2-3 10.0 10.0  4-5 10.0 10.0  6-7 10.0 "
        "10.0\n"
        "2 neighbours:  1-2 10.0 10.0  3-4 10.0 10.0  5-6 10.0 10.0  7-0 10.0 "
        "10.0\n"
        "3 cross:  0-4 10.0 10.0  1-5 10.0 10.0  2-6 10.0 10.0  3-7 10.0 10.0\n"
        "4 groups:  0+4 3.2  4+4 3.2\n"
        "5 groups:  0+2 10.0  2+2 10.0  4+2 10.0  6+2 10.0\n"
        "8 nodes in 5 rounds: 2 groups are slow together; named within 5 "
        "rounds\n"
        "nodes a to d reach 3.20 GB/s together; either half of them is good\n"
        "nodes e to h reach 3.20 GB/s together; either half of them is good");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_eight_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seven_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_with_a_good_one_between, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_one_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocked_one_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lossy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mute, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faster, setup, teardown),
        cmocka_unit_test_setup_teardown(test_halves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
