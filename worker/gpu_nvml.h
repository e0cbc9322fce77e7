/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of every GPU of this machine, as NVML tells them. It calls the
 * library only through the pointers of `api`, so that tests need none. Pure.
 */
#ifndef WORKER_GPU_NVML_H
#define WORKER_GPU_NVML_H

#include "common/error.h"
#include "worker/gpu_device.h"
#include "worker/nvml_api.h"

/* After api->init(). The GPUs in bus order, then the MIG slices of each; of
 * more than GPU_DEVICES_MAX the rest is left out. A GPU that cannot be
 * opened is there, with its `error`. Errors, with *count 0: GPUL_ESYS, and
 * NVML's own words. */
int gpu_nvml_read(struct gpu_device out[GPU_DEVICES_MAX], size_t *count,
                  const struct nvml_api *api, struct gpul_error *err);

#endif
