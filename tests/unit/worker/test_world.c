/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "worker/world.h"

/* A page with one list value for all nodes unless the test sets more. */
struct page {
    Gpul__Roster roster;
    char addresses[64];
    uint32_t port_bases[4];
    uint32_t rank_counts[4];
};

static void page_set(struct page *p, uint32_t page, uint32_t page_count,
                     uint32_t first_node, uint32_t node_count,
                     const char *addresses)
{
    gpul__roster__init(&p->roster);
    strcpy(p->addresses, addresses);
    p->port_bases[0] = 20000;
    p->rank_counts[0] = 2;
    p->roster.page = page;
    p->roster.page_count = page_count;
    p->roster.first_node = first_node;
    p->roster.node_count = node_count;
    p->roster.addresses = p->addresses;
    p->roster.port_bases = p->port_bases;
    p->roster.n_port_bases = 1;
    p->roster.rank_counts = p->rank_counts;
    p->roster.n_rank_counts = 1;
}

/* Two pages make one world: addresses in order, ranks without gaps, one
 * value for all nodes or one for each. */
static void test_pages(void **state)
{
    (void)state;
    struct world w;
    struct page p;
    world_init(&w);
    assert_int_equal(world_begin(&w, 5, 9, NULL), 0);
    page_set(&p, 0, 2, 0, 3, "10.0.0.[1-3]");
    assert_int_equal(world_add(&w, &p.roster, NULL), 0);
    assert_false(world_is_complete(&w));
    page_set(&p, 1, 2, 3, 2, "10.0.1.7,fd00::1");
    p.rank_counts[0] = 1;
    p.rank_counts[1] = 2;
    p.roster.n_rank_counts = 2;
    p.port_bases[1] = 30000;
    p.roster.n_port_bases = 2;
    assert_int_equal(world_add(&w, &p.roster, NULL), 0);
    assert_true(world_is_complete(&w));
    static const struct {
        const char *address;
        uint32_t first, count;
        uint16_t port;
    } expected[] = {
        {"10.0.0.1", 0, 2, 20000}, {"10.0.0.2", 2, 2, 20000},
        {"10.0.0.3", 4, 2, 20000}, {"10.0.1.7", 6, 1, 20000},
        {"fd00::1", 7, 2, 30000},
    };
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(w.addresses.names[i], expected[i].address);
        assert_int_equal(w.first_ranks[i], expected[i].first);
        assert_int_equal(w.rank_counts[i], expected[i].count);
        assert_int_equal(w.port_bases[i], expected[i].port);
    }
    assert_int_equal(world_check_node(&w, 4, 7, 2, 30000, NULL), 0);
    world_release(&w);
}

