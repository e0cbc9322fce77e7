/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/tally.h"

enum { NODES = 70 };

static struct roster roster;

static void setup(void)
{
    char *names = wire_text("n[0-69]");
    Gpul__Job job = GPUL__JOB__INIT;
    job.node_count = NODES;
    job.node_names = &names;
    job.n_node_names = 1;
    assert_int_equal(roster_init(&roster, &job, NULL), 0);
}

static void add(struct tally *t, uint32_t node, const char *text)
{
    assert_non_null(tally_add(t, node, NODES, text));
}

/* The fewest come first, each answer with its nodes folded; a node that
 * repeats itself counts once as a node and each time as an answer. */
static void test_minority_first(void **state)
{
    (void)state;
    struct tally t = {0};
    struct text text;
    setup();
    add(&t, 65, "b");
    add(&t, 3, "a");
    add(&t, 1, "b");
    add(&t, 2, "b");
    add(&t, 3, "a");
    assert_int_equal(t.count, 2);
    assert_int_equal(t.answers[1].node_count, 1);
    assert_int_equal(t.answers[1].times, 2);
    tally_sort(&t);
    tally_describe(&text, &t, &roster);
    assert_string_equal(text.bytes, "n3 has a, n[1-2,65] have b");
    assert_int_equal(tally_first_node(&t.answers[1]), 1);
    tally_release(&t);
    assert_int_equal(t.count, 0);
    roster_release(&roster);
}

/* Four answers are shown, the rest is counted; among equals the one with the
 * first node comes first, in whatever order they came. */
static void test_many(void **state)
{
    (void)state;
    struct tally t = {0};
    struct text text;
    setup();
    for (uint32_t i = 6; i-- > 0;) {
        char answer[] = {(char)('a' + i), 0};
        add(&t, i, answer);
    }
    tally_sort(&t);
    tally_describe(&text, &t, &roster);
    assert_string_equal(text.bytes, "n0 has a, n1 has b, n2 has c, n3 has d, "
                                    "and there are 2 more");
    tally_release(&t);
    roster_release(&roster);
}

/* What does not fit any more is one answer, whatever it says. */
static void test_overflow(void **state)
{
    (void)state;
    struct tally t = {0};
    struct text text;
    setup();
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(text.bytes, sizeof(text.bytes), "%u", i);
        add(&t, i, text.bytes);
    }
    assert_int_equal(t.count, TALLY_ANSWERS_MAX + 1);
    assert_int_equal(t.answers[TALLY_ANSWERS_MAX].node_count, 6);
    assert_null(t.answers[TALLY_ANSWERS_MAX].text);
    t.answers[0].node_count = NODES; /* so that it comes last */
    t.answers[TALLY_ANSWERS_MAX].node_count = 0;
    tally_sort(&t);
    tally_describe(&text, &t, &roster);
    assert_non_null(strstr(text.bytes, "n[64-69] have something else, n1 "));
    tally_release(&t);
    roster_release(&roster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minority_first),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
