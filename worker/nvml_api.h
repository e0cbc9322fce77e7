/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NVIDIA's management library that tells facts about devices,
 * declared here so that no header is needed to build; libnvidia-ml.so.1 is
 * opened at run time. NVML_API_MAP names every symbol once and `struct
 * nvml_api` has one function pointer for each; worker/gpu_abi_check.c
 * compares all of it with nvml.h where that is found.
 *
 * Source: nvml.h of NVML 12. Results are plain ints. Every query of a device
 * is optional: an old driver lacks some, and then the fact is unknown.
 */
#ifndef WORKER_NVML_API_H
#define WORKER_NVML_API_H

struct nvml_device; /* nvmlDevice_t is a pointer to it */

enum nvml_result {
    NVML_RESULT_SUCCESS = 0,
    NVML_RESULT_UNINITIALIZED = 1,
    NVML_RESULT_INVALID_ARGUMENT = 2,
    NVML_RESULT_NOT_SUPPORTED = 3,
    NVML_RESULT_NO_PERMISSION = 4,
    NVML_RESULT_NOT_FOUND = 6,
    NVML_RESULT_INSUFFICIENT_SIZE = 7,
    NVML_RESULT_DRIVER_NOT_LOADED = 9,
    NVML_RESULT_GPU_IS_LOST = 15,
    NVML_RESULT_LIB_RM_VERSION_MISMATCH = 18,
    NVML_RESULT_UNKNOWN = 999,
};

enum nvml_bytes { /* room that is always enough, NUL included */
                  NVML_UUID_BYTES = 96,
                  NVML_NAME_BYTES = 96,
                  NVML_VERSION_BYTES = 80,
};

enum { NVML_LINKS_MAX = 18 };

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    char bus_id[32]; /* "00000000:3B:00.0" */
};