/* What does not fit is refused, with what does not fit. */
static void test_faults(void **state)
{
    (void)state;
    static const struct {
        uint32_t page, page_count, first_node, node_count;
        const char *addresses;
        uint32_t ports, counts; /* list lengths */
        uint32_t port, count;
        const char *text;
    } table[] = {
        {1, 2, 0, 2, "a,b", 1, 1, 20000, 2, "roster page 1 of 2, expected 0"},
        {0, 0, 0, 2, "a,b", 1, 1, 20000, 2, "roster page 0 of 0, expected 0"},
        {0, 1, 1, 1, "b", 1, 1, 20000, 2,
         "roster page 0 has nodes 1+1, expected 0 of 2"},
        {0, 1, 0, 3, "a,b,c", 1, 1, 20000, 2,
         "roster page 0 has nodes 0+3, expected 0 of 2"},
        {0, 1, 0, 0, "a", 1, 1, 20000, 2,
         "roster page 0 has nodes 0+0, expected 0 of 2"},
        {0, 1, 0, 2, "a", 1, 1, 20000, 2,
         "roster page 0 has 1 addresses for 2 nodes"},
        {0, 1, 0, 2, "a,b", 3, 1, 20000, 2,
         "roster page 0: 3 ports and 1 rank counts for 2 nodes"},
        {0, 1, 0, 2, "a,b", 1, 0, 20000, 2,
         "roster page 0: 1 ports and 0 rank counts for 2 nodes"},
        {0, 1, 0, 2, "a,b", 1, 1, 0, 2, "node 0 has ports 0+5"},
        {0, 1, 0, 2, "a,b", 1, 1, 65532, 2, "node 0 has ports 65532+5"},
        {0, 1, 0, 2, "a,b", 1, 1, 20000, 0,
         "node 0 has 0 ranks, 4 of 4 are left"},
        {0, 1, 0, 2, "a,b", 1, 1, 20000, 3,
         "node 1 has 3 ranks, 1 of 4 are left"},
        {0, 1, 0, 2, "a,b", 1, 1, 20000, 1,
         "the roster has 2 of 2 nodes and 2 of 4 ranks"},
        {0, 1, 0, 1, "a", 1, 1, 20000, 2,
         "the roster has 1 of 2 nodes and 2 of 4 ranks"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct world w;
        struct page p;
        struct gpul_error err;
        world_init(&w);
        assert_int_equal(world_begin(&w, 2, 4, NULL), 0);
        page_set(&p, table[i].page, table[i].page_count, table[i].first_node,
                 table[i].node_count, table[i].addresses);
        p.roster.n_port_bases = table[i].ports;
        p.roster.n_rank_counts = table[i].counts;
        p.port_bases[0] = table[i].port;
        p.rank_counts[0] = table[i].count;
        assert_int_equal(world_add(&w, &p.roster, &err), GPUL_EPROTO);
        assert_string_equal(err.text, table[i].text);
        world_release(&w);
    }
}

/* A bad host list keeps the words of its own parser. */
static void test_bad_addresses(void **state)
{
    (void)state;
    struct world w;
    struct page p;
    struct gpul_error err;
    world_init(&w);
    assert_int_equal(world_begin(&w, 2, 4, NULL), 0);
    page_set(&p, 0, 1, 0, 2, "10.0.0.[1-");
    assert_true(world_add(&w, &p.roster, &err) < 0);
    assert_memory_equal(err.text, "roster page 0: ", 15);
    world_release(&w);
}

/* What the node knows of itself must be what the roster says of it. */
static void test_check_node(void **state)
{
    (void)state;
    struct world w;
    struct page p;
    struct gpul_error err;
    world_init(&w);
    assert_int_equal(world_begin(&w, 2, 4, NULL), 0);
    page_set(&p, 0, 1, 0, 2, "a,b");
    assert_int_equal(world_add(&w, &p.roster, NULL), 0);
    assert_int_equal(world_check_node(&w, 1, 2, 2, 20000, &err), 0);
    assert_int_equal(world_check_node(&w, 2, 2, 2, 20000, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "node rank 2 of 2 nodes");
    assert_int_equal(world_check_node(&w, 1, 3, 1, 20001, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "the roster gives this node ranks 2+2 and "
                                  "port 20000, it has 3+1 and 20001");
    world_release(&w);
}

/* A new generation forgets the old one; sizes out of bounds are refused. */
static void test_begin(void **state)
{
    (void)state;
    struct world w;
    struct page p;
    world_init(&w);
    assert_int_equal(world_begin(&w, 0, 1, NULL), GPUL_EPROTO);
    assert_int_equal(world_begin(&w, GPUL_NODES_MAX + 1, 1, NULL), GPUL_EPROTO);
    assert_int_equal(world_begin(&w, 2, 4, NULL), 0);
    page_set(&p, 0, 1, 0, 2, "a,b");
    assert_int_equal(world_add(&w, &p.roster, NULL), 0);
    assert_int_equal(world_begin(&w, 1, 2, NULL), 0);
    assert_false(world_is_complete(&w));
    page_set(&p, 0, 1, 0, 1, "c");
    assert_int_equal(world_add(&w, &p.roster, NULL), 0);
    assert_true(world_is_complete(&w));
    assert_string_equal(w.addresses.names[0], "c");
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),         cmocka_unit_test(test_faults),
        cmocka_unit_test(test_bad_addresses), cmocka_unit_test(test_check_node),
        cmocka_unit_test(test_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
