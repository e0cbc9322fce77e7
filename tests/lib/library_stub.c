/* SPDX-License-Identifier: Apache-2.0
 *
 * The stub of libcuda that CUDA's toolkit has for linking, made again: every
 * function is there and answers that it is a stub, as that of CUDA 13 does.
 */
#include "worker/cuda_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define X(need, result, member, parameters, cuda, hip)                         \
    __attribute__((visibility("default"))) result cuda parameters;             \
    result cuda parameters                                                     \
    {                                                                          \
        return CUDA_RESULT_STUB_LIBRARY;                                       \
    }
CUDA_API_MAP(X)
