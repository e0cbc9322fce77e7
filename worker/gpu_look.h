/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPUs of a rank do while it makes no step, from one reading of NVML,
 * in words. Pure.
 *
 * A kernel that waits for a peer in a loop, as NCCL's do, keeps its GPU always
 * busy at little power and leaves its memory alone: it spins. The bounds are
 * those of docs/supervision.md, "What the GPUs do", which has the figures that
 * they come from.
 */
#ifndef WORKER_GPU_LOOK_H
#define WORKER_GPU_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/limits.h"
#include "worker/gpu_device.h"

/* In the order in which they are told: in a hang the odd one is the cause, and
 * those that spin wait for it. */
enum gpu_look_state {
    GPU_LOOK_UNKNOWN,
    GPU_LOOK_IDLE,
    GPU_LOOK_PARTLY, /* busy for part of the time */
    GPU_LOOK_WORKS,
    GPU_LOOK_BUSY, /* it works or spins, which cannot be told */
    GPU_LOOK_SPINS,
    GPU_LOOK_STATE_COUNT,
};

/* All GPUs of a node at one time. Large: keep it on the heap. */
struct gpu_look {
    bool is_simulated;                 /* NVML is a double of our tests */
    char error[GPUL_ERROR_TEXT_BYTES]; /* why there is nothing; "": there is */
    uint32_t count;                    /* 0, and no error: it has no GPU */
    struct gpu_device devices[GPU_DEVICES_MAX];
};

/* What is known of a rank. */
struct gpu_look_rank {
    const char *visible; /* its CUDA_VISIBLE_DEVICES; NULL: not set */
    bool has_bus_order;  /* its CUDA_DEVICE_ORDER is PCI_BUS_ID */
    uint64_t own;        /* bit n: a process of it is on devices[n] */
};

enum gpu_look_state gpu_look_judge(const struct gpu_device *d);

/* One line; "" where there is nothing to say. The same for ranks whose GPUs do
 * the same, so no number that would set them apart is in it. */
void gpu_look_words(char out[GPUL_FINDING_BYTES_MAX + 1],
                    const struct gpu_look *look,
                    const struct gpu_look_rank *rank);

#endif
