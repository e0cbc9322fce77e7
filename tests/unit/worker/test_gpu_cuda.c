/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_cuda.h"
#include "worker/nvml_api.h"

/* A driver of the test's own with two devices, the second a MIG slice. */
static struct {
    int count;
    int count_result;
    int refused; /* ordinal that cannot be had */
    bool has_words;
} driver;

enum { DEVICE_BASE = 100 }; /* a device is not its ordinal */

static const struct cuda_uuid whole_uuid = {"\x01\x23\x45\x67\x89\xab\xcd\xef"
                                            "\xfe\xdc\xba\x98\x76\x54\x32"};
static const struct cuda_uuid slice_uuid = {"\xff"};

static int get_error_name(int result, const char **text)
{
    *text = driver.has_words ? "CUDA_ERROR_NO_DEVICE" : NULL;
    return driver.has_words ? CUDA_RESULT_SUCCESS : result;
}

static int get_error_string(int result, const char **text)
{
    *text = result == CUDA_RESULT_NO_DEVICE ? "no device is detected" : NULL;
    return CUDA_RESULT_SUCCESS;
}

static int get_count(int *count)
{
    *count = driver.count;
    return driver.count_result;
}

static int get_device(int *device, int ordinal)
{
    *device = DEVICE_BASE + ordinal;
    return ordinal == driver.refused ? CUDA_RESULT_INVALID_DEVICE
                                     : CUDA_RESULT_SUCCESS;
}

static int get_name(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "Test GPU %d", device);
    return CUDA_RESULT_SUCCESS;
}

static int get_total(size_t *bytes, int device)
{
    *bytes = (size_t)device << 20;
    return CUDA_RESULT_SUCCESS;
}

static int get_bus_id(char *text, int bytes, int device)
{
    (void)device;
    snprintf(text, (size_t)bytes, "0000:3B:00.0");
    return CUDA_RESULT_SUCCESS;
}

static int get_uuid(struct cuda_uuid *uuid, int device)
{
    (void)device;
    *uuid = whole_uuid;
    return CUDA_RESULT_SUCCESS;
}

static int get_own_uuid(struct cuda_uuid *uuid, int device)
{
    *uuid = device == DEVICE_BASE ? whole_uuid : slice_uuid;
    return CUDA_RESULT_SUCCESS;
}

static int get_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == CUDA_ATTRIBUTE_ECC_ENABLED ? 1 : NVML_MODE_PROHIBITED;
    return CUDA_RESULT_SUCCESS;
}

static const struct cuda_api cuda = {
    .get_error_name = get_error_name,
    .get_error_string = get_error_string,
    .device_get_count = get_count,
    .device_get = get_device,
    .device_get_name = get_name,
    .device_total_mem = get_total,
    .device_get_pci_bus_id = get_bus_id,
    .device_get_uuid = get_uuid,
    .device_get_uuid_v2 = get_own_uuid,
    .device_get_attribute = get_attribute,
};

static int setup(void **state)
{
    (void)state;
    driver.count = 2;
    driver.count_result = CUDA_RESULT_SUCCESS;
    driver.refused = -1;
    driver.has_words = true;
    return 0;
}

static struct gpu_device devices[GPU_DEVICES_MAX];

static size_t read_all(const struct cuda_api *api, enum gpu_maker maker)
{
    size_t count = 99;
    memset(devices, 0x55, sizeof(devices));
    assert_int_equal(gpu_cuda_read(devices, &count, api, maker, NULL), 0);
    return count;
}

/* Identity, memory and the two modes are known; all else is not. */
static void test_facts(void **state)
{
    (void)state;
    assert_int_equal(read_all(&cuda, GPU_NVIDIA), 2);
    const struct gpu_device *d = &devices[1];
    assert_int_equal(d->index, 1);
    assert_string_equal(devices[0].uuid,
                        "GPU-01234567-89ab-cdef-fedc-ba9876543200");
    assert_false(devices[0].is_slice);
    assert_string_equal(d->uuid, "MIG-ff000000-0000-0000-0000-000000000000");
    assert_true(d->is_slice);
    assert_string_equal(d->model, "Test GPU 101");
    assert_string_equal(d->bus_id, "0000:3B:00.0");
    uint64_t value;
    assert_true(gpu_device_get(d, GPU_MEMORY, &value));
    assert_int_equal(value, 101 << 20);
    assert_true(gpu_device_get(d, GPU_ECC_ON, &value));
    assert_int_equal(value, 1);
    assert_true(gpu_device_get(d, GPU_COMPUTE_MODE, &value));
    assert_int_equal(value, NVML_MODE_PROHIBITED);
    assert_int_equal(__builtin_popcountll(d->known), 3);
}

/* HIP has no attributes of CUDA's numbers, and UUIDs that are text. */
static void test_hip(void **state)
{
    (void)state;
    struct cuda_api hip = cuda;
    hip.device_get_uuid_v2 = NULL;
    hip.device_get_attribute = NULL;
    assert_int_equal(read_all(&hip, GPU_AMD), 2);
    uint64_t value;
    assert_false(devices[1].is_slice);
    assert_false(gpu_device_get(&devices[1], GPU_ECC_ON, &value));

    struct cuda_uuid uuid;
    char text[GPU_TEXT_BYTES];
    memcpy(uuid.bytes, "0123456789abcdef", sizeof(uuid.bytes));
    gpu_cuda_uuid_text(text, &uuid, GPU_AMD, false);
    assert_string_equal(text, "GPU-0123456789abcdef");
}

/* A device that cannot be had is listed with the reason. */
static void test_refused(void **state)
{
    (void)state;
    driver.refused = 0;
    driver.has_words = false;
    assert_int_equal(read_all(&cuda, GPU_NVIDIA), 2);
    assert_string_equal(devices[0].error, "error 101");
    assert_int_equal(devices[0].known, 0);
    assert_string_equal(devices[1].model, "Test GPU 101");
}

/* More devices than there is room for are left out. */
static void test_too_many(void **state)
{
    (void)state;
    driver.count = GPU_DEVICES_MAX + 1;
    assert_int_equal(read_all(&cuda, GPU_NVIDIA), GPU_DEVICES_MAX);
}

/* Where even counting fails, the driver's own words are passed on. */
static void test_no_count(void **state)
{
    (void)state;
    driver.count_result = CUDA_RESULT_NO_DEVICE;
    size_t count = 99;
    struct gpul_error err;
    assert_int_equal(gpu_cuda_read(devices, &count, &cuda, GPU_NVIDIA, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "cannot count the GPUs: "
                                  "CUDA_ERROR_NO_DEVICE: no device is "
                                  "detected");
    assert_int_equal(count, 0);
}

/* A result is told in the driver's words, as far as it has any. */
static void test_error(void **state)
{
    (void)state;
    char text[64];
    gpu_cuda_error(text, sizeof(text), &cuda, 999);
    assert_string_equal(text, "CUDA_ERROR_NO_DEVICE: without explanation");
    driver.has_words = false;
    gpu_cuda_error(text, sizeof(text), &cuda, 999);
    assert_string_equal(text, "error 999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_facts, setup),
        cmocka_unit_test_setup(test_hip, setup),
        cmocka_unit_test_setup(test_refused, setup),
        cmocka_unit_test_setup(test_too_many, setup),
        cmocka_unit_test_setup(test_no_count, setup),
        cmocka_unit_test_setup(test_error, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
