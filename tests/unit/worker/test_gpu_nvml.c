/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_nvml.h"

/* An NVML of the test's own: what each device answers. */
struct nvml_device {
    const char *uuid;
    int result; /* of every query */
    bool has_slices;
    bool is_slice;
};

static struct {
    struct nvml_device *gpus;
    unsigned count;
    int count_result;
    unsigned lost; /* index of a GPU that cannot be opened */
    unsigned processes;
} machine;

static struct nvml_device slices[] = {
    {.uuid = "MIG-0", .is_slice = true},
    {.uuid = "MIG-2", .is_slice = true},
};

static const char *error_string(int result)
{
    return result == NVML_RESULT_GPU_IS_LOST ? "GPU is lost" : "Unknown Error";
}

static int get_count(unsigned *count)
{
    *count = machine.count;
    return machine.count_result;
}

static int get_handle(unsigned index, struct nvml_device **device)
{
    *device = &machine.gpus[index];
    return index == machine.lost ? NVML_RESULT_GPU_IS_LOST
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
    *count = machine.processes;
    if (d->result != NVML_RESULT_SUCCESS) {
        return d->result;
    }
    for (unsigned i = 0; i < room && i < machine.processes; i++) {
        processes[i].pid = 4711 + i;
    }
    return machine.processes > room ? NVML_RESULT_INSUFFICIENT_SIZE
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
    *slice = &slices[index / 2];
    return index == 1 ? NVML_RESULT_NOT_FOUND : NVML_RESULT_SUCCESS;
}

static const struct nvml_api whole_api = {
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

/* What the driver of 2012 had: all optional functions are missing. */
static const struct nvml_api old_api = {
    .error_string = error_string,
    .device_get_count = get_count,
    .device_get_handle_by_index = get_handle,
    .device_get_uuid = get_uuid,
    .device_get_name = get_name,
    .device_get_pci_info = get_pci,
    .device_get_memory_info = get_memory,
};

static struct gpu_device devices[GPU_DEVICES_MAX];

static void set_machine(struct nvml_device *gpus, unsigned count)
{
    machine.gpus = gpus;
    machine.count = count;
    machine.count_result = NVML_RESULT_SUCCESS;
    machine.lost = UINT32_MAX;
    machine.processes = 2;
}

static size_t read_all(const struct nvml_api *api)
{
    size_t count = 99;
    memset(devices, 0x55, sizeof(devices));
    assert_int_equal(gpu_nvml_read(devices, &count, api, NULL), 0);
    return count;
}

static void assert_number(const struct gpu_device *d, enum gpu_number n,
                          uint64_t expected)
{
    uint64_t value;
    assert_true(gpu_device_get(d, n, &value));
    assert_int_equal(value, expected);
}

/* Every fact lands where it belongs, and every number is known. */
static void test_facts(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}};
    static const struct {
        enum gpu_number number;
        uint64_t value;
    } expected[] = {
        {GPU_MEMORY, 80},
        {GPU_MEMORY_USED, 2},
        {GPU_ECC_ON, 0},
        {GPU_ECC_UNCORRECTED, 3},
        {GPU_REMAP_PENDING, 1},
        {GPU_ECC_UNCORRECTED_EVER, 30},
        {GPU_REMAP_FAILED, 0},
        {GPU_MIG_ON, 0},
        {GPU_LINKS, 4},
        {GPU_LINKS_UP, 3},
        {GPU_LINK_VERSION, 6},
        {GPU_PCIE_GENERATION, 5},
        {GPU_PCIE_WIDTH, 16},
        {GPU_PCIE_GENERATION_MAX, 5},
        {GPU_PCIE_WIDTH_MAX, 16},
        {GPU_SM_CLOCK, 1980},
        {GPU_SM_CLOCK_MAX, 1981},
        {GPU_MEMORY_CLOCK, 2619},
        {GPU_C2C_ON, 1},
        {GPU_TEMPERATURE, 41},
        {GPU_TEMPERATURE_MAX, 92},
        {GPU_MEMORY_CLOCK_MAX, 2620},
        {GPU_REASONS, 1},
        {GPU_POWER, 5},
        {GPU_POWER_LIMIT, 16},
        {GPU_COMPUTE_MODE, 3},
        {GPU_PERSISTENCE_ON, 3},
        {GPU_PROCESSES, 2},
        {GPU_USE, 77},
        {GPU_MEMORY_USE, 11},
    };
    set_machine(gpus, 2);
    assert_int_equal(read_all(&whole_api), 2);
    assert_int_equal(sizeof(expected) / sizeof(expected[0]), GPU_NUMBER_COUNT);
    for (size_t i = 0; i < GPU_NUMBER_COUNT; i++) {
        assert_number(&devices[1], expected[i].number, expected[i].value);
    }
    assert_int_equal(devices[1].index, 1);
    assert_string_equal(devices[0].uuid, "GPU-0");
    assert_string_equal(devices[1].uuid, "GPU-1");
    assert_string_equal(devices[1].model, "Test GPU");
    assert_string_equal(devices[1].bus_id, "00000000:3B:00.0");
    assert_string_equal(devices[1].error, "");
    assert_false(devices[1].is_slice);
    assert_int_equal(devices[1].pid_count, 2);
    assert_int_equal(devices[1].pids[0], 4711);
    assert_int_equal(devices[1].pids[1], 4712);
}

