/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test proper: run the plan's message sizes over a ring, time each
 * iteration and check every element of each. Edge.
 *
 * Every iteration, warm-ups included, starts from a freshly written buffer
 * (a re-used one flatters the caches and would not show a piece that was
 * never delivered) and from a barrier (so that nobody is timed while waiting
 * for a neighbour that is still writing).
 */
#ifndef WORKER_SWEEP_H
#define WORKER_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/measure.h"
#include "worker/ringlink.h"

struct sweep_row {
    uint64_t count;
    uint32_t iterations;
    struct measure_stats stats; /* this rank's times */
    uint64_t wrong_elements;    /* over all iterations, warm-ups included */
};

struct sweep_result {
    struct sweep_row rows[MEASURE_STEPS_MAX];
    size_t row_count; /* finished ones */
    uint64_t wrong_elements;
    uint64_t first_wrong_index; /* element, of the first wrong iteration */
    uint64_t first_wrong_bytes; /* message size it was seen at */
};

/* For tests: called between the all-reduce and its check; NULL elsewhere. */
typedef void (*sweep_fault_fn)(void *arg, float *data, uint64_t count);

/* Wrong elements are counted and no failure. On failure `out` has the rows
 * that were finished. `deadline_ms` is a reading of gpul_clock_ms.
 * Errors: GPUL_ENOMEM (no buffer of the largest size), and those of
 * collective_host_allreduce with the message size in front. */
int sweep_run(struct sweep_result *out, const struct ringlink *link,
              const struct measure_plan *plan, uint64_t deadline_ms,
              sweep_fault_fn fault, void *arg, struct gpul_error *err);

#endif
