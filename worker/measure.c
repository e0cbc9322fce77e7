/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/measure.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define BYTES_MAX (UINT64_C(1) << 30)

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

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void plan_range(struct measure_plan *plan, uint64_t from, uint64_t to,
                       uint32_t factor)
{
    plan->step_count = 0;
    for (uint64_t bytes = from;; bytes *= factor) {
        uint64_t count = bytes / sizeof(float);
        plan_add(plan, step_of(count > 0 ? count : 1));
        if (bytes > to / factor) {
            return;
        }
    }
}

/* What was not asked for is taken from the level. */
static void plan_sizes(struct measure_plan *plan, bool is_full,
                       const Gpul__Sweep *sweep)
{
    const uint64_t first = 2 * sizeof(float);
    const uint64_t last = (is_full ? UINT64_C(256) : UINT64_C(16)) << 20;
    uint64_t from = sweep->bytes_min;
    uint64_t to = sweep->bytes_max;
    if (to == 0) {
        to = from > last ? from : last;
    }
    to = smaller(to, BYTES_MAX);
    from = smaller(from > 0 ? from : first, to);
    uint32_t factor = sweep->factor > 1 ? sweep->factor : is_full ? 2 : 8;
    plan_range(plan, from, to, factor);
}

void measure_plan_make(struct measure_plan *out, Gpul__SelfTest__Level level,
                       const Gpul__Sweep *sweep)
{
    bool is_full = level == GPUL__SELF_TEST__LEVEL__FULL;
    if (is_full) {
        measure_plan_full(out);
    } else {
        measure_plan_quick(out);
    }
    if (sweep == NULL) {
        return;
    }
    if (sweep->bytes_min > 0 || sweep->bytes_max > 0 || sweep->factor > 0) {
        plan_sizes(out, is_full, sweep);
    }
    for (size_t i = 0; i < out->step_count; i++) {
        struct measure_step *step = &out->steps[i];
        if (sweep->iterations > 0) {
            step->iterations =
                (uint32_t)smaller(sweep->iterations, MEASURE_ITERATIONS_MAX);
        }
        if (sweep->warmup > 0) {
            step->warmups =
                (uint32_t)smaller(sweep->warmup - 1, MEASURE_ITERATIONS_MAX);
        }
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
