/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds our declarations of NCCL, CUDA and NVML against the real headers.
 * Built only where the build finds them, and for what it finds. There is no
 * code in it: every line either compiles or names what differs. C cannot
 * compare functions whose types bear other names, so of a function it only
 * checks that the header has it. Headers older than what the declarations
 * were taken from are left alone.
 */
#include "worker/cuda_api.h"
#include "worker/nccl_api.h"
#include "worker/nvml_api.h"

#define SAME_VALUE(ours, theirs)                                               \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define SAME_SIZE(ours, theirs)                                                \
    _Static_assert(sizeof(ours) == sizeof(theirs) &&                           \
                       _Alignof(ours) == _Alignof(theirs),                     \
                   #ours)
#define SAME_FIELD(ours, our_field, theirs, their_field)                       \
    _Static_assert(offsetof(ours, our_field) ==                                \
                           offsetof(theirs, their_field) &&                    \
                       sizeof(((ours *)0)->our_field) ==                       \
                           sizeof(((theirs *)0)->their_field),                 \
                   #our_field)
#define IS_DECLARED(symbol) _Static_assert(sizeof(&symbol) > 0, #symbol);

#ifdef GPULAUNCH_HAVE_CUDA_H
#include <cuda.h>
#if CUDA_VERSION >= 12000

#define X(need, result, member, parameters, cuda, hip) IS_DECLARED(cuda)
CUDA_API_MAP(X)
#undef X

SAME_SIZE(int, CUresult);
SAME_SIZE(int, CUdevice);
SAME_SIZE(int, CUdevice_attribute);
SAME_SIZE(cuda_address, CUdeviceptr);
SAME_SIZE(struct cuda_uuid, CUuuid);
SAME_VALUE(CUDA_RESULT_SUCCESS, CUDA_SUCCESS);
SAME_VALUE(CUDA_RESULT_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_RESULT_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(CUDA_RESULT_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME_VALUE(CUDA_RESULT_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(CUDA_RESULT_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(CUDA_RESULT_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_VALUE(CUDA_RESULT_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_VALUE(CUDA_RESULT_SYSTEM_DRIVER_MISMATCH,
           CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME_VALUE(CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT,
           CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CUDA_ATTRIBUTE_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME_VALUE(CUDA_ATTRIBUTE_ECC_ENABLED, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME_VALUE(CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
           CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
           CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(CUDA_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME_VALUE(CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
#endif
#endif

#ifdef GPULAUNCH_HAVE_NCCL_H
#include <nccl.h>
#if NCCL_VERSION_CODE >= 22300

#define X(need, result, member, parameters, symbol) IS_DECLARED(symbol)
NCCL_API_MAP(X)
#undef X

SAME_SIZE(int, ncclResult_t);
SAME_SIZE(int, ncclRedOp_t);
SAME_SIZE(int, ncclDataType_t);
SAME_SIZE(struct nccl_unique_id, ncclUniqueId);
SAME_VALUE(NCCL_SUCCESS, ncclSuccess);
SAME_VALUE(NCCL_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError);
SAME_VALUE(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME_VALUE(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME_VALUE(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME_VALUE(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME_VALUE(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME_VALUE(NCCL_IN_PROGRESS, ncclInProgress);
SAME_VALUE(NCCL_SUM, ncclSum);
SAME_VALUE(NCCL_PROD, ncclProd);
SAME_VALUE(NCCL_MAX, ncclMax);
SAME_VALUE(NCCL_MIN, ncclMin);
SAME_VALUE(NCCL_AVG, ncclAvg);
SAME_VALUE(NCCL_INT8, ncclInt8);
SAME_VALUE(NCCL_UINT8, ncclUint8);
SAME_VALUE(NCCL_INT32, ncclInt32);
SAME_VALUE(NCCL_UINT32, ncclUint32);
SAME_VALUE(NCCL_INT64, ncclInt64);
SAME_VALUE(NCCL_UINT64, ncclUint64);
SAME_VALUE(NCCL_FLOAT16, ncclFloat16);
SAME_VALUE(NCCL_FLOAT32, ncclFloat32);
SAME_VALUE(NCCL_FLOAT64, ncclFloat64);
SAME_VALUE(NCCL_BFLOAT16, ncclBfloat16);
SAME_VALUE(NCCL_UNSET_INT, NCCL_CONFIG_UNDEF_INT);
SAME_VALUE(NCCL_NO_COLOR, NCCL_SPLIT_NOCOLOR);
#define CONFIG_FIELD(ours, theirs)                                             \
    SAME_FIELD(struct nccl_config, ours, ncclConfig_t, theirs)
CONFIG_FIELD(size, size);
CONFIG_FIELD(magic, magic);
CONFIG_FIELD(version, version);
CONFIG_FIELD(blocking, blocking);
CONFIG_FIELD(cga_cluster_size, cgaClusterSize);
CONFIG_FIELD(min_ctas, minCTAs);
CONFIG_FIELD(max_ctas, maxCTAs);
CONFIG_FIELD(net_name, netName);
CONFIG_FIELD(split_share, splitShare);
#endif
#endif

#ifdef GPULAUNCH_HAVE_NVML_H
#include <nvml.h>
#if NVML_API_VERSION >= 12

#define X(need, result, member, parameters, symbol) IS_DECLARED(symbol)
NVML_API_MAP(X)
#undef X

SAME_SIZE(int, nvmlReturn_t);
SAME_SIZE(int, nvmlEnableState_t);
SAME_SIZE(int, nvmlComputeMode_t);
SAME_VALUE(NVML_RESULT_SUCCESS, NVML_SUCCESS);
SAME_VALUE(NVML_RESULT_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(NVML_RESULT_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(NVML_RESULT_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NVML_RESULT_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(NVML_RESULT_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_VALUE(NVML_RESULT_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(NVML_RESULT_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(NVML_RESULT_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NVML_RESULT_LIB_RM_VERSION_MISMATCH,
           NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(NVML_RESULT_UNKNOWN, NVML_ERROR_UNKNOWN);
_Static_assert(NVML_UUID_BYTES >= NVML_DEVICE_UUID_V2_BUFFER_SIZE, "UUID");
_Static_assert(NVML_NAME_BYTES >= NVML_DEVICE_NAME_V2_BUFFER_SIZE, "name");
_Static_assert(NVML_VERSION_BYTES >= NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE &&
                   NVML_VERSION_BYTES >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE,
               "version");
SAME_VALUE(NVML_LINKS_MAX, NVML_NVLINK_MAX_LINKS);
SAME_SIZE(struct nvml_pci, nvmlPciInfo_t);
SAME_FIELD(struct nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_FIELD(struct nvml_pci, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_FIELD(struct nvml_memory, total, nvmlMemory_t, total);
SAME_FIELD(struct nvml_memory, free, nvmlMemory_t, free);
SAME_FIELD(struct nvml_memory, used, nvmlMemory_t, used);
SAME_SIZE(struct nvml_utilization, nvmlUtilization_t);
SAME_FIELD(struct nvml_utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(struct nvml_utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(struct nvml_process, nvmlProcessInfo_t);
SAME_FIELD(struct nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_FIELD(struct nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_VALUE(NVML_CLOCKS_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME_VALUE(NVML_CLOCKS_SM, NVML_CLOCK_SM);
SAME_VALUE(NVML_CLOCKS_MEMORY, NVML_CLOCK_MEM);
SAME_VALUE(NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME_VALUE(NVML_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(NVML_ERROR_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_VALUE(NVML_ERROR_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(NVML_COUNTER_VOLATILE, NVML_VOLATILE_ECC);
SAME_VALUE(NVML_COUNTER_AGGREGATE, NVML_AGGREGATE_ECC);
SAME_VALUE(NVML_MODE_DEFAULT, NVML_COMPUTEMODE_DEFAULT);
SAME_VALUE(NVML_MODE_EXCLUSIVE_THREAD, NVML_COMPUTEMODE_EXCLUSIVE_THREAD);
SAME_VALUE(NVML_MODE_PROHIBITED, NVML_COMPUTEMODE_PROHIBITED);
SAME_VALUE(NVML_MODE_EXCLUSIVE_PROCESS, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
SAME_VALUE(NVML_REASON_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME_VALUE(NVML_REASON_APPLICATION_CLOCKS,
           nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME_VALUE(NVML_REASON_SW_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME_VALUE(NVML_REASON_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(NVML_REASON_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost);
SAME_VALUE(NVML_REASON_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME_VALUE(NVML_REASON_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(NVML_REASON_HW_POWER_BRAKE,
           nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(NVML_REASON_DISPLAY_CLOCKS,
           nvmlClocksThrottleReasonDisplayClockSetting);
#endif
#endif
