/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the CUDA driver interface that the self-test calls, declared
 * here so that no toolkit is needed to build; libcuda is opened at run time.
 * CUDA_API_MAP names every symbol once, with the HIP function that does the
 * same beside it, and `struct cuda_api` has one function pointer for each.
 * worker/gpu_abi_check.c compares all of it with cuda.h where that is found.
 *
 * Sources: cuda.h of CUDA 12 and 13 (the exported names carry the _v2 that
 * cuda.h hides behind macros) and hip_runtime_api.h of ROCm 5.7 and later.
 * Results are plain ints, since a newer driver may return any number.
 */
#ifndef WORKER_CUDA_API_H
#define WORKER_CUDA_API_H

#include <stddef.h>

struct cuda_context; /* CUcontext is a pointer to it */
struct cuda_stream;  /* CUstream, cudaStream_t, hipStream_t */
struct cuda_event;   /* CUevent */

/* An address in device memory. HIP has `void *` here; both are one register
 * of 64 bits on every machine that has either. */
typedef unsigned long long cuda_address;

struct cuda_uuid {
    char bytes[16];
};

enum cuda_result { /* HIP uses the same numbers for these */
                   CUDA_RESULT_SUCCESS = 0,
                   CUDA_RESULT_OUT_OF_MEMORY = 2,
                   CUDA_RESULT_NOT_INITIALIZED = 3,
                   CUDA_RESULT_STUB_LIBRARY = 34,
                   CUDA_RESULT_NO_DEVICE = 100,
                   CUDA_RESULT_INVALID_DEVICE = 101,
                   CUDA_RESULT_NOT_READY = 600,
                   CUDA_RESULT_SYSTEM_NOT_READY = 802,
                   CUDA_RESULT_SYSTEM_DRIVER_MISMATCH = 803,
};

/* CUdevice_attribute. HIP numbers its attributes otherwise, so
 * device_get_attribute has no HIP name. */
enum cuda_attribute {
    CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CUDA_ATTRIBUTE_COMPUTE_MODE = 20,
    CUDA_ATTRIBUTE_ECC_ENABLED = 32,
    CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
};

enum cuda_stream_flag { CUDA_STREAM_NON_BLOCKING = 1 };
enum cuda_event_flag {
    CUDA_EVENT_DEFAULT = 0,
    CUDA_EVENT_DISABLE_TIMING = 2,
};
enum cuda_host_flag { CUDA_HOST_PORTABLE = 1 };

/* X(need, result type, member, parameters, CUDA symbol, HIP symbol). `need`
 * is REQUIRED or OPTIONAL; the pointer of a missing optional symbol, or of
 * one whose HIP symbol is NONE, is NULL. Times are in milliseconds. */
