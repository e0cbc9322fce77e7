/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA driver (or HIP) tells of its devices where there is no NVML:
 * far less, and only of devices that CUDA_VISIBLE_DEVICES leaves. It calls
 * the library only through the pointers of `api`. Pure.
 */
#ifndef WORKER_GPU_CUDA_H
#define WORKER_GPU_CUDA_H

#include "common/error.h"
#include "worker/cuda_api.h"
#include "worker/gpu_device.h"
#include "worker/gpu_symbols.h"

/* "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", or the number
 * where the driver has no words for it. */
void gpu_cuda_error(char *out, size_t bytes, const struct cuda_api *api,
                    int result);

/* After api->init(); makes no context. Errors, with *count 0: GPUL_ESYS. */
int gpu_cuda_read(struct gpu_device out[GPU_DEVICES_MAX], size_t *count,
                  const struct cuda_api *api, enum gpu_maker maker,
                  struct gpul_error *err);

/* As NVML writes it; `out` has GPU_TEXT_BYTES. A UUID that CUDA has only for
 * a MIG slice begins with "MIG-". */
void gpu_cuda_uuid_text(char *out, const struct cuda_uuid *uuid,
                        enum gpu_maker maker, bool is_slice);

#endif
