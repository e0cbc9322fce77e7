/* SPDX-License-Identifier: Apache-2.0
 *
 * What the self-test measures: which message sizes, how often, and how the
 * times of one size become one row. Pure.
 *
 * Every rank runs the same plan to its end, so nobody has to agree on
 * anything while it runs: a count taken from a local clock would differ
 * between ranks, and an all-reduce that one rank leaves out never ends.
 */
#ifndef WORKER_MEASURE_H
#define WORKER_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "gpulaunch.pb-c.h"

enum {
    MEASURE_ITERATIONS_MAX = 1000, /* timed ones, of one step */
    MEASURE_STEPS_MAX = 64,        /* rows that one result may carry */
};

/* One message size. */
struct measure_step {
    uint64_t count;      /* float32 elements */
    uint32_t warmups;    /* iterations that are checked, but not timed */
    uint32_t iterations; /* timed, 1 ... MEASURE_ITERATIONS_MAX */
};

struct measure_plan {
    struct measure_step steps[MEASURE_STEPS_MAX];
    size_t step_count;
};

/* quick: 8 B to 16 MiB in five sizes and an odd one, for every launch.
 * full:  8 B to 256 MiB, doubling, and odd counts between. */
void measure_plan_quick(struct measure_plan *out);
void measure_plan_full(struct measure_plan *out);

/* The level's plan, changed by what the user asked for (NULL: nothing). With
 * -b, -e or -f the sizes run from -b to -e, multiplied by -f, whole elements
 * each; sizes over 1 GiB and iterations over the bound are cut. -c means
 * nothing here: every iteration is checked. */
void measure_plan_make(struct measure_plan *out, Gpul__SelfTest__Level level,
                       const Gpul__Sweep *sweep);

/* Elements of the largest step. */
uint64_t measure_plan_count_max(const struct measure_plan *plan);

struct measure_stats {
    uint64_t min_ns;
    uint64_t median_ns; /* of an even number: the mean of the middle two */
    uint64_t max_ns;
    uint64_t mean_ns;
};

/* Statistics of n >= 1 times; sorts them in place. */
void measure_stats(struct measure_stats *out, uint64_t *times_ns, size_t n);

#endif
