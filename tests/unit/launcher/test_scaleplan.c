/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/scaleplan.h"

static void test_counts(void **state)
{
    (void)state;
    uint32_t counts[SCALEPLAN_COUNTS_MAX];
    size_t count;
    assert_int_equal(scaleplan_parse_counts(counts, &count, "8,1,4,2", NULL),
                     0);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(counts[i], 1u << i);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"", "\"\" is no list of counts, as in 1,2,4,8"},
        {"1,", "\"1,\" is no list of counts, as in 1,2,4,8"},
        {"1,,2", "\"1,,2\" is no list of counts, as in 1,2,4,8"},
        {"2,1,2", "2 is there twice"},
        {"0", "\"0\" is not a whole number from 1 to 131072"},
        {"1,x", "\"x\" is not a whole number from 1 to 131072"},
        {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,"
         "27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,"
         "50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65",
         "more than 64 counts"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t counts[SCALEPLAN_COUNTS_MAX];
        size_t count;
        struct gpul_error err = {0};
        assert_int_equal(
            scaleplan_parse_counts(counts, &count, rows[i].text, &err),
            GPUL_EINVAL);
        assert_string_equal(err.text, rows[i].expected);
    }
}

/* Each repeat goes over all counts, up and down by turns. */
static void test_order(void **state)
{
    (void)state;
    const struct scaleplan plan = {
        .counts = {1, 2, 8}, .count_count = 3, .repeats = 3};
    static const uint32_t nodes[] = {1, 2, 8, 8, 2, 1, 1, 2, 8};
    assert_int_equal(scaleplan_run_count(&plan), 9);
    for (size_t i = 0; i < 9; i++) {
        struct scaleplan_run run = scaleplan_run_at(&plan, i);
        assert_int_equal(run.nodes, nodes[i]);
        assert_int_equal(run.repeat, i / 3 + 1);
        assert_int_equal(plan.counts[run.place], run.nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