struct nvml_memory { /* bytes */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_utilization { /* percent of the last sample period */
    unsigned gpu;
    unsigned memory;
};

struct nvml_c2c { /* link between the chips of Grace and of its GPU */
    unsigned is_enabled;
};

struct nvml_process { /* as of ..._v3 */
    unsigned pid;     /* in the PID namespace of the driver's host */
    unsigned long long used_bytes; /* all ones: not available */
    unsigned gpu_instance_id;      /* all ones: not a MIG instance */
    unsigned compute_instance_id;
};

enum nvml_clocks {
    NVML_CLOCKS_GRAPHICS = 0,
    NVML_CLOCKS_SM = 1,
    NVML_CLOCKS_MEMORY = 2,
};
enum nvml_sensor { NVML_SENSOR_GPU = 0 };
enum nvml_threshold { NVML_THRESHOLD_SLOWDOWN = 1 }; /* hardware acts */
enum nvml_error_type {
    NVML_ERROR_CORRECTED = 0,
    NVML_ERROR_UNCORRECTED = 1,
};
enum nvml_counter {
    NVML_COUNTER_VOLATILE = 0, /* since the driver was loaded */
    NVML_COUNTER_AGGREGATE = 1,
};
enum nvml_compute_mode {
    NVML_MODE_DEFAULT = 0,
    NVML_MODE_EXCLUSIVE_THREAD = 1,
    NVML_MODE_PROHIBITED = 2,
    NVML_MODE_EXCLUSIVE_PROCESS = 3,
};
enum nvml_reason { /* why clocks are below their maximum; a bit mask */
                   NVML_REASON_IDLE = 0x1,
                   NVML_REASON_APPLICATION_CLOCKS = 0x2,
                   NVML_REASON_SW_POWER_CAP = 0x4,
                   NVML_REASON_HW_SLOWDOWN = 0x8,
                   NVML_REASON_SYNC_BOOST = 0x10,
                   NVML_REASON_SW_THERMAL = 0x20,
                   NVML_REASON_HW_THERMAL = 0x40,
                   NVML_REASON_HW_POWER_BRAKE = 0x80,
                   NVML_REASON_DISPLAY_CLOCKS = 0x100,
};

/* Most queries take a device and one place for a number. */
/* clang-format off */
#define NVML_NUMBER (struct nvml_device *device, unsigned *value)
#define NVML_TEXT (struct nvml_device *device, char *text, unsigned bytes)
#define NVML_NOW_AND_NEXT                                                      \
    (struct nvml_device *device, unsigned *current, unsigned *pending)
#define NVML_BY_KIND (struct nvml_device *device, int kind, unsigned *value)

/* X(need, result type, member, parameters, symbol). `need` is REQUIRED or
 * OPTIONAL; the pointer of a missing optional symbol is NULL. */
#define NVML_API_MAP(X)                                                        \
    X(REQUIRED, int, init, (void), nvmlInit_v2)                                \
    X(REQUIRED, int, shutdown, (void), nvmlShutdown)                           \
    X(REQUIRED, const char *, error_string, (int result), nvmlErrorString)     \
    X(REQUIRED, int, system_get_driver_version, (char *text, unsigned bytes),  \
      nvmlSystemGetDriverVersion)                                              \
    X(REQUIRED, int, system_get_nvml_version, (char *text, unsigned bytes),    \
      nvmlSystemGetNVMLVersion)                                                \
    X(OPTIONAL, int, system_get_cuda_driver_version, (int *version),           \
      nvmlSystemGetCudaDriverVersion_v2)                                       \
    X(REQUIRED, int, device_get_count, (unsigned *count),                      \
      nvmlDeviceGetCount_v2)                                                   \
    X(REQUIRED, int, device_get_handle_by_index,                               \
      (unsigned index, struct nvml_device **device),                           \
      nvmlDeviceGetHandleByIndex_v2)                                           \
    X(REQUIRED, int, device_get_uuid, NVML_TEXT, nvmlDeviceGetUUID)            \
    X(REQUIRED, int, device_get_name, NVML_TEXT, nvmlDeviceGetName)            \
    X(REQUIRED, int, device_get_pci_info,                                      \
      (struct nvml_device *device, struct nvml_pci *pci),                      \
      nvmlDeviceGetPciInfo_v3)                                                 \
    X(REQUIRED, int, device_get_memory_info,                                   \
      (struct nvml_device *device, struct nvml_memory *memory),                \
      nvmlDeviceGetMemoryInfo)                                                 \
    X(OPTIONAL, int, device_get_ecc_mode, NVML_NOW_AND_NEXT,                   \
      nvmlDeviceGetEccMode)                                                    \
    X(OPTIONAL, int, device_get_total_ecc_errors,                              \
      (struct nvml_device *device, int error_type, int counter,                \
       unsigned long long *count),                                             \
      nvmlDeviceGetTotalEccErrors)                                             \
    X(OPTIONAL, int, device_get_remapped_rows,                                 \
      (struct nvml_device *device, unsigned *corrected,                        \
       unsigned *uncorrected, unsigned *pending, unsigned *failed),            \
      nvmlDeviceGetRemappedRows)                                               \
    X(OPTIONAL, int, device_get_mig_mode, NVML_NOW_AND_NEXT,                   \
      nvmlDeviceGetMigMode)                                                    \
    X(OPTIONAL, int, device_get_max_mig_device_count, NVML_NUMBER,             \
      nvmlDeviceGetMaxMigDeviceCount)                                          \
    X(OPTIONAL, int, device_get_mig_device_handle_by_index,                    \
      (struct nvml_device *device, unsigned index, struct nvml_device **mig),  \
      nvmlDeviceGetMigDeviceHandleByIndex)                                     \
    X(OPTIONAL, int, device_get_nvlink_state,                                  \
      (struct nvml_device *device, unsigned link, int *is_active),             \
      nvmlDeviceGetNvLinkState)                                                \
    X(OPTIONAL, int, device_get_nvlink_version,                                \
      (struct nvml_device *device, unsigned link, unsigned *version),          \
      nvmlDeviceGetNvLinkVersion)                                              \
    X(OPTIONAL, int, device_get_curr_pcie_link_generation, NVML_NUMBER,        \
      nvmlDeviceGetCurrPcieLinkGeneration)                                     \
    X(OPTIONAL, int, device_get_curr_pcie_link_width, NVML_NUMBER,             \
      nvmlDeviceGetCurrPcieLinkWidth)                                          \
    X(OPTIONAL, int, device_get_max_pcie_link_generation, NVML_NUMBER,         \
      nvmlDeviceGetMaxPcieLinkGeneration)                                      \
    X(OPTIONAL, int, device_get_max_pcie_link_width, NVML_NUMBER,              \
      nvmlDeviceGetMaxPcieLinkWidth)                                           \
    X(OPTIONAL, int, device_get_c2c_mode_info,                                 \
      (struct nvml_device *device, struct nvml_c2c *info),                     \
      nvmlDeviceGetC2cModeInfoV)                                               \
    X(OPTIONAL, int, device_get_clock_info, NVML_BY_KIND,                      \
      nvmlDeviceGetClockInfo)                                                  \
    X(OPTIONAL, int, device_get_max_clock_info, NVML_BY_KIND,                  \
      nvmlDeviceGetMaxClockInfo)                                               \
    X(OPTIONAL, int, device_get_clocks_throttle_reasons,                       \
      (struct nvml_device *device, unsigned long long *reasons),               \
      nvmlDeviceGetCurrentClocksThrottleReasons)                               \
    X(OPTIONAL, int, device_get_temperature, NVML_BY_KIND,                     \
      nvmlDeviceGetTemperature)                                                \
    X(OPTIONAL, int, device_get_temperature_threshold, NVML_BY_KIND,           \
      nvmlDeviceGetTemperatureThreshold)                                       \
    X(OPTIONAL, int, device_get_power_usage, NVML_NUMBER,                      \
      nvmlDeviceGetPowerUsage) /* milliwatts */                                \
    X(OPTIONAL, int, device_get_enforced_power_limit, NVML_NUMBER,             \
      nvmlDeviceGetEnforcedPowerLimit) /* milliwatts */                        \
    X(OPTIONAL, int, device_get_compute_mode,                                  \
      (struct nvml_device *device, int *mode), nvmlDeviceGetComputeMode)       \
    X(OPTIONAL, int, device_get_persistence_mode,                              \
      (struct nvml_device *device, int *is_on), nvmlDeviceGetPersistenceMode)  \
    X(OPTIONAL, int, device_get_utilization_rates,                             \
      (struct nvml_device *device, struct nvml_utilization *rates),            \
      nvmlDeviceGetUtilizationRates)                                           \
    X(OPTIONAL, int, device_get_compute_running_processes,                     \
      (struct nvml_device *device, unsigned *count,                            \
       struct nvml_process *processes),                                        \
      nvmlDeviceGetComputeRunningProcesses_v3)
/* clang-format on */

struct nvml_api {
#define X(need, result, member, parameters, symbol) result(*member) parameters;
    NVML_API_MAP(X)
#undef X
};

#endif