/* clang-format off */
#define CUDA_API_MAP(X)                                                        \
    X(REQUIRED, int, init, (unsigned flags), cuInit, hipInit)                  \
    X(REQUIRED, int, driver_get_version, (int *version), cuDriverGetVersion,   \
      hipDriverGetVersion)                                                     \
    X(REQUIRED, int, get_error_name, (int result, const char **text),          \
      cuGetErrorName, hipDrvGetErrorName)                                      \
    X(REQUIRED, int, get_error_string, (int result, const char **text),        \
      cuGetErrorString, hipDrvGetErrorString)                                  \
    X(REQUIRED, int, device_get_count, (int *count), cuDeviceGetCount,         \
      hipGetDeviceCount)                                                       \
    X(REQUIRED, int, device_get, (int *device, int ordinal), cuDeviceGet,      \
      hipDeviceGet)                                                            \
    X(REQUIRED, int, device_get_name, (char *name, int bytes, int device),     \
      cuDeviceGetName, hipDeviceGetName)                                       \
    X(REQUIRED, int, device_total_mem, (size_t *bytes, int device),            \
      cuDeviceTotalMem_v2, hipDeviceTotalMem)                                  \
    X(REQUIRED, int, device_get_pci_bus_id,                                    \
      (char *text, int bytes, int device), cuDeviceGetPCIBusId,                \
      hipDeviceGetPCIBusId)                                                    \
    X(REQUIRED, int, device_get_uuid, (struct cuda_uuid *uuid, int device),    \
      cuDeviceGetUuid, hipDeviceGetUuid)                                       \
    X(OPTIONAL, int, device_get_uuid_v2,                                       \
      (struct cuda_uuid *uuid, int device), cuDeviceGetUuid_v2, NONE)          \
    X(OPTIONAL, int, device_get_attribute,                                     \
      (int *value, int attribute, int device), cuDeviceGetAttribute, NONE)     \
    X(REQUIRED, int, device_primary_ctx_retain,                                \
      (struct cuda_context **context, int device), cuDevicePrimaryCtxRetain,   \
      hipDevicePrimaryCtxRetain)                                               \
    X(REQUIRED, int, device_primary_ctx_release, (int device),                 \
      cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)                \
    X(REQUIRED, int, ctx_set_current, (struct cuda_context *context),          \
      cuCtxSetCurrent, hipCtxSetCurrent)                                       \
    X(REQUIRED, int, mem_get_info, (size_t *free, size_t *total),              \
      cuMemGetInfo_v2, hipMemGetInfo)                                          \
    X(REQUIRED, int, mem_alloc, (cuda_address *address, size_t bytes),         \
      cuMemAlloc_v2, hipMalloc)                                                \
    X(REQUIRED, int, mem_free, (cuda_address address), cuMemFree_v2, hipFree)  \
    X(REQUIRED, int, mem_host_alloc,                                           \
      (void **memory, size_t bytes, unsigned flags), cuMemHostAlloc,           \
      hipHostMalloc)                                                           \
    X(REQUIRED, int, mem_free_host, (void *memory), cuMemFreeHost,             \
      hipHostFree)                                                             \
    X(REQUIRED, int, memset_d8_async,                                          \
      (cuda_address to, unsigned char value, size_t count,                     \
       struct cuda_stream *stream),                                            \
      cuMemsetD8Async, hipMemsetD8Async)                                       \
    X(REQUIRED, int, memset_d16_async,                                         \
      (cuda_address to, unsigned short value, size_t count,                    \
       struct cuda_stream *stream),                                            \
      cuMemsetD16Async, hipMemsetD16Async)                                     \
    X(REQUIRED, int, memset_d32_async,                                         \
      (cuda_address to, unsigned value, size_t count,                          \
       struct cuda_stream *stream),                                            \
      cuMemsetD32Async, hipMemsetD32Async)                                     \
    X(REQUIRED, int, memcpy_h_to_d,                                            \
      (cuda_address to, const void *from, size_t bytes), cuMemcpyHtoD_v2,      \
      hipMemcpyHtoD)                                                           \
    X(REQUIRED, int, memcpy_d_to_h,                                            \
      (void *to, cuda_address from, size_t bytes), cuMemcpyDtoH_v2,            \
      hipMemcpyDtoH)                                                           \
    X(REQUIRED, int, memcpy_d_to_d,                                            \
      (cuda_address to, cuda_address from, size_t bytes), cuMemcpyDtoD_v2,     \
      hipMemcpyDtoD)                                                           \
    X(REQUIRED, int, memcpy_h_to_d_async,                                      \
      (cuda_address to, const void *from, size_t bytes,                        \
       struct cuda_stream *stream),                                            \
      cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)                                \
    X(REQUIRED, int, memcpy_d_to_h_async,                                      \
      (void *to, cuda_address from, size_t bytes, struct cuda_stream *stream), \
      cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)                                \
    X(REQUIRED, int, memcpy_d_to_d_async,                                      \
      (cuda_address to, cuda_address from, size_t bytes,                       \
       struct cuda_stream *stream),                                            \
      cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)                                \
    X(REQUIRED, int, stream_create,                                            \
      (struct cuda_stream **stream, unsigned flags), cuStreamCreate,           \
      hipStreamCreateWithFlags)                                                \
    X(REQUIRED, int, stream_query, (struct cuda_stream *stream),               \
      cuStreamQuery, hipStreamQuery)                                           \
    X(REQUIRED, int, stream_destroy, (struct cuda_stream *stream),             \
      cuStreamDestroy_v2, hipStreamDestroy)                                    \
    X(REQUIRED, int, event_create,                                             \
      (struct cuda_event **event, unsigned flags), cuEventCreate,              \
      hipEventCreateWithFlags)                                                 \
    X(REQUIRED, int, event_record,                                             \
      (struct cuda_event *event, struct cuda_stream *stream), cuEventRecord,   \
      hipEventRecord)                                                          \
    X(REQUIRED, int, event_query, (struct cuda_event *event), cuEventQuery,    \
      hipEventQuery)                                                           \
    X(REQUIRED, int, event_elapsed_time,                                       \
      (float *ms, struct cuda_event *from, struct cuda_event *to),             \
      cuEventElapsedTime, hipEventElapsedTime)                                 \
    X(REQUIRED, int, event_destroy, (struct cuda_event *event),                \
      cuEventDestroy_v2, hipEventDestroy)
/* clang-format on */

struct cuda_api {
#define X(need, result, member, parameters, cuda, hip)                         \
    result(*member) parameters;
    CUDA_API_MAP(X)
#undef X
};

#endif
