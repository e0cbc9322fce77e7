/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gpu_nvml.h"

#include <stdio.h>
#include <string.h>

/* One device while it is read. */
struct reader {
    const struct nvml_api *api;
    struct nvml_device *handle;
    struct gpu_device *out;
};

typedef int number_query(struct nvml_device *device, unsigned *value);
typedef int flag_query(struct nvml_device *device, int *value);
typedef int kind_query(struct nvml_device *device, int kind, unsigned *value);
typedef int change_query(struct nvml_device *device, unsigned *current,
                         unsigned *pending);

static void read_number(struct reader *r, number_query *query,
                        enum gpu_number n)
{
    unsigned value = 0;
    if (query != NULL && query(r->handle, &value) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, n, value);
    }
}

static void read_flag(struct reader *r, flag_query *query, enum gpu_number n)
{
    int value = 0;
    if (query != NULL && query(r->handle, &value) == NVML_RESULT_SUCCESS &&
        value >= 0) {
        gpu_device_set(r->out, n, (uint64_t)value);
    }
}

static void read_kind(struct reader *r, kind_query *query, int kind,
                      enum gpu_number n)
{
    unsigned value = 0;
    if (query != NULL &&
        query(r->handle, kind, &value) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, n, value);
    }
}

/* What holds now; the other value is what holds after a reset. */
static void read_current(struct reader *r, change_query *query,
                         enum gpu_number n)
{
    unsigned current = 0;
    unsigned pending = 0;
    if (query != NULL &&
        query(r->handle, &current, &pending) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, n, current);
    }
}

/* ---- one device --------------------------------------------------------- */

static void read_names(struct reader *r)
{
    const struct nvml_api *api = r->api;
    struct gpu_device *out = r->out;
    struct nvml_pci pci = {0};
    if (api->device_get_uuid(r->handle, out->uuid, sizeof(out->uuid)) !=
        NVML_RESULT_SUCCESS) {
        out->uuid[0] = 0;
    }
    if (api->device_get_name(r->handle, out->model, sizeof(out->model)) !=
        NVML_RESULT_SUCCESS) {
        out->model[0] = 0;
    }
    if (api->device_get_pci_info(r->handle, &pci) == NVML_RESULT_SUCCESS) {
        snprintf(out->bus_id, sizeof(out->bus_id), "%.*s",
                 (int)sizeof(pci.bus_id), pci.bus_id);
    }
}

static void read_memory(struct reader *r)
{
    struct nvml_memory memory = {0};
    if (r->api->device_get_memory_info(r->handle, &memory) ==
        NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, GPU_MEMORY, memory.total);
        gpu_device_set(r->out, GPU_MEMORY_USED, memory.used);
    }
}

static void read_ecc_count(struct reader *r, int counter, enum gpu_number n)
{
    unsigned long long errors = 0;
    if (r->api->device_get_total_ecc_errors != NULL &&
        r->api->device_get_total_ecc_errors(r->handle, NVML_ERROR_UNCORRECTED,
                                            counter,
                                            &errors) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, n, errors);
    }
}

static void read_health(struct reader *r)
{
    const struct nvml_api *api = r->api;
    read_current(r, api->device_get_ecc_mode, GPU_ECC_ON);
    read_current(r, api->device_get_mig_mode, GPU_MIG_ON);
    read_ecc_count(r, NVML_COUNTER_VOLATILE, GPU_ECC_UNCORRECTED);
    read_ecc_count(r, NVML_COUNTER_AGGREGATE, GPU_ECC_UNCORRECTED_EVER);
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    if (api->device_get_remapped_rows != NULL &&
        api->device_get_remapped_rows(r->handle, &corrected, &uncorrected,
                                      &pending,
                                      &failed) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, GPU_REMAP_PENDING, pending != 0);
        gpu_device_set(r->out, GPU_REMAP_FAILED, failed != 0);
    }
}

