/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of libnvidia-ml: the facts of the scenario, and the memory and
 * processes that the double of libcuda keeps account of. */
#include "worker/nvml_api.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/doubles/export.h"
#include "tests/doubles/fault.h"
#include "tests/doubles/hide.h"
#include "tests/doubles/records.h"

#define X(need, result, member, parameters, symbol)                            \
    DOUBLE_EXPORT result symbol parameters;
NVML_API_MAP(X)
#undef X

DOUBLE_MARKER("libnvidia-ml");

struct nvml_device {
    char unused; /* its place in the array is all that there is to it */
};

static struct nvml_device handles[SCENARIO_GPUS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users; /* nvmlInit without nvmlShutdown; guarded by lock */

__attribute__((constructor)) static void library_open(void)
{
    hide_symbols(gpulaunch_double, "nvml");
}

/* --- The library -------------------------------------------------------- */

int nvmlInit_v2(void)
{
    const struct scenario *scenario = scenario_get();
    int code = fault_early(POINT_FACTS, SCENARIO_ANY);

    if (code == 0)
        code = (int)scenario->nvml_init;
    if (code == 0 && scenario->gpu_count == 0)
        code = NVML_RESULT_DRIVER_NOT_LOADED;
    if (code != 0)
        return code;
    (void)pthread_mutex_lock(&lock);
    users++;
    (void)pthread_mutex_unlock(&lock);
    return NVML_RESULT_SUCCESS;
}

static bool is_open(void)
{
    (void)pthread_mutex_lock(&lock);
    bool answer = users > 0;
    (void)pthread_mutex_unlock(&lock);
    return answer;
}

int nvmlShutdown(void)
{
    int status = NVML_RESULT_UNINITIALIZED;

    (void)pthread_mutex_lock(&lock);
    if (users > 0) {
        users--;
        status = NVML_RESULT_SUCCESS;
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

const char *nvmlErrorString(int result)
{
    static const struct {
        int code;
        const char *text;
    } errors[] = {
        {0, "Success"},
        {1, "Uninitialized"},
        {2, "Invalid Argument"},
        {3, "Not Supported"},
        {4, "Insufficient Permissions"},
        {6, "Not Found"},
        {7, "Insufficient Size"},
        {9, "Driver Not Loaded"},
        {15, "GPU is lost"},
        {18, "Driver/library version mismatch"},
    };

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == result)
            return errors[i].text;
    return "Unknown Error";
}

/* A text into a caller's room. */
static int text_out(const char *from, char *text, unsigned bytes)
{
    if (!text)
        return NVML_RESULT_INVALID_ARGUMENT;
    if (strlen(from) >= bytes)
        return NVML_RESULT_INSUFFICIENT_SIZE;
    memcpy(text, from, strlen(from) + 1);
    return NVML_RESULT_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    return is_open() ? text_out(scenario_get()->driver, text, bytes)
                     : NVML_RESULT_UNINITIALIZED;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned bytes)
{
    return text_out(scenario_get()->nvml, text, bytes);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = (int)scenario_get()->cuda;
    return NVML_RESULT_SUCCESS;
}

/* --- Devices ------------------------------------------------------------ */

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)scenario_get()->gpu_count;
    return is_open() ? NVML_RESULT_SUCCESS : NVML_RESULT_UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    const struct scenario *scenario = scenario_get();

    *device = NULL;
    if (!is_open())
        return NVML_RESULT_UNINITIALIZED;
    if (index >= scenario->gpu_count)
        return NVML_RESULT_INVALID_ARGUMENT;
    if (scenario->gpus[index].lost)
        return NVML_RESULT_GPU_IS_LOST;
    *device = &handles[index];
    return NVML_RESULT_SUCCESS;
}

/* The facts of a device: 0, or why there are none. */
static int facts(const struct nvml_device *device,
                 const struct scenario_gpu **gpu)
{
    if (!is_open())
        return NVML_RESULT_UNINITIALIZED;
    if (!device)
        return NVML_RESULT_INVALID_ARGUMENT;
    *gpu = &scenario_get()->gpus[device - handles];
    return NVML_RESULT_SUCCESS;
}

/* A query that only fetches: `statement` may use `gpu` and the parameters,
 * and may set `status`. */
