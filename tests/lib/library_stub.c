/* SPDX-License-Identifier: Apache-2.0
 *
 * All functions of a GPU driver, and each answers with one error: the stub of
 * libcuda that CUDA's toolkit has for linking, made again, or with IS_HIP a
 * HIP that sees no device.
 */
#include "worker/cuda_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* CUDA's functions without a HIP name need names that differ. */
#define NONE UNIQUE(__COUNTER__)
#define UNIQUE(n) UNIQUE_NAME(n)
#define UNIQUE_NAME(n) library_stub_none_##n

#define ANSWER(symbol, parameters, result)                                     \
    __attribute__((visibility("default"))) int symbol parameters;              \
    int symbol parameters                                                      \
    {                                                                          \
        return result;                                                         \
    }

#ifdef IS_HIP
#define X(need, result, member, parameters, cuda, hip)                         \
    ANSWER(hip, parameters, CUDA_RESULT_NO_DEVICE)
#else
#define X(need, result, member, parameters, cuda, hip)                         \
    ANSWER(cuda, parameters, CUDA_RESULT_STUB_LIBRARY)
#endif
CUDA_API_MAP(X)
