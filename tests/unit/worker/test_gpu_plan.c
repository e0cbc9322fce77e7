/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sizes are run for which request, and who makes the unique IDs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_plan.h"

#define QUICK GPUL__SELF_TEST__LEVEL__QUICK
#define FULL GPUL__SELF_TEST__LEVEL__FULL

static const uint64_t plenty = UINT64_C(1) << 36;

static struct gpu_plan plan;

/* "all-reduce 8 16 32; broadcast 8", sizes in bytes. */
static const char *sizes_text(void)
{
    static char text[8192];
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < plan.step_count; i++) {
        const struct gpu_step *step = &plan.steps[i];
        if (i == 0 || step->collective != plan.steps[i - 1].collective) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
                                  i == 0 ? "" : "; ",
                                  gpul_collective_name(step->collective));
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %llu",
                              (unsigned long long)step->bytes);
    }
    return text;
}

static size_t steps_of(enum gpul_collective collective)
{
    size_t count = 0;
    for (size_t i = 0; i < plan.step_count; i++) {
        count += plan.steps[i].collective == collective;
    }
    return count;
}

/* quick runs all-reduce in six sizes and each other collective in one, a few
 * times each, every size checked. */
static void test_quick(void **state)
{
    (void)state;
    gpu_plan_make(&plan, QUICK, NULL, 8, plenty);
    assert_string_equal(
        sizes_text(),
        "all-reduce 8 1024 65536 400012 1048576 33554432; all-gather 1048576; "
        "reduce-scatter 1048576; broadcast 1048576; all-to-all 1048576; "
        "send/recv 1048576");
    assert_int_equal(plan.bytes_max, 32 << 20);
    for (size_t i = 0; i < plan.step_count; i++) {
        assert_int_equal(plan.steps[i].warmups, 1);
        assert_int_equal(plan.steps[i].iterations, 5);
        assert_int_equal(plan.steps[i].checks, 1);
    }
}

/* full doubles from 8 B to 1 GiB in every collective, and adds odd sizes and
 * the copies; it fits one result. */
static void test_full(void **state)
{
    (void)state;
    gpu_plan_make(&plan, FULL, NULL, 8, plenty);
    assert_int_equal(steps_of(GPUL_ALL_REDUCE), 28 + 5);
    /* 8 and 16 bytes have no element for each of 8 ranks */
    assert_int_equal(steps_of(GPUL_ALL_GATHER), 26);
    assert_int_equal(steps_of(GPUL_REDUCE_SCATTER), 26);
    assert_int_equal(steps_of(GPUL_ALL_TO_ALL), 26);
    assert_int_equal(steps_of(GPUL_BROADCAST), 28);
    assert_int_equal(steps_of(GPUL_SEND_RECV), 28);
    assert_int_equal(steps_of(GPUL_COPY_TO_DEVICE), 1);
    assert_int_equal(steps_of(GPUL_COPY_TO_HOST), 1);
    assert_int_equal(steps_of(GPUL_COPY_ON_DEVICE), 1);
    assert_int_equal(plan.bytes_max, 1 << 30);
    assert_int_equal(plan.steps[0].iterations, 20);
    assert_int_equal(plan.steps[plan.step_count - 1].iterations, 5);
    assert_true(plan.step_count <= GPU_STEPS_MAX);
}

/* -b -e -f choose the sizes of all-reduce; at quick the others run at its
 * largest size, at full through all of them. */
static void test_range(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 64;
    sweep.bytes_max = 1024;
    sweep.factor = 4;
    gpu_plan_make(&plan, QUICK, &sweep, 2, plenty);
    assert_string_equal(sizes_text(),
                        "all-reduce 64 256 1024; all-gather 1024; "
                        "reduce-scatter 1024; broadcast 1024; all-to-all "
                        "1024; send/recv 1024");
    gpu_plan_make(&plan, FULL, &sweep, 2, plenty);
    assert_string_equal(
        sizes_text(),
        "all-reduce 64 256 1024; all-gather 64 256 1024; reduce-scatter 64 "
        "256 1024; broadcast 64 256 1024; all-to-all 64 256 1024; send/recv "
        "64 256 1024; copy to device 33554432; copy to host 33554432; copy on "
        "device 33554432");
}

/* One bound alone moves the other: -b above the level's end is the only
 * size, -e below its beginning too; without a factor there are two sizes. */
static void test_half_a_range(void **state)
{
    (void)state;
    Gpul__Sweep from = GPUL__SWEEP__INIT;
    from.bytes_min = UINT64_C(1) << 31;
    gpu_plan_make(&plan, QUICK, &from, 1, plenty);
    assert_int_equal(steps_of(GPUL_ALL_REDUCE), 1);
    assert_int_equal(plan.bytes_max, UINT64_C(1) << 31);
    Gpul__Sweep to = GPUL__SWEEP__INIT;
    to.bytes_max = 4;
    gpu_plan_make(&plan, QUICK, &to, 1, plenty);
    assert_int_equal(steps_of(GPUL_ALL_REDUCE), 1);
    assert_int_equal(plan.bytes_max, 4);
    Gpul__Sweep ends = GPUL__SWEEP__INIT;
    ends.bytes_min = 8;
    ends.bytes_max = 4096;
    ends.factor = 1;
    gpu_plan_make(&plan, QUICK, &ends, 1, plenty);
    assert_memory_equal(sizes_text(), "all-reduce 8 4096;", 18);
}

