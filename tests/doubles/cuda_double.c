/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of libcuda: the driver interface of worker/cuda_api.h over host
 * memory and threads, with the devices of the scenario. */
#include "tests/doubles/cuda_double.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/doubles/cuda_context.h"
#include "tests/doubles/cuda_device.h"
#include "tests/doubles/cuda_memory.h"
#include "tests/doubles/cuda_stream.h"
#include "tests/doubles/export.h"
#include "tests/doubles/fault.h"
#include "tests/doubles/hide.h"
#include "tests/doubles/records.h"
#include "worker/nvml_api.h"

#define X(need, result, member, parameters, symbol, hip)                       \
    DOUBLE_EXPORT result symbol parameters;
CUDA_API_MAP(X)
#undef X

DOUBLE_EXPORT int cuCtxGetDevice(int *device);
DOUBLE_EXPORT gpulaunch_double_device_fn gpulaunch_double_device;
DOUBLE_EXPORT gpulaunch_double_memory_fn gpulaunch_double_memory;
DOUBLE_EXPORT gpulaunch_double_stream_fn gpulaunch_double_stream;
DOUBLE_EXPORT gpulaunch_double_launch_fn gpulaunch_double_launch;
DOUBLE_EXPORT gpulaunch_double_halt_fn gpulaunch_double_halt;

DOUBLE_MARKER("libcuda");

struct cuda_context {
    int physical;
    unsigned users;             /* guarded by lock, as is all below */
    struct cuda_stream *stream; /* the default one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_ready; /* cuInit has succeeded; then these stand */
static const struct scenario *scenario;
static struct devices devices;
static struct cuda_context contexts[SCENARIO_GPUS_MAX]; /* by ordinal */
static _Thread_local struct cuda_context *current;

__attribute__((constructor)) static void library_open(void)
{
    hide_symbols(gpulaunch_double, "cu");
}

__attribute__((destructor)) static void library_close(void)
{
    records_leave();
}

/* --- The driver --------------------------------------------------------- */

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

int cuGetErrorName(int result, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == result) {
            *text = errors[i].name;
            return CUDA_RESULT_SUCCESS;
        }
    *text = NULL;
    return CUDA_INVALID_VALUE;
}

int cuGetErrorString(int result, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == result) {
            *text = errors[i].text;
            return CUDA_RESULT_SUCCESS;
        }
    *text = NULL;
    return CUDA_INVALID_VALUE;
}

int cuInit(unsigned flags)
{
    int code = fault_early(POINT_CUINIT, SCENARIO_ANY);

    if (flags != 0)
        return CUDA_INVALID_VALUE;
    if (code == 0)
        code = (int)scenario_get()->cuda_init;
    if (code != 0)
        return code;
    (void)pthread_mutex_lock(&lock);
    if (!is_ready) {
        scenario = scenario_get();
        devices_read(&devices, scenario, getenv("CUDA_VISIBLE_DEVICES"));
        for (int i = 0; i < devices.count; i++)
            contexts[i].physical = devices.physical[i];
        is_ready = devices.count > 0;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_ready ? CUDA_RESULT_SUCCESS : CUDA_RESULT_NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = (int)scenario_get()->cuda;
    return CUDA_RESULT_SUCCESS;
}

/* --- Devices ------------------------------------------------------------ */

/* 0 for a device of this process, with its facts. */
static int device_find(int device, const struct scenario_gpu **gpu)
{
    *gpu = NULL;
    if (!is_ready)
        return CUDA_RESULT_NOT_INITIALIZED;
    if (device < 0 || device >= devices.count)
        return CUDA_RESULT_INVALID_DEVICE;
    *gpu = &scenario->gpus[devices.physical[device]];
    return CUDA_RESULT_SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = is_ready ? devices.count : 0;
    return is_ready ? CUDA_RESULT_SUCCESS : CUDA_RESULT_NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int ordinal)
{
    const struct scenario_gpu *gpu;
    int status = device_find(ordinal, &gpu);

    *device = ordinal;
    return status;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    if (status == 0 && bytes <= 0)
        status = CUDA_INVALID_VALUE;
    if (status == 0)
        (void)snprintf(name, (size_t)bytes, "%s", gpu->model);
    return status;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    *bytes = gpu ? gpu->memory_bytes : 0;
    return status;
}

int cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    if (status == 0 && bytes < 13)
        status = CUDA_INVALID_VALUE;
    if (status == 0)
        (void)snprintf(text, (size_t)bytes, "%04x:%02x:%02x.0",
                       (unsigned)(gpu->pci >> 16 & 0xffff),
                       (unsigned)(gpu->pci >> 8 & 0xff),
                       (unsigned)(gpu->pci & 0xff));
    return status;
}

