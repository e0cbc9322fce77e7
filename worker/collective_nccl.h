/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test proper on GPUs: run a plan of collectives over NCCL on
 * device memory, time each iteration by events of the device, and check
 * every element after copying it back. No kernel of ours is needed. Edge.
 *
 * Happy path:
 *   1. tell each other how much memory is free; the least is the limit, and
 *      from it every rank makes the same plan
 *   2. for each step: warm-ups, timed iterations back to back, checks
 *   3. each check writes the send buffer anew and spoils the receive buffer
 *
 * Failure modes: an error of a library, or being stopped; the text says at
 * which collective and size. Nothing is freed then: freeing would wait for
 * a device that may hang. The end of the process frees it.
 *
 * Wrong elements end the sweep after the check that found them, as an error
 * does: whatever hangs or breaks later cannot hide them.
 */
#ifndef WORKER_COLLECTIVE_NCCL_H
#define WORKER_COLLECTIVE_NCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/gpu_call.h"
#include "worker/gpu_plan.h"
#include "worker/measure.h"

struct collective_row {
    struct gpu_step step;
    struct measure_stats stats; /* this rank's times */
    uint64_t wrong_elements;    /* over all checks of the step */
    bool is_within_node;        /* else: of all ranks */
};

struct collective_result {
    struct collective_row rows[GPU_STEPS_MAX];
    size_t row_count; /* finished ones */
    uint64_t wrong_elements;
    /* The first wrong one, in the order of the plan. */
    enum gpul_collective first_wrong_collective;
    uint64_t first_wrong_index; /* element of the receive buffer */
    uint64_t first_wrong_bytes; /* size of the step */
    uint32_t first_wrong_bit;
    bool first_wrong_is_within_node;
};

struct collective_request {
    uint32_t rank;
    uint32_t ranks;
    Gpul__SelfTest__Level level;
    const Gpul__Sweep *sweep; /* NULL: all the level's own */
    /* Of no step: it is made here, as above. */
    struct gpu_plan *plan;
    bool is_within_node; /* rank and ranks are those of one node */
    /* Called with what is done next; may be NULL. */
    void (*on_step)(void *arg, const char *text);
    void *arg;
};

/* g->comm is ready and its stream and event exist. Rows are added to `out`,
 * on failure those that were finished, and the wrong elements. Errors:
 * GPUL_ESYS, GPUL_ECLOSED when stopped, GPUL_ENOMEM, GPUL_EINVAL when no
 * all-reduce fits. */
int collective_nccl_run(struct collective_result *out, struct gpu *g,
                        const struct collective_request *request,
                        struct gpul_error *err);

#endif
