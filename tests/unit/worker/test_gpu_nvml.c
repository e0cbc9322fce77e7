/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_nvml.h"
#include "worker/gpu_nvml.h"

static struct gpu_device devices[GPU_DEVICES_MAX];

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
    fake_nvml_set(gpus, 2);
    assert_int_equal(read_all(&fake_nvml_api), 2);
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
        fake_nvml_set(gpus, 1);
        fake_nvml.processes = counts[i];
        assert_int_equal(read_all(&fake_nvml_api), 1);
        assert_number(&devices[0], GPU_PROCESSES, counts[i]);
        assert_int_equal(devices[0].pid_count, counts[i] > 64 ? 0 : named);
    }
}

/* An old driver has few functions: the rest is unknown. */
static void test_old_driver(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0"}};
    fake_nvml_set(gpus, 1);
    assert_int_equal(read_all(&fake_nvml_old_api), 1);
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
    fake_nvml_set(gpus, 1);
    assert_int_equal(read_all(&fake_nvml_api), 1);
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
    fake_nvml_set(gpus, 1);
    assert_int_equal(read_all(&fake_nvml_api), 1);
    assert_int_equal(devices[0].known, 0);
}

/* A GPU that fell off the bus is listed with the reason; the others are read.
 */
static void test_lost(void **state)
{
    (void)state;
    struct nvml_device gpus[] = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}};
    fake_nvml_set(gpus, 2);
    fake_nvml.lost = 0;
    assert_int_equal(read_all(&fake_nvml_api), 2);
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
    fake_nvml_set(gpus, 2);
    fake_nvml.processes = 0;
    assert_int_equal(read_all(&fake_nvml_api), 4);
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
    fake_nvml_set(gpus, 1);
    fake_nvml_slices[0].result = NVML_RESULT_NO_PERMISSION;
    size_t count = read_all(&fake_nvml_api);
    fake_nvml_slices[0].result = NVML_RESULT_SUCCESS;
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
    fake_nvml_set(gpus, GPU_DEVICES_MAX + 2);
    assert_int_equal(read_all(&fake_nvml_api), GPU_DEVICES_MAX);
    fake_nvml_set(gpus, GPU_DEVICES_MAX - 1);
    assert_int_equal(read_all(&fake_nvml_api), GPU_DEVICES_MAX);
    assert_true(devices[GPU_DEVICES_MAX - 1].is_slice);
}

/* Where even counting fails, NVML's own words are passed on. */
static void test_no_count(void **state)
{
    (void)state;
    fake_nvml_set(NULL, 3);
    fake_nvml.count_result = NVML_RESULT_UNKNOWN;
    size_t count = 99;
    struct gpul_error err;
    assert_int_equal(gpu_nvml_read(devices, &count, &fake_nvml_api, &err),
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
