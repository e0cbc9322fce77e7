/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA_VISIBLE_DEVICES, read as the CUDA driver reads it: a list of indices,
 * of UUIDs or beginnings of UUIDs, or of MIG slices; what stands behind the
 * first entry that names no device does not count. Pure.
 *
 * Source: CUDA C++ Programming Guide, "CUDA Environment Variables". The
 * driver numbers the fastest GPU first unless CUDA_DEVICE_ORDER=PCI_BUS_ID;
 * between GPUs of one model the two orders are the same.
 */
#ifndef WORKER_GPU_VISIBLE_H
#define WORKER_GPU_VISIBLE_H

#include "worker/gpu_device.h"

struct gpu_choice {
    size_t picks[GPU_DEVICES_MAX]; /* places in `devices`, in their order */
    size_t count;
    char refused[GPU_TEXT_BYTES]; /* the entry that named none; "": none */
};

/* Its value in an environment, which ends with NULL; NULL: it is not set. */
const char *gpu_visible_value(const char *const *environment);

/* `value` is NULL where the variable is not set: then all GPUs, and no MIG
 * slice, are chosen. */
void gpu_visible_choose(struct gpu_choice *out,
                        const struct gpu_device *devices, size_t count,
                        const char *value);

#endif