/* -n -w -c count as asked, 0 of the last two included, and are bounded. */
static void test_counts(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.iterations = 7;
    sweep.warmup = 1; /* one more than asked */
    sweep.check = 1;
    gpu_plan_make(&plan, QUICK, &sweep, 2, plenty);
    assert_int_equal(plan.steps[0].iterations, 7);
    assert_int_equal(plan.steps[0].warmups, 0);
    assert_int_equal(plan.steps[0].checks, 0);
    sweep.iterations = UINT32_MAX;
    sweep.warmup = UINT32_MAX;
    sweep.check = UINT32_MAX;
    gpu_plan_make(&plan, QUICK, &sweep, 2, plenty);
    assert_int_equal(plan.steps[0].iterations, GPU_ITERATIONS_MAX);
    assert_int_equal(plan.steps[0].warmups, GPU_WARMUPS_MAX);
    assert_int_equal(plan.steps[0].checks, GPU_CHECKS_MAX);
}

/* Memory cuts the sizes; where it leaves none, there is no step. */
static void test_memory(void **state)
{
    (void)state;
    gpu_plan_make(&plan, FULL, NULL, 2, 1000);
    assert_int_equal(plan.bytes_max, 1000);        /* what a copy can take */
    assert_int_equal(steps_of(GPUL_BROADCAST), 7); /* 8 to 512 B */
    gpu_plan_make(&plan, QUICK, NULL, 2, 7);
    assert_int_equal(plan.step_count, 0);
    assert_int_equal(plan.bytes_max, 4);
}

/* A sweep that begins above the memory has no step: the other collectives and
 * the copies alone would pass without one all-reduce. */
static void test_no_all_reduce(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = plenty + 4;
    sweep.bytes_max = UINT64_C(1) << 40;
    for (int level = QUICK; level <= (int)FULL; level++) {
        gpu_plan_make(&plan, (Gpul__SelfTest__Level)level, &sweep, 8, plenty);
        assert_int_equal(plan.step_count, 0);
        assert_int_equal(plan.bytes_max, 4);
        assert_int_equal(plan.bytes_least, plenty + 4);
    }
}

/* Whatever is asked, no step is over the memory, none is empty, and all fit
 * one result. */
static void test_any_request(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {0, 1, 4, 7, 4096, 1 << 30, UINT64_MAX};
    static const uint32_t factors[] = {0, 1, 2, 3, UINT32_MAX};
    static const uint32_t ranks[] = {1, 2, 7, 300, 134217};
    for (size_t i = 0; i < 7 * 7 * 5 * 5; i++) {
        Gpul__Sweep sweep = GPUL__SWEEP__INIT;
        sweep.bytes_min = bytes[i % 7];
        sweep.bytes_max = bytes[i / 7 % 7];
        sweep.factor = factors[i / 49 % 5];
        uint32_t n = ranks[i / 245];
        gpu_plan_make(&plan, i % 2 == 0 ? QUICK : FULL, &sweep, n, plenty);
        assert_true(plan.step_count <= GPU_STEPS_MAX);
        assert_true(plan.step_count == 0 || steps_of(GPUL_ALL_REDUCE) > 0);
        for (size_t s = 0; s < plan.step_count; s++) {
            assert_true(plan.steps[s].count > 0);
            assert_true(plan.steps[s].bytes <= plan.bytes_max);
            assert_int_equal(plan.steps[s].bytes % 4, 0);
        }
        assert_true(plan.bytes_max <= plenty);
    }
}

/* The shares of a collective's total are whole elements: its size is what
 * they come to. */
static void test_shares(void **state)
{
    (void)state;
    gpu_plan_make(&plan, QUICK, NULL, 3, plenty);
    assert_int_equal(plan.steps[4].count, 262144);
    assert_int_equal(plan.steps[6].collective, GPUL_ALL_GATHER);
    assert_int_equal(plan.steps[6].count, 87381);
    assert_int_equal(plan.steps[6].bytes, 4 * 3 * 87381);
}

/* A node by itself runs the same all-reduces as all ranks, and nothing else;
 * of quick ones the largest. */
static void test_within_node(void **state)
{
    (void)state;
    gpu_plan_make(&plan, QUICK, NULL, 4, plenty);
    gpu_plan_within_node(&plan, QUICK);
    assert_string_equal(sizes_text(), "all-reduce 33554432");
    assert_int_equal(plan.bytes_max, 33554432);
    gpu_plan_make(&plan, FULL, NULL, 4, 64);
    gpu_plan_within_node(&plan, FULL);
    assert_string_equal(sizes_text(), "all-reduce 8 16 32 64 12");
    assert_int_equal(plan.bytes_max, 64);
}

/* 300 ranks have 3 IDs, made by ranks 0, 100 and 200; every ID of any world
 * has exactly one root, which knows its index. */
static void test_roots(void **state)
{
    (void)state;
    assert_int_equal(gpu_plan_root(0, 300, 3), 0);
    assert_int_equal(gpu_plan_root(1, 300, 3), 100);
    assert_int_equal(gpu_plan_root(2, 300, 3), 200);
    static const uint32_t worlds[][2] = {
        {1, 1}, {2, 1}, {2, 2}, {129, 2}, {300, 3}, {1000, 7}, {1048576, 400},
    };
    for (size_t w = 0; w < 7; w++) {
        uint32_t next = 0;
        for (uint32_t rank = 0; rank < worlds[w][0]; rank++) {
            uint32_t index;
            if (gpu_plan_root_index(&index, rank, worlds[w][0], worlds[w][1])) {
                assert_int_equal(index, next);
                assert_int_equal(
                    gpu_plan_root(index, worlds[w][0], worlds[w][1]), rank);
                next++;
            }
        }
        assert_int_equal(next, worlds[w][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_half_a_range),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_any_request),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_within_node),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_no_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