/* The version of a link that is up, 0 if it cannot be read. */
static unsigned link_version(struct reader *r, unsigned link)
{
    unsigned version = 0;
    if (r->api->device_get_nvlink_version == NULL ||
        r->api->device_get_nvlink_version(r->handle, link, &version) !=
            NVML_RESULT_SUCCESS) {
        return 0;
    }
    return version;
}

/* A link that the GPU does not have is "not supported" or no valid argument;
 * any other error leaves the number unknown. */
static void read_nvlink(struct reader *r)
{
    unsigned links = 0;
    unsigned up = 0;
    unsigned version = 0;
    if (r->api->device_get_nvlink_state == NULL) {
        return;
    }
    for (unsigned i = 0; i < NVML_LINKS_MAX; i++) {
        int is_up = 0;
        int rc = r->api->device_get_nvlink_state(r->handle, i, &is_up);
        if (rc == NVML_RESULT_NOT_SUPPORTED ||
            rc == NVML_RESULT_INVALID_ARGUMENT) {
            continue;
        }
        if (rc != NVML_RESULT_SUCCESS) {
            return;
        }
        links++;
        up += is_up != 0;
        if (is_up != 0 && version == 0) {
            version = link_version(r, i);
        }
    }
    gpu_device_set(r->out, GPU_LINKS, links);
    gpu_device_set(r->out, GPU_LINKS_UP, up);
    if (version != 0) {
        gpu_device_set(r->out, GPU_LINK_VERSION, version);
    }
}

static void read_pcie(struct reader *r)
{
    const struct nvml_api *api = r->api;
    read_number(r, api->device_get_curr_pcie_link_generation,
                GPU_PCIE_GENERATION);
    read_number(r, api->device_get_max_pcie_link_generation,
                GPU_PCIE_GENERATION_MAX);
    read_number(r, api->device_get_curr_pcie_link_width, GPU_PCIE_WIDTH);
    read_number(r, api->device_get_max_pcie_link_width, GPU_PCIE_WIDTH_MAX);
    struct nvml_c2c c2c = {0};
    if (api->device_get_c2c_mode_info != NULL &&
        api->device_get_c2c_mode_info(r->handle, &c2c) == NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, GPU_C2C_ON, c2c.is_enabled != 0);
    }
}

static void read_clocks(struct reader *r)
{
    const struct nvml_api *api = r->api;
    read_kind(r, api->device_get_clock_info, NVML_CLOCKS_SM, GPU_SM_CLOCK);
    read_kind(r, api->device_get_clock_info, NVML_CLOCKS_MEMORY,
              GPU_MEMORY_CLOCK);
    read_kind(r, api->device_get_max_clock_info, NVML_CLOCKS_SM,
              GPU_SM_CLOCK_MAX);
    read_kind(r, api->device_get_max_clock_info, NVML_CLOCKS_MEMORY,
              GPU_MEMORY_CLOCK_MAX);
    unsigned long long reasons = 0;
    if (api->device_get_clocks_throttle_reasons != NULL &&
        api->device_get_clocks_throttle_reasons(r->handle, &reasons) ==
            NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, GPU_REASONS, reasons);
    }
}

/* Without room for all of them NVML still counts them. */
static void read_processes(struct reader *r)
{
    enum { ROOM = 64 };
    struct nvml_process processes[ROOM];
    unsigned count = ROOM;
    if (r->api->device_get_compute_running_processes == NULL) {
        return;
    }
    int rc = r->api->device_get_compute_running_processes(r->handle, &count,
                                                          processes);
    if (rc == NVML_RESULT_SUCCESS || rc == NVML_RESULT_INSUFFICIENT_SIZE) {
        gpu_device_set(r->out, GPU_PROCESSES, count);
    }
    unsigned listed = rc == NVML_RESULT_SUCCESS ? count : 0;
    r->out->pid_count = listed < GPU_PIDS_MAX ? listed : GPU_PIDS_MAX;
    for (uint32_t i = 0; i < r->out->pid_count; i++) {
        r->out->pids[i] = processes[i].pid;
    }
}

