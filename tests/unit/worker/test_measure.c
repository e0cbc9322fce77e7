/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/measure.h"

static bool plan_has(const struct measure_plan *plan, uint64_t bytes)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].count * sizeof(float) == bytes) {
            return true;
        }
    }
    return false;
}

/* What holds for any plan: sizes rise, and every step is timed. */
static void assert_valid(const struct measure_plan *plan)
{
    assert_in_range(plan->step_count, 1, MEASURE_STEPS_MAX);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct measure_step *step = &plan->steps[i];
        assert_in_range(step->iterations, 1, MEASURE_ITERATIONS_MAX);
        assert_in_range(step->warmups, 1, MEASURE_ITERATIONS_MAX);
        assert_true(i == 0 || step->count > plan->steps[i - 1].count);
    }
}

/* The quick plan has its five sizes and one odd count, and moves few bytes. */
static void test_quick(void **state)
{
    (void)state;
    struct measure_plan plan;
    measure_plan_quick(&plan);
    assert_valid(&plan);
    assert_int_equal(plan.step_count, 6);
    static const uint64_t sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 16 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_true(plan_has(&plan, sizes[i]));
    }
    assert_true(plan_has(&plan, 4 * 100003));
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan.step_count; i++) {
        bytes += (plan.steps[i].warmups + plan.steps[i].iterations) *
                 plan.steps[i].count * sizeof(float);
    }
    assert_true(bytes < UINT64_C(80) << 20);
    assert_int_equal(measure_plan_count_max(&plan), 4 << 20);
}

/* The full plan has every power of two from 8 B to 256 MiB, and odd counts,
 * below the number of ranks as well as large. */
static void test_full(void **state)
{
    (void)state;
    struct measure_plan plan;
    size_t odd = 0;
    measure_plan_full(&plan);
    assert_valid(&plan);
    for (uint64_t bytes = 8; bytes <= UINT64_C(256) << 20; bytes *= 2) {
        assert_true(plan_has(&plan, bytes));
    }
    for (size_t i = 0; i < plan.step_count; i++) {
        odd += plan.steps[i].count % 2;
    }
    assert_int_equal(odd, 6);
    assert_true(plan_has(&plan, 4));
    assert_true(plan_has(&plan, 4 * 16777213));
    assert_int_equal(plan.step_count, 26 + 6);
    assert_int_equal(measure_plan_count_max(&plan), 64 << 20);
}

/* -b, -e and -f make the sizes; what was not asked for is the level's own,
 * too much is cut. */
static void test_sweep(void **state)
{
    (void)state;
    static const struct {
        Gpul__SelfTest__Level level;
        uint64_t bytes_min, bytes_max;
        uint32_t factor;
        size_t steps;
        uint64_t first, last; /* elements */
    } cases[] = {
        {GPUL__SELF_TEST__LEVEL__QUICK, 4, 4, 0, 1, 1, 1},
        {GPUL__SELF_TEST__LEVEL__QUICK, 4, 7, 2, 1, 1, 1},
        {GPUL__SELF_TEST__LEVEL__QUICK, 0, 4096, 0, 4, 2, 1024},
        {GPUL__SELF_TEST__LEVEL__QUICK, 1 << 20, 0, 16, 2, 1 << 18, 1 << 22},
        {GPUL__SELF_TEST__LEVEL__FULL, 0, 0, 4, 13, 2, 1 << 25},
        {GPUL__SELF_TEST__LEVEL__FULL, 64, 1024, 0, 5, 16, 256},
        {GPUL__SELF_TEST__LEVEL__FULL, UINT64_C(1) << 40, UINT64_C(1) << 40, 0,
         1, 1 << 28, 1 << 28},
        {GPUL__SELF_TEST__LEVEL__FULL, 4, UINT64_C(1) << 40, 2, 29, 1, 1 << 28},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct measure_plan plan;
        Gpul__Sweep sweep = GPUL__SWEEP__INIT;
        sweep.bytes_min = cases[i].bytes_min;
        sweep.bytes_max = cases[i].bytes_max;
        sweep.factor = cases[i].factor;
        measure_plan_make(&plan, cases[i].level, &sweep);
        assert_valid(&plan);
        assert_int_equal(plan.step_count, cases[i].steps);
        assert_int_equal(plan.steps[0].count, cases[i].first);
        assert_int_equal(measure_plan_count_max(&plan), cases[i].last);
    }
}

/* -n and -w change each step of the plan, within bounds. */
static void test_sweep_counts(void **state)
{
    (void)state;
    struct measure_plan plan, level;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    measure_plan_make(&plan, GPUL__SELF_TEST__LEVEL__QUICK, NULL);
    measure_plan_quick(&level);
    assert_memory_equal(plan.steps, level.steps,
                        level.step_count * sizeof(level.steps[0]));
    sweep.iterations = 7;
    sweep.warmup = 1; /* none at all: it is one more than asked */
    measure_plan_make(&plan, GPUL__SELF_TEST__LEVEL__QUICK, &sweep);
    assert_int_equal(plan.step_count, level.step_count);
    assert_int_equal(plan.steps[5].iterations, 7);
    assert_int_equal(plan.steps[5].warmups, 0);
    sweep.iterations = sweep.warmup = UINT32_MAX;
    measure_plan_make(&plan, GPUL__SELF_TEST__LEVEL__QUICK, &sweep);
    assert_int_equal(plan.steps[0].iterations, MEASURE_ITERATIONS_MAX);
    assert_int_equal(plan.steps[0].warmups, MEASURE_ITERATIONS_MAX);
}

/* Two calls give the same plan: that is all the agreement ranks have. */
static void test_plans_are_fixed(void **state)
{
    (void)state;
    struct measure_plan first;
    struct measure_plan second;
    memset(&first, 0, sizeof(first));
    memset(&second, 0xff, sizeof(second));
    measure_plan_full(&first);
    measure_plan_full(&second);
    assert_int_equal(first.step_count, second.step_count);
    assert_memory_equal(first.steps, second.steps,
                        first.step_count * sizeof(first.steps[0]));
}

/* Statistics of odd and even numbers of times, in any order, huge included. */
static void test_stats(void **state)
{
    (void)state;
    static const struct {
        uint64_t times[5];
        size_t n;
        struct measure_stats expected; /* min, median, max, mean */
    } cases[] = {
        {{7}, 1, {7, 7, 7, 7}},
        {{9, 1}, 2, {1, 5, 9, 5}},
        {{3, 1, 2}, 3, {1, 2, 3, 2}},
        {{100, 1, 4, 1}, 4, {1, 2, 100, 26}},
        {{5, 4, 3, 2, 1}, 5, {1, 3, 5, 3}},
        {{1u << 31, UINT64_C(1) << 60, 0},
         3,
         {0, 1u << 31, UINT64_C(1) << 60,
          ((UINT64_C(1) << 60) + (1u << 31)) / 3}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t times[5];
        struct measure_stats stats;
        memcpy(times, cases[i].times, sizeof(times));
        measure_stats(&stats, times, cases[i].n);
        assert_memory_equal(&stats, &cases[i].expected, sizeof(stats));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_counts),
        cmocka_unit_test(test_plans_are_fixed),
        cmocka_unit_test(test_stats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
