/* SPDX-License-Identifier: Apache-2.0
 *
 * An NVML with two GPUs and the required functions only, for the tests of
 * worker/gpu_facts.h. It refuses every call that is not between nvmlInit and
 * nvmlShutdown.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "worker/nvml_api.h"

struct nvml_device {
    const char *uuid;
};

static struct nvml_device gpus[] = {{"GPU-0"}, {"GPU-1"}};
static bool is_started;

#define X(need, result, member, parameters, symbol)                            \
    __attribute__((visibility("default"))) result symbol parameters;
NVML_API_MAP(X)
#undef X

static int put(char *text, unsigned bytes, const char *value)
{
    snprintf(text, bytes, "%s", value);
    return is_started ? NVML_RESULT_SUCCESS : NVML_RESULT_UNINITIALIZED;
}

int nvmlInit_v2(void)
{
    is_started = true;
    return NVML_RESULT_SUCCESS;
}

int nvmlShutdown(void)
{
    is_started = false;
    return NVML_RESULT_SUCCESS;
}

const char *nvmlErrorString(int result)
{
    return result == NVML_RESULT_SUCCESS ? "Success" : "Uninitialized";
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    return put(text, bytes, "580.65.06");
}

int nvmlSystemGetNVMLVersion(char *text, unsigned bytes)
{
    return put(text, bytes, "13.580.65.06");
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = sizeof(gpus) / sizeof(gpus[0]);
    return is_started ? NVML_RESULT_SUCCESS : NVML_RESULT_UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    *device = &gpus[index];
    return NVML_RESULT_SUCCESS;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *text, unsigned bytes)
{
    return put(text, bytes, device->uuid);
}

int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned bytes)
{
    (void)device;
    return put(text, bytes, "Test GPU");
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *pci)
{
    (void)device;
    return put(pci->bus_id, sizeof(pci->bus_id), "00000000:3B:00.0");
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device,
                            struct nvml_memory *memory)
{
    (void)device;
    *memory = (struct nvml_memory){.total = 80, .free = 78, .used = 2};
    return NVML_RESULT_SUCCESS;
}
