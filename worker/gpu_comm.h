/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicator of the self-test, from unique IDs to its end, never
 * blocking. Edge.
 *
 * Happy path: one rank per ID calls gpu_comm_id; all call gpu_comm_init with
 * all IDs in the same order; collectives; perhaps all call gpu_comm_split and
 * those of one group have collectives of their own; at last, as long as there
 * is one, all call gpu_comm_finalize and then gpu_comm_destroy.
 *
 * Failure modes: a rank that never comes leaves the others "in progress";
 * they are stopped from outside. After a failure a communicator is only good
 * for gpu_comm_abort, and its IDs for nothing.
 */
#ifndef WORKER_GPU_COMM_H
#define WORKER_GPU_COMM_H

#include <stdint.h>

#include "worker/gpu_call.h"

/* From now on threads of NCCL wait in this process for the ranks of this
 * ID: it must live until its own communicator is ready. */
int gpu_comm_id(struct gpu *g, struct nccl_unique_id *out,
                struct gpul_error *err);

struct gpu_comm_place {
    uint32_t rank;
    uint32_t ranks;
    uint32_t id_count; /* more than 1 needs ncclCommInitRankScalable */
};

/* Sets g->comm. `ids` holds id_count of them. */
int gpu_comm_init(struct gpu *g, const struct gpu_comm_place *place,
                  struct nccl_unique_id *ids, struct gpul_error *err);

/* All ranks of g->comm call it: those with the same `group` get one of their
 * own in its stead, in which `place` (no IDs) is ours. A group of one rank gets
 * none: g->comm stays. Errors: as of init; GPUL_EPROTO without ncclCommSplit
 * (NCCL has it since 2.18). */
int gpu_comm_split(struct gpu *g, uint32_t group,
                   const struct gpu_comm_place *place, struct gpul_error *err);

/* Of g->comm, the split one first. */
int gpu_comm_finalize(struct gpu *g, struct gpul_error *err);

/* The same one; then g->comm is the one that it was split from, or NULL. */
int gpu_comm_destroy(struct gpu *g, struct gpul_error *err);

/* Abort whatever the communicator is doing, if there is one, and the one it
 * was split from. For a thread of its own: it may wait for other ranks, or
 * for ever. */
void gpu_comm_abort(struct gpu *g);

#endif
