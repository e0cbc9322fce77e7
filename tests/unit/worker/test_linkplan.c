/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/linkplan.h"

enum { MANY = 2000 };

/* Nodes of these many endpoints each, as one page. */
static void add_page(struct linkplan *p, uint32_t first, uint32_t nodes,
                     uint32_t pages, const uint32_t *counts, size_t n_counts,
                     const char *addresses)
{
    static uint32_t ports[2 * MANY];
    size_t total = 0;
    struct gpul_error err = {0};
    Gpul__LinkPeers page = GPUL__LINK_PEERS__INIT;
    for (uint32_t i = 0; i < nodes; i++) {
        total += counts[n_counts == 1 ? 0 : i];
    }
    for (uint32_t i = 0; i < total; i++) {
        ports[i] = 40000 + i;
    }
    page.page = p->page_next;
    page.page_count = pages;
    page.first_node = first;
    page.node_count = nodes;
    page.counts = (uint32_t *)(uintptr_t)counts;
    page.n_counts = n_counts;
    page.addresses = (char *)(uintptr_t)addresses;
    page.ports = ports;
    page.n_ports = total;
    page.deadline_ms = 1000;
    assert_int_equal(linkplan_add(p, &page, &err), 0);
}

/* Three nodes, the second with two endpoints; this is node 1. */
static void open_plan(struct linkplan *p)
{
    static const uint32_t counts[] = {2, 2, 1};
    assert_int_equal(linkplan_init(p, 1, 3, 2, NULL), 0);
    assert_false(linkplan_is_complete(p));
    add_page(p, 0, 3, 1, counts, 3, "10.0.0.[1-3],10.1.0.[1-2]");
    assert_true(linkplan_is_complete(p));
}

static void expect_dial(struct linkplan *p, struct linkplan_dial *d,
                        uint32_t node, const char *address, uint16_t port,
                        uint32_t bound_ms)
{
    assert_true(linkplan_next(p, d));
    assert_int_equal(d->node, node);
    assert_string_equal(d->address, address);
    assert_int_equal(d->port, port);
    assert_int_equal(d->bound_ms, bound_ms);
}

/* The next node first, then round; first endpoints before second ones. */
static void test_all_reached(void **state)
{
    (void)state;
    struct linkplan p;
    struct linkplan_dial d[3];
    Gpul__LinkReport report;
    open_plan(&p);
    expect_dial(&p, &d[0], 2, "10.0.0.3", 40002, LINKPLAN_DIAL_MS);
    expect_dial(&p, &d[1], 0, "10.0.0.1", 40000, LINKPLAN_DIAL_MS);
    linkplan_reached(&p, &d[1], 0);
    expect_dial(&p, &d[2], 0, "10.1.0.1", 40003, LINKPLAN_SPARE_DIAL_MS);
    assert_false(linkplan_next(&p, &d[1]));
    assert_false(linkplan_is_over(&p));
    linkplan_reached(&p, &d[2], 1);
    linkplan_reached(&p, &d[0], LINKPLAN_NO_SOURCE);
    assert_true(linkplan_is_over(&p));
    linkplan_fill(&report, &p);
    assert_int_equal(report.missed.len, 0);
    assert_int_equal(report.failure_count, 0);
    assert_int_equal(report.n_reached_from, 2);
    assert_int_equal(report.reached_from[0], 1);
    assert_int_equal(report.reached_from[1], 1);
    linkplan_release(&p);
}

