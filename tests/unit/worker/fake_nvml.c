/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_nvml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fake_nvml fake_nvml;

struct nvml_device fake_nvml_slices[] = {
    {.uuid = "MIG-0", .is_slice = true},
    {.uuid = "MIG-2", .is_slice = true},
};

static const char *error_string(int result)
{
    return result == NVML_RESULT_GPU_IS_LOST ? "GPU is lost" : "Unknown Error";
}

static int get_count(unsigned *count)
{
    *count = fake_nvml.count;
    return fake_nvml.count_result;
}

static int get_handle(unsigned index, struct nvml_device **device)
{
    *device = &fake_nvml.gpus[index];
    return index == fake_nvml.lost ? NVML_RESULT_GPU_IS_LOST
                                   : NVML_RESULT_SUCCESS;
}

static int get_uuid(struct nvml_device *d, char *text, unsigned bytes)
{
    snprintf(text, bytes, "%s", d->uuid);
    return d->result;
}

static int get_name(struct nvml_device *d, char *text, unsigned bytes)
{
    snprintf(text, bytes, d->is_slice ? "Test GPU MIG 1g" : "Test GPU");
    return d->result;
}

static int get_pci(struct nvml_device *d, struct nvml_pci *pci)
{
    if (d->is_slice) {
        return NVML_RESULT_INVALID_ARGUMENT;
    }
    memcpy(pci->bus_id, "00000000:3B:00.0", sizeof("00000000:3B:00.0"));
    return d->result;
}

static int get_memory(struct nvml_device *d, struct nvml_memory *memory)
{
    memory->total = d->is_slice ? 10 : 80;
    memory->used = d->is_slice ? 1 : 2;
    return d->result;
}

/* Now and after a reset differ, so that a test sees which one was taken. */
static int get_mode(struct nvml_device *d, unsigned *current, unsigned *pending)
{
    *current = d->has_slices;
    *pending = 1 - *current;
    return d->result;
}

static int get_ecc_errors(struct nvml_device *d, int type, int counter,
                          unsigned long long *count)
{
    assert_int_equal(type, NVML_ERROR_UNCORRECTED);
    *count = counter == NVML_COUNTER_VOLATILE ? 3 : 30;
    return d->result;
}

static int get_rows(struct nvml_device *d, unsigned *corrected,
                    unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    *corrected = 9;
    *uncorrected = 8;
    *pending = 5;
    *failed = 0;
    return d->result;
}

/* Four links, of which the second is down. */
static int get_link_state(struct nvml_device *d, unsigned link, int *is_active)
{
    *is_active = link != 1;
    return link < 4 ? d->result : NVML_RESULT_NOT_SUPPORTED;
}

static int get_link_version(struct nvml_device *d, unsigned link,
                            unsigned *version)
{
    assert_in_range(link, 0, 3);
    *version = 6;
    return d->result;
}

static int get_five(struct nvml_device *d, unsigned *value)
{
    *value = 5;
    return d->result;
}

static int get_sixteen(struct nvml_device *d, unsigned *value)
{
    *value = 16;
    return d->result;
}

static int get_clock(struct nvml_device *d, int kind, unsigned *value)
{
    *value = kind == NVML_CLOCKS_SM ? 1980 : 2619;
    return d->result;
}

static int get_clock_max(struct nvml_device *d, int kind, unsigned *value)
{
    *value = kind == NVML_CLOCKS_SM ? 1981 : 2620;
    return d->result;
}

static int get_reasons(struct nvml_device *d, unsigned long long *reasons)
{
    *reasons = NVML_REASON_IDLE;
    return d->result;
}

static int get_temperature(struct nvml_device *d, int sensor, unsigned *value)
{
    assert_int_equal(sensor, NVML_SENSOR_GPU);
    *value = 41;
    return d->result;
}

static int get_threshold(struct nvml_device *d, int kind, unsigned *value)
{
    assert_int_equal(kind, NVML_THRESHOLD_SLOWDOWN);
    *value = 92;
    return d->result;
}

static int get_c2c(struct nvml_device *d, struct nvml_c2c *info)
{
    info->is_enabled = 1;
    return d->result;
}

static int get_flag(struct nvml_device *d, int *value)
{
    *value = 3;
    return d->result;
}

static int get_rates(struct nvml_device *d, struct nvml_utilization *rates)
{
    *rates = (struct nvml_utilization){.gpu = 77, .memory = 11};
    return d->result;
}

static int get_processes(struct nvml_device *d, unsigned *count,
                         struct nvml_process *processes)
{
    unsigned room = *count;
    *count = fake_nvml.processes;
    if (d->result != NVML_RESULT_SUCCESS) {
        return d->result;
    }
    for (unsigned i = 0; i < room && i < fake_nvml.processes; i++) {
        processes[i].pid = 4711 + i;
    }
    return fake_nvml.processes > room ? NVML_RESULT_INSUFFICIENT_SIZE
                                      : NVML_RESULT_SUCCESS;
}

static int get_slice_count(struct nvml_device *d, unsigned *value)
{
    *value = 3;
    return d->result;
}

/* The middle place is empty, as MIG leaves them. */
static int get_slice(struct nvml_device *d, unsigned index,
                     struct nvml_device **slice)
{
    assert_true(d->has_slices);
    *slice = &fake_nvml_slices[index / 2];
    return index == 1 ? NVML_RESULT_NOT_FOUND : NVML_RESULT_SUCCESS;
}

const struct nvml_api fake_nvml_api = {
    .error_string = error_string,
    .device_get_count = get_count,
    .device_get_handle_by_index = get_handle,
    .device_get_uuid = get_uuid,
    .device_get_name = get_name,
    .device_get_pci_info = get_pci,
    .device_get_memory_info = get_memory,
    .device_get_ecc_mode = get_mode,
    .device_get_total_ecc_errors = get_ecc_errors,
    .device_get_remapped_rows = get_rows,
    .device_get_mig_mode = get_mode,
    .device_get_max_mig_device_count = get_slice_count,
    .device_get_mig_device_handle_by_index = get_slice,
    .device_get_nvlink_state = get_link_state,
    .device_get_nvlink_version = get_link_version,
    .device_get_curr_pcie_link_generation = get_five,
    .device_get_curr_pcie_link_width = get_sixteen,
    .device_get_max_pcie_link_generation = get_five,
    .device_get_max_pcie_link_width = get_sixteen,
    .device_get_c2c_mode_info = get_c2c,
    .device_get_clock_info = get_clock,
    .device_get_max_clock_info = get_clock_max,
    .device_get_clocks_throttle_reasons = get_reasons,
    .device_get_temperature = get_temperature,
    .device_get_temperature_threshold = get_threshold,
    .device_get_power_usage = get_five,
    .device_get_enforced_power_limit = get_sixteen,
    .device_get_compute_mode = get_flag,
    .device_get_persistence_mode = get_flag,
    .device_get_utilization_rates = get_rates,
    .device_get_compute_running_processes = get_processes,
};

const struct nvml_api fake_nvml_old_api = {
    .error_string = error_string,
    .device_get_count = get_count,
    .device_get_handle_by_index = get_handle,
    .device_get_uuid = get_uuid,
    .device_get_name = get_name,
    .device_get_pci_info = get_pci,
    .device_get_memory_info = get_memory,
};

void fake_nvml_set(struct nvml_device *gpus, unsigned count)
{
    fake_nvml.gpus = gpus;
    fake_nvml.count = count;
    fake_nvml.count_result = NVML_RESULT_SUCCESS;
    fake_nvml.lost = UINT32_MAX;
    fake_nvml.processes = 2;
}
