/* SPDX-License-Identifier: Apache-2.0
 *
 * The double of libcuda, as the double of libnccl finds it: the library that
 * the program has opened, else the one beside this one. */
#ifndef DOUBLES_NCCL_CUDA_H
#define DOUBLES_NCCL_CUDA_H

#include "tests/doubles/cuda_double.h"

struct nccl_cuda {
    gpulaunch_double_device_fn *device;
    gpulaunch_double_memory_fn *memory;
    gpulaunch_double_stream_fn *stream;
    gpulaunch_double_launch_fn *launch;
    gpulaunch_double_halt_fn *halt;
    int (*get_error_string)(int result, const char **text);
};

/* NULL, with the reason as the last error, where there is none, or where
 * libcuda.so.1 is the real one: the two cannot be mixed. */
const struct nccl_cuda *nccl_cuda(void);

/* NCCL_UNHANDLED_CUDA_ERROR with NCCL's words, or NCCL_SUCCESS for 0. */
int nccl_cuda_result(int status);

#endif
