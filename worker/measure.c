/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/measure.h"

#include <assert.h>
#include <stdlib.h>

/* Many tries where one costs microseconds, few where it costs a second, so
 * that no size takes much longer than another. */
static struct measure_step step_of(uint64_t count)
{
    uint64_t bytes = count * sizeof(float);
    if (bytes <= UINT64_C(64) << 10) {
        return (struct measure_step){count, 3, 20};
    }
    if (bytes <= UINT64_C(4) << 20) {
        return (struct measure_step){count, 2, 10};
    }
    if (bytes <= UINT64_C(64) << 20) {
        return (struct measure_step){count, 1, 5};
    }
    return (struct measure_step){count, 1, 3};
}

static void plan_add(struct measure_plan *plan, struct measure_step step)
{
    assert(plan->step_count < MEASURE_STEPS_MAX);
    plan->steps[plan->step_count++] = step;
}

void measure_plan_quick(struct measure_plan *out)
{
    static const struct measure_step steps[] = {
        {2, 2, 5},       /* 8 B */
        {256, 1, 5},     /* 1 KiB */
        {16384, 1, 5},   /* 64 KiB */
        {100003, 1, 3},  /* a prime: no number of ranks divides it */
        {262144, 1, 3},  /* 1 MiB */
        {4194304, 1, 3}, /* 16 MiB */
    };
    out->step_count = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        plan_add(out, steps[i]);
    }
}

void measure_plan_full(struct measure_plan *out)
{
    static const uint64_t odd_counts[] = {1,      3,       1009,
                                          100003, 1000003, 16777213};
    const size_t odd_total = sizeof(odd_counts) / sizeof(odd_counts[0]);
    const uint64_t last = UINT64_C(64) << 20; /* elements of 256 MiB */
    size_t odd = 0;
    out->step_count = 0;
    for (uint64_t count = 2; count <= last; count *= 2) {
        while (odd < odd_total && odd_counts[odd] < count) {
            plan_add(out, step_of(odd_counts[odd++]));
        }
        plan_add(out, step_of(count));
    }
}

uint64_t measure_plan_count_max(const struct measure_plan *plan)
{
    uint64_t max = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].count > max) {
            max = plan->steps[i].count;
        }
    }
    return max;
}

static int compare_times(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

void measure_stats(struct measure_stats *out, uint64_t *times_ns, size_t n)
{
    assert(n >= 1);
    qsort(times_ns, n, sizeof(times_ns[0]), compare_times);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += times_ns[i];
    }
    uint64_t low = times_ns[(n - 1) / 2];
    uint64_t high = times_ns[n / 2];
    *out = (struct measure_stats){
        .min_ns = times_ns[0],
        .median_ns = low + (high - low) / 2,
        .max_ns = times_ns[n - 1],
        .mean_ns = sum / n,
    };
}
