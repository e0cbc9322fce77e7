/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/hostlist.h"
#include "coordinator/assign.h"
#include "coordinator/missing.h"
#include "coordinator/text.h"

static Gpul__Job message;
static struct roster roster;
static struct job job;

/* Expect the nodes of one expression; all have joined, each on `host`s[i]. */
static void setup(const char *names, uint32_t count, uint32_t ranks_per_node)
{
    static char *list;
    list = wire_text(names);
    gpul__job__init(&message);
    message.node_names = &list;
    message.n_node_names = 1;
    message.node_count = count;
    assert_int_equal(roster_init(&roster, &message, NULL), 0);
    job = (struct job){.node_count = count, .ranks_per_node = ranks_per_node};
}

static void join(uint32_t index, const char *hostname, const char *boot_id,
                 const char *address, uint32_t gpus)
{
    Gpul__Facts facts = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    facts.hostname = wire_text(hostname);
    facts.boot_id = wire_text(boot_id);
    facts.address = wire_text(address);
    facts.gpus = gpus;
    hello.facts = &facts;
    assert_int_equal(roster_join(&roster, &roster.nodes[index], index, &hello),
                     0);
}

/* Names are in natural order unless the user ordered them. */
static void test_order(void **state)
{
    (void)state;
    setup("node66,node7,node8,node70", 4, 1);
    assert_string_equal(roster.nodes[0].name, "node7");
    assert_string_equal(roster.nodes[1].name, "node8");
    assert_string_equal(roster.nodes[2].name, "node66");
    assert_string_equal(roster.nodes[3].name, "node70");
    assert_ptr_equal(roster_find(&roster, "node66"), &roster.nodes[2]);
    assert_null(roster_find(&roster, "node6"));
    roster_release(&roster);
}

/* A list that does not fit the job is refused in a sentence. */
static void test_bad_lists(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        uint32_t count;
        const char *text;
    } table[] = {
        {"a,b", 3, "2 node names were given for 3 nodes"},
        {"a,b,a", 3, "node a is listed twice"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct gpul_error err = {0};
        char *list = wire_text(table[i].names);
        gpul__job__init(&message);
        message.node_names = &list;
        message.n_node_names = 1;
        message.node_count = table[i].count;
        assert_int_equal(roster_init(&roster, &message, &err), GPUL_EINVAL);
        assert_string_equal(err.text, table[i].text);
        assert_null(roster.nodes);
    }
}

/* Nodes of one host share its counts, wherever they stand in the order; a
 * host of the same name with another boot id is another one. */
static void test_hosts(void **state)
{
    (void)state;
    uint32_t world;
    setup("n[0-3]", 4, 2);
    join(0, "a", "1", "10.0.0.1", 0);
    join(1, "b", "1", "10.0.0.2", 0);
    join(2, "a", "1", "10.0.0.1", 0);
    join(3, "a", "2", "10.0.0.3", 0);
    assert_int_equal(assign_places(&roster, &world, &job, NULL), 0);
    assert_int_equal(world, 8);
    assert_int_equal(roster.host_count, 3);
    assert_int_equal(roster.nodes[2].first_rank, 4);
    assert_int_equal(roster.nodes[0].host_node_index, 0);
    assert_int_equal(roster.nodes[2].host_node_index, 1);
    assert_int_equal(roster.nodes[2].host_node_count, 2);
    assert_int_equal(roster.nodes[2].host_rank_count, 4);
    assert_int_equal(roster.nodes[3].host_node_count, 1);
    roster_release(&roster);
}

/* Addresses are to be proved where a node sees another network than another
 * does: on another host, or in another namespace of one. */
static void test_spread(void **state)
{
    (void)state;
    uint32_t world;
    setup("n[0-1]", 2, 1);
    join(0, "a", "1", "127.0.0.1", 0);
    join(1, "a", "1", "127.0.0.1", 0);
    assert_int_equal(assign_places(&roster, &world, &job, NULL), 0);
    assert_false(roster.is_spread);
    roster.nodes[1].network_namespace = 4026531840;
    assert_int_equal(assign_places(&roster, &world, &job, NULL), 0);
    assert_true(roster.is_spread);
    assert_int_equal(roster.host_count, 1);
    roster_leave(&roster, &roster.nodes[1]);
    join(1, "b", "1", "10.0.0.2", 0);
    assert_int_equal(assign_places(&roster, &world, &job, NULL), 0);
    assert_true(roster.is_spread);
    assert_int_equal(roster.host_count, 2);
    roster_release(&roster);
}

/* The address that was proved is the one that counts, whoever joins again. */
static void test_proved_address(void **state)
{
    (void)state;
    setup("n0", 1, 1);
    join(0, "a", "1", "127.0.0.1", 0);
    assert_int_equal(roster_set_address(&roster.nodes[0], "10.0.0.7"), 0);
    assert_string_equal(roster.nodes[0].address, "10.0.0.7");
    roster_leave(&roster, &roster.nodes[0]);
    join(0, "a", "1", "127.0.0.1", 0);
    assert_string_equal(roster.nodes[0].address, "10.0.0.7");
    roster_release(&roster);
}

