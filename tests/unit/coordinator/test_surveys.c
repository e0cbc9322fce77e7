/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/surveys.h"

#define MS UINT64_C(1000000)
#define NOW (UINT64_C(1796000000000) * MS)

static struct node nodes[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};

/* All exchanges with a node whose clock is so far ahead, and takes `way_ms`
 * each way. */
static void exchange(struct surveys *s, uint32_t node_rank, int64_t ahead_ms,
                     uint64_t way_ms)
{
    Gpul__ClockPing ping;
    Gpul__ClockPong pong = GPUL__CLOCK_PONG__INIT;
    uint64_t now = NOW;
    while (surveys_ping(s, node_rank, now, &ping)) {
        pong.sequence = ping.sequence;
        pong.ping_sent_ns = ping.sent_ns;
        pong.received_ns =
            (uint64_t)((int64_t)(now + way_ms * MS) + ahead_ms * (int64_t)MS);
        pong.sent_ns = pong.received_ns;
        now += 2 * way_ms * MS;
        assert_true(surveys_pong(s, node_rank, &pong, now));
    }
}

static void expect(const struct surveys *s, uint32_t count, const char *nodes_,
                   Gpul__Finding__Severity severity, const char *text)
{
    const struct roster all = {.nodes = nodes, .count = count};
    struct findings f = {0};
    assert_int_equal(surveys_judge_clocks(s, &all, NOW + 10 * MS, &f), 0);
    assert_int_equal(f.count, 1);
    assert_string_equal(f.items[0]->id, "CLOCK-541");
    assert_string_equal(f.items[0]->nodes, nodes_);
    assert_int_equal(f.items[0]->severity, severity);
    assert_non_null(strstr(f.items[0]->text, text));
    findings_release(&f);
}

/* Facts and all answers of the clock make a node whole. */
static void test_whole(void **state)
{
    (void)state;
    struct surveys s;
    assert_int_equal(surveys_init(&s, 2), 0);
    exchange(&s, 0, 0, 1);
    assert_false(surveys_is_whole(&s, 0));
    s.nodes[0].has_facts = true;
    assert_true(surveys_is_whole(&s, 0));
    s.nodes[1].has_facts = true;
    assert_false(surveys_is_whole(&s, 1));
    surveys_release(&s);
}

/* An answer that is not the one that is due changes nothing. */
static void test_foreign_answer(void **state)
{
    (void)state;
    struct surveys s;
    Gpul__ClockPing ping;
    Gpul__ClockPong pong = GPUL__CLOCK_PONG__INIT;
    assert_int_equal(surveys_init(&s, 1), 0);
    assert_true(surveys_ping(&s, 0, NOW, &ping));
    pong.ping_sent_ns = ping.sent_ns + 1;
    assert_false(surveys_pong(&s, 0, &pong, NOW + MS));
    pong.ping_sent_ns = ping.sent_ns;
    pong.sequence = 1;
    assert_false(surveys_pong(&s, 0, &pong, NOW + MS));
    assert_int_equal(s.nodes[0].pings, 0);
    exchange(&s, 0, 0, 1);
    assert_false(surveys_pong(&s, 0, &pong, NOW + MS));
    surveys_release(&s);
}

/* Of three the middle one is right, even where the coordinator's is not. */
static void test_clocks(void **state)
{
    (void)state;
    struct surveys s;
    assert_int_equal(surveys_init(&s, 3), 0);
    for (uint32_t i = 0; i < 3; i++) {
        exchange(&s, i, i == 1 ? 900000 : 600000, 1);
    }
    expect(&s, 3, "b", GPUL__FINDING__SEVERITY__WARN,
           "5 min ahead of those of the other nodes");
    surveys_release(&s);
    assert_int_equal(surveys_init(&s, 3), 0);
    for (uint32_t i = 0; i < 3; i++) {
        exchange(&s, i, 40 * (int64_t)i, 1);
    }
    expect(&s, 3, "", GPUL__FINDING__SEVERITY__PASS, "within 100 ms");
    surveys_release(&s);
}

/* One alone is compared with the coordinator's. */
static void test_one(void **state)
{
    (void)state;
    struct surveys s;
    assert_int_equal(surveys_init(&s, 1), 0);
    exchange(&s, 0, -2000, 1);
    expect(&s, 1, "a", GPUL__FINDING__SEVERITY__WARN,
           "2 s behind that of the coordinator");
    surveys_release(&s);
}

/* An answer that took too long to tell anything is no pass. */
static void test_slow(void **state)
{
    (void)state;
    struct surveys s;
    assert_int_equal(surveys_init(&s, 1), 0);
    exchange(&s, 0, 0, 400);
    expect(&s, 1, "a", GPUL__FINDING__SEVERITY__UNKNOWN, "could not be");
    surveys_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),  cmocka_unit_test(test_foreign_answer),
        cmocka_unit_test(test_clocks), cmocka_unit_test(test_one),
        cmocka_unit_test(test_slow),
    };
    return cmocka_run_group_tests_name("surveys", tests, NULL, NULL);
}