int cuDeviceGetUuid(struct cuda_uuid *uuid, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    if (status == 0)
        *uuid = device_uuid(gpu);
    return status;
}

int cuDeviceGetUuid_v2(struct cuda_uuid *uuid, int device)
{
    return cuDeviceGetUuid(uuid, device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    *value = 0;
    if (status != 0)
        return status;
    switch (attribute) {
    case CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        return CUDA_RESULT_SUCCESS;
    case CUDA_ATTRIBUTE_COMPUTE_MODE:
        *value = (int)gpu->compute_mode;
        return CUDA_RESULT_SUCCESS;
    case CUDA_ATTRIBUTE_ECC_ENABLED:
        *value = (int)gpu->ecc_mode;
        return CUDA_RESULT_SUCCESS;
    case CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        return CUDA_RESULT_SUCCESS;
    case CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return CUDA_RESULT_SUCCESS;
    default:
        return CUDA_INVALID_VALUE;
    }
}

/* --- Contexts ----------------------------------------------------------- */

/* Has another process a context on the device, one that `counts`? */
static bool is_held(unsigned gpu, bool (*counts)(uint64_t pid))
{
    enum { MOST = 64 };
    struct record_use uses[MOST];
    unsigned count = records_uses(gpu, uses, MOST);

    for (unsigned i = 0; i < count && i < MOST; i++)
        if (!uses[i].is_gone && counts(uses[i].pid))
            return true;
    return false;
}

static bool is_other(uint64_t pid)
{
    return pid != (uint64_t)getpid();
}

/* Of two that come at the same time one is refused. */
static bool is_before(uint64_t pid)
{
    return pid < (uint64_t)getpid();
}

/* A device that gives nobody a context, or none to a second process. */
static bool is_unavailable(unsigned gpu)
{
    const struct scenario_gpu *facts = &scenario->gpus[gpu];

    return facts->lost || facts->compute_mode == NVML_MODE_PROHIBITED ||
           (facts->compute_mode == NVML_MODE_EXCLUSIVE_PROCESS &&
            is_held(gpu, is_other));
}

static int context_open(struct cuda_context *context)
{
    unsigned gpu = (unsigned)context->physical;

    if (is_unavailable(gpu))
        return CUDA_DEVICE_UNAVAILABLE;
    if (records_take(gpu, (int64_t)scenario->context_bytes) != 0)
        return CUDA_RESULT_OUT_OF_MEMORY;
    if (scenario->gpus[gpu].compute_mode == NVML_MODE_EXCLUSIVE_PROCESS &&
        is_held(gpu, is_before)) {
        (void)records_take(gpu, -(int64_t)scenario->context_bytes);
        return CUDA_DEVICE_UNAVAILABLE;
    }
    context->stream = stream_make();
    if (!context->stream) {
        (void)records_take(gpu, -(int64_t)scenario->context_bytes);
        return CUDA_RESULT_OUT_OF_MEMORY;
    }
    return CUDA_RESULT_SUCCESS;
}

int cuDevicePrimaryCtxRetain(struct cuda_context **context, int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    *context = NULL;
    if (status == 0)
        status = fault_early(POINT_CONTEXT, devices.physical[device]);
    if (status != 0)
        return status;
    (void)pthread_mutex_lock(&lock);
    if (contexts[device].users == 0)
        status = context_open(&contexts[device]);
    if (status == 0) {
        contexts[device].users++;
        *context = &contexts[device];
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static void context_close(struct cuda_context *context)
{
    unsigned gpu = (unsigned)context->physical;

    stream_wait(context->stream);
    stream_end(context->stream);
    context->stream = NULL;
    memory_free_all(gpu);
    (void)records_take(gpu, -(int64_t)scenario->context_bytes);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    const struct scenario_gpu *gpu;
    int status = device_find(device, &gpu);

    if (status != 0)
        return status;
    (void)pthread_mutex_lock(&lock);
    if (contexts[device].users == 0)
        status = CUDA_INVALID_CONTEXT;
    else if (--contexts[device].users == 0)
        context_close(&contexts[device]);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

int cuCtxSetCurrent(struct cuda_context *context)
{
    if (!is_ready)
        return CUDA_RESULT_NOT_INITIALIZED;
    current = context;
    return CUDA_RESULT_SUCCESS;
}

int context_get(struct cuda_context **context)
{
    *context = NULL;
    if (!is_ready)
        return CUDA_RESULT_NOT_INITIALIZED;
    (void)pthread_mutex_lock(&lock);
    if (current && current->users > 0)
        *context = current;
    (void)pthread_mutex_unlock(&lock);
    return *context ? CUDA_RESULT_SUCCESS : CUDA_INVALID_CONTEXT;
}

struct cuda_stream *context_stream(struct cuda_context *context)
{
    return context->stream;
}

int cuCtxGetDevice(int *device)
{
    struct cuda_context *context;
    int status = context_get(&context);

    *device = context ? (int)(context - contexts) : -1;
    return status;
}

/* --- Memory ------------------------------------------------------------- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct cuda_context *context;
    int status = context_get(&context);

    *free_bytes = *total = 0;
    if (status != 0)
        return status;
    uint64_t used = records_used((unsigned)context->physical);
    *total = scenario->gpus[context->physical].memory_bytes;
    *free_bytes = used < *total ? *total - used : 0;
    return CUDA_RESULT_SUCCESS;
}

int cuMemAlloc_v2(cuda_address *address, size_t bytes)
{
    struct cuda_context *context;
    int status = context_get(&context);

    *address = 0;
    return status ? status
                  : memory_alloc((unsigned)context->physical, bytes, address);
}

int cuMemFree_v2(cuda_address address)
{
    return is_ready ? memory_free(address) : CUDA_RESULT_NOT_INITIALIZED;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    struct cuda_context *context;
    int status = context_get(&context);

    (void)flags;
    *memory = NULL;
    if (status == 0 && bytes == 0)
        status = CUDA_INVALID_VALUE;
    if (status == 0) {
        *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        status = *memory ? CUDA_RESULT_SUCCESS : CUDA_RESULT_OUT_OF_MEMORY;
    }
    return status;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    return CUDA_RESULT_SUCCESS;
}

int stream_get(struct cuda_stream **stream)
{
    struct cuda_context *context;

    if (*stream)
        return CUDA_RESULT_SUCCESS;
    int status = context_get(&context);
    if (status == 0)
        *stream = context_stream(context);
    return status;
}

/* --- For the double of libnccl ------------------------------------------ */

int gpulaunch_double_device(int *physical, int *ordinal)
{
    struct cuda_context *context;
    int status = cuInit(0);

    *physical = *ordinal = -1;
    if (status != 0)
        return status;
    if (context_get(&context) != 0) {
        status = cuDevicePrimaryCtxRetain(&context, 0);
        if (status != 0)
            return status;
        current = context;
    }
    *physical = context->physical;
    *ordinal = (int)(context - contexts);
    return CUDA_RESULT_SUCCESS;
}

void *gpulaunch_double_memory(const void *address, size_t bytes)
{
    return memory_host((cuda_address)(uintptr_t)address, bytes);
}

int gpulaunch_double_stream(struct cuda_stream **stream)
{
    return stream_get(stream);
}

int gpulaunch_double_launch(struct cuda_stream *stream, void (*run)(void *),
                            void *argument)
{
    return stream_push(stream, run, argument);
}

void gpulaunch_double_halt(int halts)
{
    streams_halt(halts != 0);
}