/* No node holds more ranks than it may, whatever it says it has. */
static void test_too_many(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    uint32_t world;
    setup("n[0-1]", 2, 0);
    join(0, "a", "1", "10.0.0.1", 8);
    join(1, "a", "1", "10.0.0.1", UINT32_MAX);
    assert_int_equal(assign_places(&roster, &world, &job, &err), GPUL_ELIMIT);
    assert_string_equal(
        err.text, "node n1 would hold 4294967295 ranks from rank 8 on; at most "
                  "4096 a node and 1048576 in all are possible");
    roster_release(&roster);
}

/* A roster of any size comes in pages that fit, and gives every node's
 * address, ports and ranks back. */
static void test_pages(void **state)
{
    (void)state;
    enum { NODES = 9000 };
    char address[64];
    uint32_t world;
    setup("n[0-8999]", NODES, 1);
    for (uint32_t i = 0; i < NODES; i++) {
        /* Hard to fold: no two neighbours have a common beginning. */
        snprintf(address, sizeof(address), "%u.%u.%u.9", i % 200 + 1,
                 i * 7 % 256, i * 13 % 256);
        join(i, "a", "1", address, 0);
        roster.nodes[i].port_base = 10000 + i;
    }
    assert_int_equal(assign_places(&roster, &world, &job, NULL), 0);
    struct gpul_buf out;
    gpul_buf_init(&out, 16 << 20);
    assert_int_equal(assign_encode_roster(&out, &roster, 1, 1, NULL), 0);
    uint32_t next = 0;
    uint32_t pages = 0;
    for (size_t at = 0; at < out.used;) {
        const uint8_t *bytes = out.data + at;
        size_t n = (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
        Gpul__Frame *frame;
        struct gpul_hostlist list;
        assert_int_equal(gpul_message_decode(&frame,
                                             bytes + GPUL_FRAME_PREFIX_BYTES, n,
                                             GPUL_PEER_COORDINATOR, NULL),
                         0);
        const Gpul__Roster *page = frame->roster;
        assert_int_equal(page->page, pages++);
        assert_int_equal(page->first_node, next);
        gpul_hostlist_init(&list);
        assert_int_equal(
            gpul_hostlist_expand(&list, page->addresses, NODES, NULL), 0);
        assert_int_equal(list.count, page->node_count);
        assert_int_equal(page->n_rank_counts, 1);
        for (uint32_t i = 0; i < page->node_count; i++, next++) {
            assert_string_equal(list.names[i], roster.nodes[next].address);
            assert_int_equal(page->port_bases[i], 10000 + next);
        }
        gpul_hostlist_release(&list);
        if (next == NODES) {
            assert_int_equal(page->page_count, pages);
        }
        gpul_message_release(frame);
        at += GPUL_FRAME_PREFIX_BYTES + n;
    }
    assert_int_equal(next, NODES);
    assert_true(pages > 1);
    gpul_buf_release(&out);
    roster_release(&roster);
}

static bool is_absent(const struct roster *r, uint32_t node_rank,
                      const void *arg)
{
    (void)arg;
    return !node_is_here(&r->nodes[node_rank]);
}

/* Up to ten are named, folded; of more the number is said. */
static void test_missing(void **state)
{
    (void)state;
    struct text names;
    setup("n[0-11]", 12, 1);
    assert_int_equal(missing_names(&names, &roster, is_absent, NULL), 12);
    assert_string_equal(names.bytes, "n[0-9] and 2 more");
    join(3, "a", "1", "10.0.0.1", 0);
    join(0, "a", "1", "10.0.0.1", 0);
    assert_int_equal(missing_names(&names, &roster, is_absent, NULL), 10);
    assert_string_equal(names.bytes, "n[1-2,4-11]");
    roster_release(&roster);
}

/* Names too long for a sentence leave room for the count. */
static void test_missing_long(void **state)
{
    (void)state;
    char list[1300];
    struct text names;
    char *at = list;
    for (char c = 'a'; c < 'f'; c++) {
        memset(at, c, 250);
        at += 250;
        *at++ = ',';
    }
    at[-1] = 0;
    setup(list, 5, 1);
    assert_int_equal(missing_names(&names, &roster, is_absent, NULL), 5);
    assert_int_equal(strlen(names.bytes), 2 * 250 + 1 + strlen(" and 3 more"));
    assert_non_null(strstr(names.bytes, " and 3 more"));
    roster_release(&roster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),          cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_hosts),          cmocka_unit_test(test_spread),
        cmocka_unit_test(test_proved_address), cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_pages),          cmocka_unit_test(test_missing),
        cmocka_unit_test(test_missing_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
