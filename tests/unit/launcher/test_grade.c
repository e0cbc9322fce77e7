/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/grade.h"

enum { LATENCY_NS = 10000, LARGE_NS = 100000 };

static Gpul__SelfTestRow row(uint64_t median_ns, double busbw, double ceiling)
{
    Gpul__SelfTestRow r = GPUL__SELF_TEST_ROW__INIT;
    r.median_ns = median_ns;
    r.algbw_gbps = busbw > 0 ? busbw : 1;
    r.busbw_gbps = busbw;
    r.ceiling_gbps = ceiling;
    return r;
}

/* A share of the ceiling has a verdict; a message that is too small to tell
 * is not blamed, and nothing unknown passes. */
static void test_grades(void **state)
{
    (void)state;
    static const struct {
        uint64_t median_ns;
        double busbw;
        double ceiling;
        enum grade expected;
        Gpul__Link kind;
    } cases[] = {
        {LARGE_NS, 80, 100, GRADE_GOOD, GPUL__LINK__LINK_NVLINK},
        /* NVLS does more than its links. */
        {LARGE_NS, 107, 100, GRADE_GOOD, GPUL__LINK__LINK_NVLINK},
        {LARGE_NS, 79.9, 100, GRADE_LOW, GPUL__LINK__LINK_NVLINK},
        {LARGE_NS, 70, 100, GRADE_LOW, GPUL__LINK__LINK_NVLINK},
        {LARGE_NS, 69.9, 100, GRADE_SLOW, GPUL__LINK__LINK_NVLINK},
        {LARGE_NS, 80, 100, GRADE_GOOD, GPUL__LINK__LINK_RDMA},
        {LARGE_NS, 79.9, 100, GRADE_LOW, GPUL__LINK__LINK_RDMA},
        {LARGE_NS, 65, 100, GRADE_LOW, GPUL__LINK__LINK_RDMA},
        {LARGE_NS, 64.9, 100, GRADE_SLOW, GPUL__LINK__LINK_RDMA},
        {LARGE_NS, 64.9, 100, GRADE_SLOW, GPUL__LINK__LINK_PCIE},
        {LARGE_NS, 50, 100, GRADE_GOOD, GPUL__LINK__LINK_TCP},
        {LARGE_NS, 49.9, 100, GRADE_LOW, GPUL__LINK__LINK_TCP},
        {LARGE_NS, 25, 100, GRADE_LOW, GPUL__LINK__LINK_TCP},
        {LARGE_NS, 24.9, 100, GRADE_SLOW, GPUL__LINK__LINK_TCP},
        {LARGE_NS - 1, 69.9, 100, GRADE_SMALL, GPUL__LINK__LINK_NVLINK},
        {LATENCY_NS, 90, 100, GRADE_GOOD, GPUL__LINK__LINK_NVLINK},
        {LATENCY_NS, 0.01, 100, GRADE_SMALL, GPUL__LINK__LINK_TCP},
        {LARGE_NS, 90, 0, GRADE_UNKNOWN, GPUL__LINK__LINK_NONE},
        /* One rank: n/a. */
        {LARGE_NS, 0, 100, GRADE_UNKNOWN, GPUL__LINK__LINK_NVLINK},
    };
    struct grade_scale scale = {{LATENCY_NS, LATENCY_NS}, false};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Gpul__SelfTestRow r =
            row(cases[i].median_ns, cases[i].busbw, cases[i].ceiling);
        r.ceiling_kind = cases[i].kind;
        assert_int_equal(grade_row(&scale, &r), cases[i].expected);
    }
}

/* A copy waits for nobody, so its size is no excuse. */
static void test_copy(void **state)
{
    (void)state;
    struct grade_scale scale = {{LATENCY_NS, LATENCY_NS}, false};
    Gpul__SelfTestRow r = row(LATENCY_NS, 30, 63);
    r.ceiling_kind = GPUL__LINK__LINK_PCIE;
    r.collective = GPUL__COLLECTIVE__COLLECTIVE_COPY_TO_HOST;
    assert_int_equal(grade_row(&scale, &r), GRADE_SLOW);
    r.busbw_gbps = 55;
    assert_int_equal(grade_row(&scale, &r), GRADE_GOOD);
}

/* No ceiling counts where a double has measured. */
static void test_simulated(void **state)
{
    (void)state;
    struct grade_scale scale = {{LATENCY_NS, LATENCY_NS}, true};
    double percent = 1;
    Gpul__SelfTestRow r = row(LARGE_NS, 50, 100);
    assert_int_equal(grade_row(&scale, &r), GRADE_NONE);
    assert_false(grade_percent(&percent, &scale, &r));
    scale.is_simulated = false;
    assert_true(grade_percent(&percent, &scale, &r));
    assert_int_equal((int)percent, 50);
}

/* What any message costs is the time of the fastest collective; a copy that
 * a device makes by itself is none. */
static void test_scale(void **state)
{
    (void)state;
    Gpul__SelfTestRow slow = row(LARGE_NS, 1, 0), fast = row(LATENCY_NS, 1, 0);
    Gpul__SelfTestRow copy = row(1, 1, 0);
    copy.collective = GPUL__COLLECTIVE__COLLECTIVE_COPY_ON_DEVICE;
    Gpul__SelfTestRow *rows[] = {&slow, &copy, &fast};
    struct grade_scale scale;
    grade_scale_init(&scale, rows, 3, false);
    assert_int_equal(scale.latency_ns[GPUL__SCOPE__SCOPE_WORLD], LATENCY_NS);
    assert_int_equal(scale.latency_ns[GPUL__SCOPE__SCOPE_NODE], LATENCY_NS);
}

/* Within a node a message may cost less; that says nothing of all ranks. */
static void test_scale_of_nodes(void **state)
{
    (void)state;
    Gpul__SelfTestRow world = row(LATENCY_NS, 1, 0);
    Gpul__SelfTestRow node = row(LATENCY_NS / 4, 1, 0);
    node.scope = GPUL__SCOPE__SCOPE_NODE;
    Gpul__SelfTestRow *rows[] = {&world, &node};
    struct grade_scale scale;
    grade_scale_init(&scale, rows, 2, false);
    assert_int_equal(scale.latency_ns[GPUL__SCOPE__SCOPE_WORLD], LATENCY_NS);
    assert_int_equal(scale.latency_ns[GPUL__SCOPE__SCOPE_NODE], LATENCY_NS / 4);
}

/* The words, and none for what is not known. */
static void test_names(void **state)
{
    (void)state;
    assert_null(grade_name(GRADE_NONE));
    assert_string_equal(grade_name(GRADE_SMALL), "small");
    assert_string_equal(grade_name(GRADE_GOOD), "good");
    assert_string_equal(grade_name(GRADE_LOW), "low");
    assert_string_equal(grade_name(GRADE_SLOW), "slow");
    assert_string_equal(grade_name(GRADE_UNKNOWN), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grades), cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_scale),  cmocka_unit_test(test_scale_of_nodes),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
