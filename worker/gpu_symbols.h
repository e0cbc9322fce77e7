/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries of both makers of GPUs as tables for library_open: RCCL
 * fills the same struct as NCCL, HIP the same as the CUDA driver. Pure.
 */
#ifndef WORKER_GPU_SYMBOLS_H
#define WORKER_GPU_SYMBOLS_H

#include "worker/library.h"

enum gpu_maker {
    GPU_NVIDIA,
    GPU_AMD,
};

/* For struct nccl_api, struct cuda_api and struct nvml_api. */
const struct library_table *gpu_symbols_nccl(enum gpu_maker maker);
const struct library_table *gpu_symbols_cuda(enum gpu_maker maker);
const struct library_table *gpu_symbols_nvml(void);

#endif
