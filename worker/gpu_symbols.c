/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_symbols.h"

#include "worker/cuda_api.h"
#include "worker/nccl_api.h"
#include "worker/nvml_api.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The words of the maps' first column. */
#define IS_REQUIRED true
#define IS_OPTIONAL false

static const struct library_symbol nccl[] = {
#define X(need, result, member, parameters, symbol)                            \
    {#symbol, offsetof(struct nccl_api, member), IS_##need},
    NCCL_API_MAP(X)
#undef X
};

static const struct library_symbol cuda[] = {
#define X(need, result, member, parameters, cuda_name, hip_name)               \
    {#cuda_name, offsetof(struct cuda_api, member), IS_##need},
    CUDA_API_MAP(X)
#undef X
};

/* "NONE" is a symbol that no library has, and optional wherever it stands. */
static const struct library_symbol hip[] = {
#define X(need, result, member, parameters, cuda_name, hip_name)               \
    {#hip_name, offsetof(struct cuda_api, member), IS_##need},
    CUDA_API_MAP(X)
#undef X
};

static const struct library_symbol nvml[] = {
#define X(need, result, member, parameters, symbol)                            \
    {#symbol, offsetof(struct nvml_api, member), IS_##need},
    NVML_API_MAP(X)
#undef X
};

const struct library_table *gpu_symbols_nccl(enum gpu_maker maker)
{
    static const struct library_table tables[] = {
        [GPU_NVIDIA] = {"NCCL", "install it, or name its file with --nccl-lib",
                        nccl, COUNT(nccl), sizeof(struct nccl_api)},
        [GPU_AMD] = {"RCCL", "install it, or name its file with --nccl-lib",
                     nccl, COUNT(nccl), sizeof(struct nccl_api)},
    };
    return &tables[maker];
}

const struct library_table *gpu_symbols_cuda(enum gpu_maker maker)
{
    static const struct library_table tables[] = {
        [GPU_NVIDIA] = {"CUDA driver", "install the NVIDIA driver", cuda,
                        COUNT(cuda), sizeof(struct cuda_api)},
        [GPU_AMD] = {"HIP", "install ROCm", hip, COUNT(hip),
                     sizeof(struct cuda_api)},
    };
    return &tables[maker];
}

const struct library_table *gpu_symbols_nvml(void)
{
    static const struct library_table table = {
        "NVML", "install the NVIDIA driver", nvml, COUNT(nvml),
        sizeof(struct nvml_api)};
    return &table;
}
