/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_plan.h"

#include "proto/limits.h"

_Static_assert((int)GPU_STEPS_MAX <= (int)GPUL_PROBE_ROWS_MAX,
               "every step must fit one result");
_Static_assert((int)GPUL_ALL_REDUCE ==
                       (int)GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE &&
                   (int)GPUL_COPY_ON_DEVICE ==
                       (int)GPUL__COLLECTIVE__COLLECTIVE_COPY_ON_DEVICE,
               "the numbers of collectives are those of the wire");

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/* What a level fills in where the user said nothing. */
struct defaults {
    uint64_t bytes_min;
    uint64_t bytes_max;
    uint32_t factor;
    bool has_all_sizes; /* of the collectives besides all-reduce */
};

static const struct defaults quick = {8, 32 * MIB, 8, false};
static const struct defaults full = {8, 1024 * MIB, 2, true};

/* Sizes that no number of ranks, block or vector divides. */
static const uint64_t odd_bytes[] = {12, 4036, 400012, 4000012, 67108852};

struct planner {
    struct gpu_plan *plan;
    const struct defaults *defaults;
    const Gpul__Sweep *sweep;
    uint32_t ranks;
    uint64_t bytes_limit;
};

static uint32_t bounded(uint32_t value, uint32_t max)
{
    return value < max ? value : max;
}

/* Fewer where one costs more, so that no size takes much longer than the
 * others together. */
static uint32_t default_iterations(const struct planner *p, uint64_t bytes)
{
    if (!p->defaults->has_all_sizes) {
        return 5;
    }
    if (bytes <= MIB) {
        return 20;
    }
    return bytes <= 64 * MIB ? 10 : 5;
}

static uint32_t default_warmups(const struct planner *p)
{
    return p->defaults->has_all_sizes ? 3 : 1;
}

/* Whose size is the total over ranks: each has its share of it. */
static bool is_shared(enum gpul_collective collective)
{
    return collective == GPUL_ALL_GATHER || collective == GPUL_REDUCE_SCATTER ||
           collective == GPUL_ALL_TO_ALL;
}

static void plan_add(struct planner *p, enum gpul_collective collective,
                     uint64_t bytes)
{
    if (bytes > p->bytes_limit) {
        return;
    }
    uint64_t parts = is_shared(collective) ? p->ranks : 1;
    uint64_t count = bytes / sizeof(float) / parts;
    if (count == 0 || p->plan->step_count == GPU_STEPS_MAX) {
        return;
    }
    const Gpul__Sweep *s = p->sweep;
    struct gpu_step step = {
        .collective = collective,
        .bytes = count * parts * sizeof(float),
        .count = count,
        .warmups = s->warmup > 0 ? bounded(s->warmup - 1, GPU_WARMUPS_MAX)
                                 : default_warmups(p),
        .iterations = s->iterations > 0
                          ? bounded(s->iterations, GPU_ITERATIONS_MAX)
                          : default_iterations(p, bytes),
        .checks = s->check > 0 ? bounded(s->check - 1, GPU_CHECKS_MAX) : 1,
    };
    if (collective == GPUL_COPY_TO_HOST) {
        step.checks = 0; /* every check of the others is such a copy */
    }
    p->plan->steps[p->plan->step_count++] = step;
    if (step.bytes > p->plan->bytes_max) {
        p->plan->bytes_max = step.bytes;
    }
}

/* The sizes of one collective; the largest is what the limit leaves. */
static void plan_sizes(struct planner *p, enum gpul_collective collective,
                       uint64_t from, uint64_t to, uint32_t factor)
{
    uint64_t bytes = from;
    if (to > p->bytes_limit) {
        to = p->bytes_limit;
    }
    while (bytes <= to) {
        plan_add(p, collective, bytes);
        if (factor < 2 || bytes > to / factor) {
            break;
        }
        bytes *= factor;
    }
    if (factor < 2 && from < to) {
        plan_add(p, collective, to);
    }
}

static void plan_quick(struct planner *p)
{
    static const uint64_t sizes[] = {8,      KIB,     64 * KIB,
                                     400012, 1 * MIB, 32 * MIB};
    p->plan->bytes_least = sizes[0];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        plan_add(p, GPUL_ALL_REDUCE, sizes[i]);
    }
    if (p->plan->step_count == 0) {
        return;
    }
    for (int c = GPUL_ALL_GATHER; c <= GPUL_SEND_RECV; c++) {
        plan_add(p, (enum gpul_collective)c, MIB);
    }
}