static void read_use(struct reader *r)
{
    const struct nvml_api *api = r->api;
    read_kind(r, api->device_get_temperature, NVML_SENSOR_GPU, GPU_TEMPERATURE);
    read_kind(r, api->device_get_temperature_threshold, NVML_THRESHOLD_SLOWDOWN,
              GPU_TEMPERATURE_MAX);
    read_number(r, api->device_get_power_usage, GPU_POWER);
    read_number(r, api->device_get_enforced_power_limit, GPU_POWER_LIMIT);
    read_flag(r, api->device_get_compute_mode, GPU_COMPUTE_MODE);
    read_flag(r, api->device_get_persistence_mode, GPU_PERSISTENCE_ON);
    struct nvml_utilization rates = {0};
    if (api->device_get_utilization_rates != NULL &&
        api->device_get_utilization_rates(r->handle, &rates) ==
            NVML_RESULT_SUCCESS) {
        gpu_device_set(r->out, GPU_USE, rates.gpu);
        gpu_device_set(r->out, GPU_MEMORY_USE, rates.memory);
    }
}

static void read_device(struct reader *r)
{
    read_names(r);
    read_memory(r);
    read_health(r);
    read_nvlink(r);
    read_pcie(r);
    read_clocks(r);
    read_processes(r);
    read_use(r);
}

/* ---- all of them -------------------------------------------------------- */

/* A slice has a UUID, a name and memory of its own; all else is its GPU's. */
static void read_slices(struct gpu_device *out, size_t *count,
                        const struct nvml_api *api,
                        const struct gpu_device *gpu,
                        struct nvml_device *handle)
{
    uint64_t is_on;
    unsigned slices = 0;
    if (!gpu_device_get(gpu, GPU_MIG_ON, &is_on) || is_on == 0 ||
        api->device_get_max_mig_device_count == NULL ||
        api->device_get_mig_device_handle_by_index == NULL ||
        api->device_get_max_mig_device_count(handle, &slices) !=
            NVML_RESULT_SUCCESS) {
        return;
    }
    for (unsigned i = 0; i < slices && *count < GPU_DEVICES_MAX; i++) {
        struct reader r = {.api = api, .out = &out[*count]};
        if (api->device_get_mig_device_handle_by_index(handle, i, &r.handle) !=
            NVML_RESULT_SUCCESS) {
            continue; /* places may be empty in between */
        }
        *r.out = *gpu;
        r.out->is_slice = true;
        r.out->known &=
            ~((UINT64_C(1) << GPU_MEMORY) | (UINT64_C(1) << GPU_MEMORY_USED) |
              (UINT64_C(1) << GPU_PROCESSES));
        read_names(&r);
        read_memory(&r);
        read_processes(&r);
        (*count)++;
    }
}

int gpu_nvml_read(struct gpu_device out[GPU_DEVICES_MAX], size_t *count,
                  const struct nvml_api *api, struct gpul_error *err)
{
    struct nvml_device *handles[GPU_DEVICES_MAX] = {0};
    unsigned gpus = 0;
    *count = 0;
    int rc = api->device_get_count(&gpus);
    if (rc != NVML_RESULT_SUCCESS) {
        return gpul_fail(err, GPUL_ESYS, "NVML: cannot count the GPUs: %s",
                         api->error_string(rc));
    }
    for (unsigned i = 0; i < gpus && *count < GPU_DEVICES_MAX; i++) {
        struct gpu_device *gpu = &out[(*count)++];
        *gpu = (struct gpu_device){.index = i};
        rc = api->device_get_handle_by_index(i, &handles[i]);
        if (rc != NVML_RESULT_SUCCESS) {
            handles[i] = NULL;
            snprintf(gpu->error, sizeof(gpu->error), "NVML: %s",
                     api->error_string(rc));
            continue;
        }
        struct reader r = {api, handles[i], gpu};
        read_device(&r);
    }
    size_t whole = *count;
    for (size_t i = 0; i < whole; i++) {
        if (handles[i] != NULL) {
            read_slices(out, count, api, &out[i], handles[i]);
        }
    }
    return 0;
}