#define QUERY(symbol, parameters, statement)                                   \
    int symbol parameters                                                      \
    {                                                                          \
        const struct scenario_gpu *gpu;                                        \
        int status = facts(device, &gpu);                                      \
                                                                               \
        if (status == NVML_RESULT_SUCCESS)                                     \
            statement;                                                         \
        return status;                                                         \
    }
#define QUERY_NUMBER(symbol, field)                                            \
    QUERY(symbol, NVML_NUMBER, *value = (unsigned)gpu->field)

QUERY(nvmlDeviceGetUUID, NVML_TEXT, status = text_out(gpu->uuid, text, bytes))
QUERY(nvmlDeviceGetName, NVML_TEXT, status = text_out(gpu->model, text, bytes))
QUERY_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_gen)
QUERY_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
QUERY_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, pcie_max_gen)
QUERY_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, pcie_max_width)
QUERY_NUMBER(nvmlDeviceGetPowerUsage, power_w * 1000)
QUERY_NUMBER(nvmlDeviceGetEnforcedPowerLimit, power_limit_w * 1000)
QUERY(nvmlDeviceGetCurrentClocksThrottleReasons,
      (struct nvml_device * device, unsigned long long *reasons),
      *reasons = gpu->throttle)
QUERY(nvmlDeviceGetComputeMode, (struct nvml_device * device, int *mode),
      *mode = (int)gpu->compute_mode)
QUERY(nvmlDeviceGetPersistenceMode, (struct nvml_device * device, int *is_on),
      *is_on = (int)gpu->persistence)
QUERY(nvmlDeviceGetUtilizationRates,
      (struct nvml_device * device, struct nvml_utilization *rates),
      *rates = ((struct nvml_utilization){(unsigned)gpu->utilization, 0}))
QUERY(nvmlDeviceGetRemappedRows,
      (struct nvml_device * device, unsigned *corrected, unsigned *uncorrected,
       unsigned *pending, unsigned *failed),
      (*corrected = (unsigned)gpu->remap_corrected,
       *uncorrected = (unsigned)gpu->remap_uncorrected,
       *pending = (unsigned)gpu->remap_pending,
       *failed = (unsigned)gpu->remap_failed))
QUERY(nvmlDeviceGetC2cModeInfoV,
      (struct nvml_device * device, struct nvml_c2c *info),
      (*info = (struct nvml_c2c){0}, status = NVML_RESULT_NOT_SUPPORTED))
QUERY(nvmlDeviceGetMigMode, NVML_NOW_AND_NEXT,
      *current = *pending = (unsigned)gpu->mig)
QUERY(nvmlDeviceGetMaxMigDeviceCount, NVML_NUMBER, *value = gpu->mig ? 7 : 0)

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device,
                                        unsigned index,
                                        struct nvml_device **mig)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    (void)index;
    *mig = NULL; /* MIG may be on, but no instance has been made */
    return status ? status : NVML_RESULT_NOT_FOUND;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *pci)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status != NVML_RESULT_SUCCESS)
        return status;
    *pci = (struct nvml_pci){.domain = (unsigned)(gpu->pci >> 16 & 0xffff),
                             .bus = (unsigned)(gpu->pci >> 8 & 0xff),
                             .device = (unsigned)(gpu->pci & 0xff),
                             .pci_device_id = 0x233010de};
    (void)snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy,
                   "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff,
                   pci->device & 0xff);
    (void)snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0",
                   pci->domain, pci->bus, pci->device);
    return NVML_RESULT_SUCCESS;
}

int nvmlDeviceGetEccMode(struct nvml_device *device, unsigned *now,
                         unsigned *pending)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status == NVML_RESULT_SUCCESS && !gpu->has_ecc)
        status = NVML_RESULT_NOT_SUPPORTED;
    if (status == NVML_RESULT_SUCCESS)
        *now = *pending = (unsigned)gpu->ecc_mode;
    return status;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, int error_type,
                                int counter, unsigned long long *count)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    (void)counter; /* none came before the driver was loaded */
    if (status == NVML_RESULT_SUCCESS && (!gpu->has_ecc || !gpu->ecc_mode))
        status = NVML_RESULT_NOT_SUPPORTED;
    if (status == NVML_RESULT_SUCCESS)
        *count = error_type == NVML_ERROR_CORRECTED ? gpu->ecc_corrected
                                                    : gpu->ecc_uncorrected;
    return status;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link,
                             int *is_active)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status == NVML_RESULT_SUCCESS && link >= NVML_LINKS_MAX)
        status = NVML_RESULT_INVALID_ARGUMENT;
    if (status == NVML_RESULT_SUCCESS && gpu->nvlink_version == 0)
        status = NVML_RESULT_NOT_SUPPORTED;
    if (status == NVML_RESULT_SUCCESS)
        *is_active = link < gpu->nvlinks;
    return status;
}