static void plan_copies(struct planner *p)
{
    uint64_t staged =
        p->bytes_limit < GPU_STAGING_BYTES ? p->bytes_limit : GPU_STAGING_BYTES;
    uint64_t large = p->plan->bytes_max > staged ? p->plan->bytes_max : staged;
    plan_add(p, GPUL_COPY_TO_DEVICE, staged);
    plan_add(p, GPUL_COPY_TO_HOST, staged);
    plan_add(p, GPUL_COPY_ON_DEVICE, large);
}

static void plan_range(struct planner *p)
{
    const struct defaults *d = p->defaults;
    const Gpul__Sweep *s = p->sweep;
    uint64_t from = s->bytes_min;
    uint64_t to = s->bytes_max;
    if (to == 0) {
        to = from > d->bytes_max ? from : d->bytes_max;
    }
    if (from == 0) {
        from = to < d->bytes_min ? to : d->bytes_min;
    }
    uint32_t factor = s->factor > 0 ? s->factor : d->factor;
    p->plan->bytes_least = from;
    plan_sizes(p, GPUL_ALL_REDUCE, from, to, factor);
    if (p->plan->step_count == 0) {
        return; /* the other collectives alone would prove too little */
    }
    uint64_t largest = p->plan->bytes_max;
    for (int c = GPUL_ALL_GATHER; c <= GPUL_SEND_RECV; c++) {
        plan_sizes(p, (enum gpul_collective)c,
                   d->has_all_sizes ? from : largest,
                   d->has_all_sizes ? to : largest, factor);
    }
}

void gpu_plan_make(struct gpu_plan *out, Gpul__SelfTest__Level level,
                   const Gpul__Sweep *sweep, uint32_t ranks,
                   uint64_t bytes_limit)
{
    static const Gpul__Sweep nothing_asked = GPUL__SWEEP__INIT;
    bool is_full = level == GPUL__SELF_TEST__LEVEL__FULL;
    struct planner p = {
        .plan = out,
        .defaults = is_full ? &full : &quick,
        .sweep = sweep != NULL ? sweep : &nothing_asked,
        .ranks = ranks,
        .bytes_limit = bytes_limit,
    };
    out->step_count = 0;
    out->bytes_max = sizeof(float);
    bool is_asked =
        p.sweep->bytes_min > 0 || p.sweep->bytes_max > 0 || p.sweep->factor > 0;
    if (is_full || is_asked) {
        plan_range(&p);
    } else {
        plan_quick(&p);
    }
    if (!is_full || out->step_count == 0) {
        return;
    }
    for (size_t i = 0;
         !is_asked && i < sizeof(odd_bytes) / sizeof(odd_bytes[0]); i++) {
        plan_add(&p, GPUL_ALL_REDUCE, odd_bytes[i]);
    }
    plan_copies(&p);
}

void gpu_plan_within_node(struct gpu_plan *plan, Gpul__SelfTest__Level level)
{
    size_t count = plan->step_count;
    size_t room = GPU_STEPS_MAX - count; /* rows of both share a result */
    bool is_full = level == GPUL__SELF_TEST__LEVEL__FULL;
    plan->step_count = 0;
    plan->bytes_max = sizeof(float);
    for (size_t i = 0; i < count; i++) {
        const struct gpu_step step = plan->steps[i];
        if (step.collective != GPUL_ALL_REDUCE || plan->step_count == room) {
            continue;
        }
        if (is_full || plan->step_count == 0) {
            plan->steps[plan->step_count++] = step;
        } else if (step.bytes > plan->steps[0].bytes) {
            plan->steps[0] = step;
        }
        if (step.bytes > plan->bytes_max) {
            plan->bytes_max = step.bytes;
        }
    }
}

uint32_t gpu_plan_root(uint32_t index, uint32_t ranks, uint32_t id_count)
{
    return (uint32_t)((uint64_t)index * ranks / id_count);
}

bool gpu_plan_root_index(uint32_t *index, uint32_t rank, uint32_t ranks,
                         uint32_t id_count)
{
    /* The first ID whose root is not below `rank`. */
    uint64_t first = ((uint64_t)rank * id_count + ranks - 1) / ranks;
    *index = (uint32_t)first;
    return first < id_count && gpu_plan_root(*index, ranks, id_count) == rank;
}