/* What has failed is tried again, but not where another way was found. */
static void test_repeated(void **state)
{
    (void)state;
    struct linkplan p;
    struct linkplan_dial d;
    Gpul__LinkReport report;
    open_plan(&p);
    expect_dial(&p, &d, 2, "10.0.0.3", 40002, LINKPLAN_DIAL_MS);
    linkplan_failed(&p, &d, GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
    expect_dial(&p, &d, 0, "10.0.0.1", 40000, LINKPLAN_DIAL_MS);
    linkplan_failed(&p, &d, GPUL__LINK_FAILURE__KIND__OTHER_MACHINE, 2);
    expect_dial(&p, &d, 0, "10.1.0.1", 40003, LINKPLAN_DIAL_MS);
    linkplan_reached(&p, &d, 1);
    expect_dial(&p, &d, 2, "10.0.0.3", 40002, LINKPLAN_DIAL_MS);
    assert_true(d.is_repeated);
    assert_false(linkplan_is_over(&p));
    linkplan_failed(&p, &d, GPUL__LINK_FAILURE__KIND__REFUSED, 0);
    assert_false(linkplan_next(&p, &d));
    assert_true(linkplan_is_over(&p));
    linkplan_fill(&report, &p);
    /* Endpoints: 0 and 1 of node 0, 2 and 3 are its own, 4 of node 2. */
    assert_int_equal(report.missed.len, 1);
    assert_int_equal(report.missed.data[0], 0x11);
    assert_int_equal(report.failure_count, 2);
    assert_int_equal(report.n_failures, 2);
    /* The node that was not reached at all comes first. */
    assert_int_equal(report.failures[0]->node_rank, 2);
    assert_int_equal(report.failures[0]->kind,
                     GPUL__LINK_FAILURE__KIND__REFUSED);
    assert_int_equal(report.failures[1]->node_rank, 0);
    assert_int_equal(report.failures[1]->endpoint, 0);
    assert_int_equal(report.failures[1]->answered_by, 2);
    assert_int_equal(report.reached_from[0], 0);
    assert_int_equal(report.reached_from[1], 1);
    linkplan_release(&p);
}

/* What there was no time for counts as missed too. */
static void test_not_tried(void **state)
{
    (void)state;
    struct linkplan p;
    Gpul__LinkReport report;
    open_plan(&p);
    linkplan_fill(&report, &p);
    assert_int_equal(report.missed.data[0], 0x13);
    assert_int_equal(report.failure_count, 3);
    assert_int_equal(report.failures[0]->kind,
                     GPUL__LINK_FAILURE__KIND__NOT_TRIED);
    linkplan_release(&p);
}

/* Enough at a time; over several pages; failures beyond the room counted. */
static void test_many(void **state)
{
    (void)state;
    static const uint32_t one[] = {1};
    struct linkplan p;
    struct linkplan_dial d[64];
    Gpul__LinkReport report;
    uint32_t n = 0;
    assert_int_equal(linkplan_init(&p, 49, 60, 1, NULL), 0);
    add_page(&p, 0, 30, 2, one, 1, "10.0.0.[1-30]");
    add_page(&p, 30, 30, 2, one, 1, "10.0.1.[1-30]");
    while (linkplan_next(&p, &d[n])) {
        assert_int_equal(d[n].node, (49 + 1 + n) % 60);
        n++;
    }
    assert_int_equal(n, LINKPLAN_DIALS_MAX);
    uint32_t failed = 0;
    while (n > 0) {
        linkplan_failed(&p, &d[--n], GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
        failed++;
        while (linkplan_next(&p, &d[n])) {
            n++;
        }
    }
    assert_int_equal(failed, 2 * 59);
    assert_true(linkplan_is_over(&p));
    linkplan_fill(&report, &p);
    assert_int_equal(report.failure_count, 59);
    assert_int_equal(report.n_failures, GPUL_LINK_FAILURES_MAX);
    linkplan_release(&p);
}

static void test_alone(void **state)
{
    (void)state;
    static const uint32_t one[] = {1};
    struct linkplan p;
    struct linkplan_dial d;
    Gpul__LinkReport report;
    assert_int_equal(linkplan_init(&p, 0, 1, 1, NULL), 0);
    add_page(&p, 0, 1, 1, one, 1, "10.0.0.1");
    assert_false(linkplan_next(&p, &d));
    assert_true(linkplan_is_over(&p));
    linkplan_fill(&report, &p);
    assert_int_equal(report.failure_count, 0);
    linkplan_release(&p);
}

/* Pages that do not fit what came before, or themselves. */
static void test_bad_pages(void **state)
{
    (void)state;
    static const struct {
        uint32_t page, pages, first, nodes;
        const char *addresses;
        const char *error;
    } table[] = {
        {1, 2, 0, 1, "a", "page 1 of 2, expected 0"},
        {0, 1, 1, 1, "a", "page 0 has nodes 1+1, expected 0 of 2"},
        {0, 1, 0, 3, "a,b,c", "page 0 has nodes 0+3, expected 0 of 2"},
        {0, 1, 0, 2, "a", "page 0 has 1 addresses for 2 endpoints"},
        {0, 1, 0, 1, "a", "1 of 2 nodes"},
        {0, 1, 0, 2, "[", NULL},
        {0, 1, 0, 2, "a,b,c", NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct linkplan p;
        struct gpul_error err = {0};
        uint32_t counts[] = {1};
        uint32_t ports[] = {1, 2, 3};
        Gpul__LinkPeers page = GPUL__LINK_PEERS__INIT;
        page.page = table[i].page;
        page.page_count = table[i].pages;
        page.first_node = table[i].first;
        page.node_count = table[i].nodes;
        page.addresses = (char *)(uintptr_t)table[i].addresses;
        page.counts = counts;
        page.n_counts = 1;
        page.ports = ports;
        page.n_ports = table[i].nodes;
        assert_int_equal(linkplan_init(&p, 0, 2, 1, NULL), 0);
        assert_int_equal(linkplan_add(&p, &page, &err), GPUL_EPROTO);
        if (table[i].error != NULL) {
            assert_string_equal(err.text, table[i].error);
        }
        linkplan_release(&p);
    }
}

/* Which dials get an answer. */
typedef bool (*answers_fn)(const struct linkplan *p,
                           const struct linkplan_dial *d);

/* All dials of the first of MANY nodes with two endpoints each. Returns how
 * long it takes: 1 ms for an answer, the bound for none. */
static uint64_t dial_all(struct linkplan *p, answers_fn answers)
{
    static const uint32_t two[] = {2};
    struct linkplan_dial dials[LINKPLAN_DIALS_MAX];
    uint64_t due_ms[LINKPLAN_DIALS_MAX], now_ms = 0;
    size_t n = 0;
    assert_int_equal(linkplan_init(p, 0, MANY, 2, NULL), 0);
    add_page(p, 0, MANY, 1, two, 1, "a[0-1999],b[0-1999]");
    while (!linkplan_is_over(p)) {
        size_t first = 0;
        while (n < LINKPLAN_DIALS_MAX && linkplan_next(p, &dials[n])) {
            due_ms[n] =
                now_ms + (answers(p, &dials[n]) ? 1 : dials[n].bound_ms);
            n++;
        }
        if (n == 0) {
            break;
        }
        for (size_t i = 1; i < n; i++) {
            first = due_ms[i] < due_ms[first] ? i : first;
        }
        struct linkplan_dial done = dials[first];
        now_ms = due_ms[first];
        n--;
        dials[first] = dials[n];
        due_ms[first] = due_ms[n];
        if (answers(p, &done)) {
            linkplan_reached(p, &done, 1);
        } else {
            linkplan_failed(p, &done, GPUL__LINK_FAILURE__KIND__TIMED_OUT, 0);
        }
    }
    assert_true(linkplan_is_over(p));
    return now_ms;
}

static bool is_second(const struct linkplan *p, const struct linkplan_dial *d)
{
    (void)p;
    return d->address[0] == 'b';
}

/* A first network that is silent takes the time of one dial, not of one for
 * each 32 nodes. */
static void test_silent_network(void **state)
{
    (void)state;
    struct linkplan p;
    Gpul__LinkReport report;
    uint64_t took_ms = dial_all(&p, is_second);
    assert_in_range(took_ms, LINKPLAN_DIAL_MS, LINKPLAN_DIAL_MS + 500);
    linkplan_fill(&report, &p);
    assert_int_equal(report.failure_count, MANY - 1);
    assert_int_equal(report.reached_from[1], MANY - 1);
    assert_int_equal(report.failures[0]->kind,
                     GPUL__LINK_FAILURE__KIND__TIMED_OUT);
    assert_int_equal(p.endpoints[p.firsts[MANY / 2]].kind,
                     GPUL__LINK_FAILURE__KIND__NOT_TRIED);
    linkplan_release(&p);
}

/* The nearest 100 by the second network only, the others by the first only. */
static bool is_parted(const struct linkplan *p, const struct linkplan_dial *d)
{
    (void)p;
    return (d->node <= 100) == (d->address[0] == 'b');
}

/* What was put off is dialled all the same where nothing else leads. */
static void test_put_off(void **state)
{
    (void)state;
    struct linkplan p;
    Gpul__LinkReport report;
    dial_all(&p, is_parted);
    linkplan_fill(&report, &p);
    assert_int_equal(report.reached_from[1], MANY - 1);
    linkplan_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reached),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_not_tried),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_bad_pages),
        cmocka_unit_test(test_put_off),
        cmocka_unit_test(test_silent_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