/* Of many processes the first are named, of too many none; all count. */
static void test_many_processes(void **state)
{
    (void)state;
    static const unsigned counts[] = {3, 4, 5, 64, 65, 1000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct nvml_device gpus[] = {{.uuid = "GPU-0"}};
        unsigned named = counts[i] < GPU_PIDS_MAX ? counts[i] : GPU_PIDS_MAX;
        set_machine(gpus, 1);
        machine.processes = counts[i];
        assert_int_equal(read_all(&whole_api), 1);
        assert_number(&devices[0], GPU_PROCESSES, counts[i]);
        assert_int_equal(devices[0].pid_count, counts[i] > 64 ? 0 : named);
    }
}

/* An old driver has few functions: the rest is unknown. */
static void test_old_driver(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0"}};
    set_machine(gpus, 1);
    assert_int_equal(read_all(&old_api), 1);
    assert_string_equal(devices[0].uuid, "GPU-0");
    assert_number(&devices[0], GPU_MEMORY, 80);
    assert_int_equal(devices[0].known, (UINT64_C(1) << GPU_MEMORY) |
                                           (UINT64_C(1) << GPU_MEMORY_USED));
}

/* A device that refuses every question has no number at all. */
static void test_not_supported(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {
        {.uuid = "GPU-0", .result = NVML_RESULT_NOT_SUPPORTED}};
    set_machine(gpus, 1);
    assert_int_equal(read_all(&whole_api), 1);
    uint64_t links;
    assert_true(gpu_device_get(&devices[0], GPU_LINKS, &links));
    assert_int_equal(links, 0); /* no link answered: it has none */
    assert_int_equal(devices[0].known, (UINT64_C(1) << GPU_LINKS) |
                                           (UINT64_C(1) << GPU_LINKS_UP));
    assert_string_equal(devices[0].uuid, "");
    assert_string_equal(devices[0].model, "");
    assert_string_equal(devices[0].bus_id, "");
}

/* Links that cannot be asked are unknown, not absent. */
static void test_links_unknown(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {
        {.uuid = "GPU-0", .result = NVML_RESULT_UNKNOWN}};
    set_machine(gpus, 1);
    assert_int_equal(read_all(&whole_api), 1);
    assert_int_equal(devices[0].known, 0);
}

/* A GPU that fell off the bus is listed with the reason; the others are read.
 */
static void test_lost(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}};
    set_machine(gpus, 2);
    machine.lost = 0;
    assert_int_equal(read_all(&whole_api), 2);
    assert_string_equal(devices[0].error, "NVML: GPU is lost");
    assert_int_equal(devices[0].known, 0);
    assert_string_equal(devices[1].uuid, "GPU-1");
}

/* Slices stand behind all GPUs, with their own memory and their GPU's health.
 */
static void test_slices(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0", .has_slices = true},
                                 {.uuid = "GPU-1"}};
    set_machine(gpus, 2);
    machine.processes = 0;
    assert_int_equal(read_all(&whole_api), 4);
    assert_string_equal(devices[1].uuid, "GPU-1");
    assert_string_equal(devices[2].uuid, "MIG-0");
    assert_string_equal(devices[3].uuid, "MIG-2");
    for (size_t i = 2; i < 4; i++) {
        assert_true(devices[i].is_slice);
        assert_int_equal(devices[i].index, 0);
        assert_string_equal(devices[i].model, "Test GPU MIG 1g");
        assert_string_equal(devices[i].bus_id, "00000000:3B:00.0");
        assert_number(&devices[i], GPU_MEMORY, 10);
        assert_number(&devices[i], GPU_ECC_UNCORRECTED, 3);
        assert_number(&devices[i], GPU_PROCESSES, 0);
    }
}

/* What a slice does not tell of itself is not taken from its GPU. */
static void test_silent_slice(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0", .has_slices = true}};
    uint64_t value;
    set_machine(gpus, 1);
    slices[0].result = NVML_RESULT_NO_PERMISSION;
    size_t count = read_all(&whole_api);
    slices[0].result = NVML_RESULT_SUCCESS;
    assert_int_equal(count, 3);
    assert_string_equal(devices[1].uuid, "");
    assert_false(gpu_device_get(&devices[1], GPU_MEMORY, &value));
    assert_false(gpu_device_get(&devices[1], GPU_PROCESSES, &value));
    assert_number(&devices[1], GPU_ECC_UNCORRECTED, 3);
    assert_number(&devices[2], GPU_MEMORY, 10);
}

/* More devices than there is room for are left out, slices included. */
static void test_too_many(void **state)
{
    (void)state;
    static struct nvml_device gpus[GPU_DEVICES_MAX + 2];
    for (size_t i = 0; i < GPU_DEVICES_MAX + 2; i++) {
        gpus[i] = (struct nvml_device){.uuid = "GPU", .has_slices = true};
    }
    set_machine(gpus, GPU_DEVICES_MAX + 2);
    assert_int_equal(read_all(&whole_api), GPU_DEVICES_MAX);
    set_machine(gpus, GPU_DEVICES_MAX - 1);
    assert_int_equal(read_all(&whole_api), GPU_DEVICES_MAX);
    assert_true(devices[GPU_DEVICES_MAX - 1].is_slice);
}

/* Where even counting fails, NVML's own words are passed on. */
static void test_no_count(void **state)
{
    (void)state;
    set_machine(NULL, 3);
    machine.count_result = NVML_RESULT_UNKNOWN;
    size_t count = 99;
    struct gpul_error err;
    assert_int_equal(gpu_nvml_read(devices, &count, &whole_api, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "NVML: cannot count the GPUs: Unknown Error");
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_not_supported),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_no_count),
        cmocka_unit_test(test_links_unknown),
        cmocka_unit_test(test_silent_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
