/* SPDX-License-Identifier: Apache-2.0
 *
 * What the double of libcuda offers to the double of libnccl beyond the
 * driver's interface; the real libraries talk through the CUDA runtime. */
#ifndef DOUBLES_CUDA_DOUBLE_H
#define DOUBLES_CUDA_DOUBLE_H

#include <stddef.h>

#include "worker/cuda_api.h"

/* Makes sure that the calling thread has a context, that of device 0 when it
 * has none (as the CUDA runtime does), and gives its device, numbered as the
 * scenario does, and as this process sees it. 0 or a CUDA error. */
typedef int gpulaunch_double_device_fn(int *physical, int *ordinal);

/* The host memory behind `bytes` bytes of device memory, or NULL where they
 * do not lie in one allocation. */
typedef void *gpulaunch_double_memory_fn(const void *address, size_t bytes);

/* Puts the default stream of this thread's context in the place of NULL. 0 or
 * a CUDA error. */
typedef int gpulaunch_double_stream_fn(struct cuda_stream **stream);

/* Has the stream (not NULL) call `run` after all that it has been given before.
 * 0 or a CUDA error. */
typedef int gpulaunch_double_launch_fn(struct cuda_stream *stream,
                                       void (*run)(void *argument),
                                       void *argument);

/* All devices of this process stand still, or go on: streams begin nothing
 * meanwhile. */
typedef void gpulaunch_double_halt_fn(int halts);

gpulaunch_double_device_fn gpulaunch_double_device;
gpulaunch_double_memory_fn gpulaunch_double_memory;
gpulaunch_double_stream_fn gpulaunch_double_stream;
gpulaunch_double_launch_fn gpulaunch_double_launch;
gpulaunch_double_halt_fn gpulaunch_double_halt;

#endif