int nvmlDeviceGetNvLinkVersion(struct nvml_device *device, unsigned link,
                               unsigned *version)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status == NVML_RESULT_SUCCESS && link >= NVML_LINKS_MAX)
        status = NVML_RESULT_INVALID_ARGUMENT;
    if (status == NVML_RESULT_SUCCESS && gpu->nvlink_version == 0)
        status = NVML_RESULT_NOT_SUPPORTED;
    if (status == NVML_RESULT_SUCCESS)
        *version = (unsigned)gpu->nvlink_version;
    return status;
}

static int clock_out(int kind, uint64_t sm, uint64_t mem, unsigned *value)
{
    if (kind != NVML_CLOCKS_GRAPHICS && kind != NVML_CLOCKS_SM &&
        kind != NVML_CLOCKS_MEMORY)
        return NVML_RESULT_INVALID_ARGUMENT;
    *value = (unsigned)(kind == NVML_CLOCKS_MEMORY ? mem : sm);
    return NVML_RESULT_SUCCESS;
}

QUERY(nvmlDeviceGetClockInfo, NVML_BY_KIND,
      status = clock_out(kind, gpu->clock_sm, gpu->clock_mem, value))
QUERY(nvmlDeviceGetMaxClockInfo, NVML_BY_KIND,
      status = clock_out(kind, gpu->max_clock_sm, gpu->max_clock_mem, value))

int nvmlDeviceGetTemperature(struct nvml_device *device, int kind,
                             unsigned *value)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status == NVML_RESULT_SUCCESS && kind != NVML_SENSOR_GPU)
        status = NVML_RESULT_INVALID_ARGUMENT;
    if (status == NVML_RESULT_SUCCESS)
        *value = (unsigned)gpu->temperature;
    return status;
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, int kind,
                                      unsigned *value)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status == NVML_RESULT_SUCCESS && kind != NVML_THRESHOLD_SLOWDOWN)
        status = NVML_RESULT_INVALID_ARGUMENT;
    if (status == NVML_RESULT_SUCCESS)
        *value = (unsigned)gpu->temperature_limit;
    return status;
}

/* --- Memory and processes ----------------------------------------------- */

int nvmlDeviceGetMemoryInfo(struct nvml_device *device,
                            struct nvml_memory *memory)
{
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);

    if (status != NVML_RESULT_SUCCESS)
        return status;
    uint64_t used = records_used((unsigned)(device - handles));
    if (used > gpu->memory_bytes)
        used = gpu->memory_bytes;
    *memory = (struct nvml_memory){.total = gpu->memory_bytes,
                                   .free = gpu->memory_bytes - used,
                                   .used = used};
    return NVML_RESULT_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device,
                                            unsigned *count,
                                            struct nvml_process *processes)
{
    enum { MOST = 64 };
    struct record_use uses[MOST];
    const struct scenario_gpu *gpu;
    int status = facts(device, &gpu);
    unsigned room = *count, found = 0;

    if (status != NVML_RESULT_SUCCESS)
        return status;
    unsigned total = records_uses((unsigned)(device - handles), uses, MOST - 1);
    if (total > MOST - 1)
        total = MOST - 1;
    if (gpu->process != 0)
        uses[total++] =
            (struct record_use){.pid = gpu->process, .bytes = gpu->used_bytes};
    for (unsigned i = 0; i < total; i++) {
        if (uses[i].is_gone) /* memory lingers, the process does not */
            continue;
        if (found < room && processes)
            processes[found] =
                (struct nvml_process){.pid = (unsigned)uses[i].pid,
                                      .used_bytes = uses[i].bytes,
                                      .gpu_instance_id = UINT32_MAX,
                                      .compute_instance_id = UINT32_MAX};
        found++;
    }
    *count = found;
    return found > room ? NVML_RESULT_INSUFFICIENT_SIZE : NVML_RESULT_SUCCESS;
}
