/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the self-test on a device: a send and a receive buffer, and
 * a piece of host memory through which patterns come and results go. Edge.
 *
 * Failure modes: an error of the driver, or being stopped. Nothing is freed
 * then: freeing would wait for a device that may hang.
 */
#ifndef WORKER_GPU_BUFFERS_H
#define WORKER_GPU_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "worker/gpu_call.h"
#include "worker/gpu_plan.h"
#include "worker/verify.h"

struct gpu_buffers {
    struct gpu *gpu;
    cuda_address send;
    cuda_address receive;
    float *staging; /* GPU_STAGING_BYTES that the device can reach */
    struct verify_table table;
};

/* The staging memory; no buffers yet. */
int gpu_buffers_init(struct gpu_buffers *b, struct gpu *gpu,
                     struct gpul_error *err);
int gpu_buffers_release(struct gpu_buffers *b, struct gpul_error *err);

/* The two buffers; what is in them is a number. */
int gpu_buffers_allocate(struct gpu_buffers *b, uint64_t send_bytes,
                         uint64_t receive_bytes, struct gpul_error *err);
int gpu_buffers_free(struct gpu_buffers *b, struct gpul_error *err);

/* Write the call's pattern into the send buffer, and into the receive buffer
 * what is no result of any call. */
int gpu_buffers_fill(struct gpu_buffers *b, const struct verify_call *call,
                     struct gpul_error *err);

/* Wait for the call, copy the receive buffer back and check all of it. */
int gpu_buffers_check(struct gpu_buffers *b, struct verify_verdict *verdict,
                      const struct verify_call *call, struct gpul_error *err);

#endif
