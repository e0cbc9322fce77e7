/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of endpoints, and what is taken of a report. The choice and its
 * words are told by tests/sim/test_stories_links.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/hostlist.h"
#include "coordinator/links.h"

enum { MANY = 3000 };

static struct links links;

/* Node i has 1 + i % 3 candidates, and a bridge. */
static void add(uint32_t i, bool is_ipv6)
{
    char addresses[4][64];
    char name[] = "eth0";
    char why[] = "down";
    Gpul__LinkInterface all[4];
    Gpul__LinkInterface *list[4];
    Gpul__LinkListening m = GPUL__LINK_LISTENING__INIT;
    uint32_t n = 2 + i % 3;
    for (uint32_t k = 0; k < n; k++) {
        if (is_ipv6) {
            snprintf(addresses[k], sizeof(addresses[k]),
                     "2001:db8:1111:2222:3333:4444:%x:%x", k * 50 + i / 250,
                     i % 250);
        } else {
            snprintf(addresses[k], sizeof(addresses[k]), "10.%u.%u.1",
                     k * 50 + i / 250, i % 250);
        }
        gpul__link_interface__init(&all[k]);
        all[k].name = name;
        all[k].address = addresses[k];
        all[k].port = k + 1 < n ? 1000 + i : 0;
        if (k + 1 == n) {
            all[k].rejection = why;
        }
        list[k] = &all[k];
    }
    m.interfaces = list;
    m.n_interfaces = n;
    assert_int_equal(links_add(&links, i, addresses[0], &m), 0);
}

static uint32_t count_of(const Gpul__LinkPeers *page, uint32_t i)
{
    return page->counts[page->n_counts == 1 ? 0 : i];
}

/* First endpoints of all, then second ones. */
static void check_page(const Gpul__LinkPeers *page)
{
    struct gpul_hostlist names;
    size_t at = 0;
    gpul_hostlist_init(&names);
    assert_int_equal(
        gpul_hostlist_expand(&names, page->addresses, page->n_ports, NULL), 0);
    assert_int_equal(names.count, page->n_ports);
    for (uint32_t k = 0; k < GPUL_LINKS_MAX; k++) {
        for (uint32_t i = 0; i < page->node_count; i++) {
            uint32_t node = page->first_node + i;
            assert_int_equal(count_of(page, i), 1 + node % 3);
            if (k < count_of(page, i)) {
                assert_string_equal(names.names[at],
                                    links.nodes[node].endpoints[k].address);
                assert_int_equal(page->ports[at++], 1000 + node);
            }
        }
    }
    gpul_hostlist_release(&names);
}

static void check_pages(bool is_ipv6)
{
    struct gpul_error err = {0};
    uint32_t next = 0;
    uint32_t pages = 0;
    size_t n;
    assert_int_equal(links_init(&links, MANY), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        add(i, is_ipv6);
    }
    assert_int_equal(links_encode(&links, 3, 4, 5000, &err), 0);
    for (size_t at = 0; at < links.frames.used; at += n) {
        const uint8_t *bytes = links.frames.data + at;
        Gpul__Frame *frame;
        n = GPUL_FRAME_PREFIX_BYTES +
            ((size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 |
             (size_t)bytes[2] << 8 | (size_t)bytes[3]);
        assert_int_equal(gpul_message_decode(&frame,
                                             bytes + GPUL_FRAME_PREFIX_BYTES,
                                             n - GPUL_FRAME_PREFIX_BYTES,
                                             GPUL_PEER_COORDINATOR, &err),
                         0);
        assert_int_equal(frame->generation, 4);
        assert_int_equal(frame->link_peers->page, pages++);
        assert_int_equal(frame->link_peers->first_node, next);
        next += frame->link_peers->node_count;
        check_page(frame->link_peers);
        assert_int_equal(frame->link_peers->page_count > pages, next < MANY);
        gpul_message_release(frame);
    }
    assert_int_equal(next, MANY);
    assert_true(pages > 1);
    links_release(&links);
}

static void test_pages(void **state)
{
    (void)state;
    check_pages(false);
    check_pages(true);
}

/* Three nodes of one, two and three endpoints: bits 0, 1 and 2, 3 to 5. */
static void open_three(void)
{
    assert_int_equal(links_init(&links, 3), 0);
    for (uint32_t i = 0; i < 3; i++) {
        add(i, false);
    }
    assert_int_equal(links_encode(&links, 1, 1, 5000, NULL), 0);
}

static int report(uint32_t node, uint8_t bits, size_t n, uint32_t failed_node,
                  uint32_t endpoint)
{
    uint8_t missed[2] = {bits, 0};
    uint32_t reached_from[] = {2, 1, 1, 1};
    Gpul__LinkFailure failure = GPUL__LINK_FAILURE__INIT;
    Gpul__LinkFailure *list = &failure;
    Gpul__LinkReport m = GPUL__LINK_REPORT__INIT;
    failure.node_rank = failed_node;
    failure.endpoint = endpoint;
    failure.kind = GPUL__LINK_FAILURE__KIND__REFUSED;
    m.failures = &list;
    m.n_failures = n > 0;
    m.failure_count = n > 0;
    m.missed.data = missed;
    m.missed.len = n;
    m.reached_from = reached_from;
    m.n_reached_from = 1 + node;
    return links_report(&links, node, &m);
}

static void test_reports(void **state)
{
    (void)state;
    open_three();
    assert_int_equal(report(0, 0x12, 1, 1, 0), 0); /* first of 1, second of 2 */
    assert_int_equal(report(1, 0, 0, 0, 0), 0);
    assert_int_equal(report(2, 0x3a, 1, 1, 0), 0); /* its own do not count */
    assert_int_equal(links.nodes[1].endpoints[0].missed, 2);
    assert_int_equal(links.nodes[1].endpoints[1].missed, 0);
    assert_int_equal(links.nodes[2].endpoints[0].missed, 0);
    assert_int_equal(links.nodes[2].endpoints[1].missed, 1);
    assert_int_equal(links.nodes[2].endpoints[2].missed, 0);
    assert_true(links_choose(&links));
    assert_string_equal(links_chosen(&links, 1)->address, "10.50.1.1");
    assert_string_equal(links_chosen(&links, 2)->address, "10.0.2.1");
    links_release(&links);
}

/* Of endpoints and nodes that there are not, nothing is taken. */
static void test_lies(void **state)
{
    (void)state;
    open_three();
    assert_int_equal(report(0, 0x02, 2, 1, 0), GPUL_EPROTO); /* too long */
    assert_int_equal(report(0, 0x42, 1, 1, 0), GPUL_EPROTO); /* bit 6 */
    assert_int_equal(report(0, 0x02, 1, 3, 0), GPUL_EPROTO); /* no node 3 */
    assert_int_equal(report(0, 0x02, 1, 1, 2), GPUL_EPROTO); /* it has two */
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < links.nodes[i].count; k++) {
            assert_int_equal(links.nodes[i].endpoints[k].missed, 0);
        }
    }
    links_release(&links);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
