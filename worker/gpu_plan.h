/* SPDX-License-Identifier: Apache-2.0
 *
 * What the self-test runs on GPUs: which collective, which sizes, how often,
 * in nccl-tests' terms. Pure.
 *
 * Every rank makes the same plan from the same request and the same memory
 * limit, and runs it to its end: a collective that one rank leaves out or
 * calls with another size never ends.
 */
#ifndef WORKER_GPU_PLAN_H
#define WORKER_GPU_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bandwidth.h"
#include "gpulaunch.pb-c.h"

enum {
    GPU_STEPS_MAX = 250,       /* rows that one result may carry, and room */
    GPU_ITERATIONS_MAX = 1000, /* timed ones, of one step; more are cut */
    GPU_WARMUPS_MAX = 1000,
    GPU_CHECKS_MAX = 100,
    /* A copy between host and device goes through memory of this size. */
    GPU_STAGING_BYTES = 32 << 20,
};

struct gpu_step {
    enum gpul_collective collective;
    uint64_t bytes;      /* nccl-tests' "size": the larger of what a rank
                          * sends and what it receives */
    uint64_t count;      /* nccl-tests' "count": float32 elements, as the
                          * call takes them */
    uint32_t warmups;    /* neither timed nor checked */
    uint32_t iterations; /* timed */
    uint32_t checks;     /* after them, each with rewritten buffers */
};

struct gpu_plan {
    struct gpu_step steps[GPU_STEPS_MAX];
    size_t step_count;
    uint64_t bytes_max;   /* of the largest step, at least one element */
    uint64_t bytes_least; /* the smallest all-reduce that was asked for */
};

/* -b -e -f -n -w -c of `sweep`; what is 0 there is the level's own:
 *
 *   quick  all-reduce in a few sizes up to 32 MiB, one of them odd; the
 *          other collectives at 1 MiB
 *   full   every collective from 8 B to 1 GiB, doubling; all-reduce also in
 *          odd sizes; the copies of each device
 *
 * With -b, -e or -f all-reduce runs from -b to -e, multiplied by -f; the
 * other collectives do so too (full), or at the largest size (quick).
 *
 * `bytes_limit` cuts the sizes, as nccl-tests does where memory is short. A
 * size that gives some rank no element is left out. Where not even the least
 * all-reduce fits, there is no step at all: the rest would prove nothing. */
void gpu_plan_make(struct gpu_plan *out, Gpul__SelfTest__Level level,
                   const Gpul__Sweep *sweep, uint32_t ranks,
                   uint64_t bytes_limit);

/* What the ranks of one node run among themselves after `plan`, in its place:
 * its all-reduces; of a quick one only the largest. */
void gpu_plan_within_node(struct gpu_plan *plan, Gpul__SelfTest__Level level);

/* The rank that makes unique ID `index`: floor(index * ranks / id_count), so
 * that roots are spread evenly (index < id_count <= ranks). */
uint32_t gpu_plan_root(uint32_t index, uint32_t ranks, uint32_t id_count);

/* Is `rank` a root, and of which ID? */
bool gpu_plan_root_index(uint32_t *index, uint32_t rank, uint32_t ranks,
                         uint32_t id_count);

#endif
