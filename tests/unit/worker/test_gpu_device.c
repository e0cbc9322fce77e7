/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_device.h"
#include "worker/nvml_api.h"

struct number {
    enum gpu_number number;
    uint64_t value;
};

/* A device of which everything is as it should be. */
static struct gpu_device make_healthy(void)
{
    static const struct number numbers[] = {
        {GPU_MEMORY, UINT64_C(80) << 30},
        {GPU_MEMORY_USED, UINT64_C(600) << 20},
        {GPU_ECC_ON, 1},
        {GPU_ECC_UNCORRECTED, 0},
        {GPU_REMAP_PENDING, 0},
        {GPU_REMAP_FAILED, 0},
        {GPU_MIG_ON, 0},
        {GPU_LINKS, 18},
        {GPU_LINKS_UP, 18},
        {GPU_LINK_VERSION, 6},
        {GPU_PCIE_GENERATION, 5},
        {GPU_PCIE_GENERATION_MAX, 5},
        {GPU_PCIE_WIDTH, 16},
        {GPU_PCIE_WIDTH_MAX, 16},
        {GPU_REASONS, NVML_REASON_SW_POWER_CAP},
        {GPU_TEMPERATURE, 60},
        {GPU_TEMPERATURE_MAX, 92},
        {GPU_COMPUTE_MODE, NVML_MODE_DEFAULT},
        {GPU_PROCESSES, 0},
    };
    struct gpu_device d = {.model = "H100"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        gpu_device_set(&d, numbers[i].number, numbers[i].value);
    }
    return d;
}

/* What was never set is unknown, and not the number 0. */
static void test_unknown(void **state)
{
    (void)state;
    struct gpu_device d = {0};
    uint64_t value = 7;
    char text[32];
    assert_false(gpu_device_get(&d, GPU_TEMPERATURE, &value));
    assert_int_equal(value, 0);
    gpu_number_text(text, sizeof(text), &d, GPU_TEMPERATURE);
    assert_string_equal(text, "unknown");

    gpu_device_set(&d, GPU_TEMPERATURE, 0);
    assert_true(gpu_device_get(&d, GPU_TEMPERATURE, &value));
    gpu_number_text(text, sizeof(text), &d, GPU_TEMPERATURE);
    assert_string_equal(text, "0 C");
    assert_false(gpu_device_get(&d, GPU_POWER, &value));
}

/* Every number has a name of its own; a unit may be empty. */
static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < GPU_NUMBER_COUNT; i++) {
        const char *name = gpu_number_name((enum gpu_number)i);
        assert_true(name[0] != 0);
        assert_non_null(gpu_number_unit((enum gpu_number)i));
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(name, gpu_number_name((enum gpu_number)k));
        }
    }
    struct gpu_device d = {0};
    char text[32];
    gpu_device_set(&d, GPU_PCIE_WIDTH, 16);
    gpu_number_text(text, sizeof(text), &d, GPU_PCIE_WIDTH);
    assert_string_equal(text, "16");
}

static void assert_findings(const struct gpu_device *d, const char *expected)
{
    char out[GPU_FINDINGS_MAX][GPU_FINDING_BYTES];
    char text[GPU_FINDINGS_MAX * GPU_FINDING_BYTES] = "";
    size_t count = gpu_device_findings(out, d);
    for (size_t i = 0; i < count; i++) {
        strcat(strcat(text, i > 0 ? "\n" : ""), out[i]);
    }
    assert_string_equal(text, expected);
}

/* Each fault of an otherwise healthy device has its own sentence, and what a
 * healthy one does while it works or rests has none. */
static void test_findings(void **state)
{
    (void)state;
    static const struct {
        struct number change;
        const char *expected;
    } cases[] = {
        {{GPU_ECC_UNCORRECTED, 3},
         "GPU-231 3 uncorrected ECC errors since the driver started: results "
         "may be wrong; reset the GPU, or replace it"},
        {{GPU_REMAP_FAILED, 1},
         "GPU-232 a damaged row of memory could not be remapped: have the GPU "
         "replaced"},
        {{GPU_REMAP_PENDING, 1},
         "GPU-232 a damaged row of memory waits to be remapped: reset the "
         "GPU"},
        {{GPU_PCIE_WIDTH, 8}, "PCI-513 PCIe width is 8 of 16: reseat the GPU"},
        {{GPU_PCIE_GENERATION, 3},
         "PCI-513 PCIe generation is 3 of 5 under load: reseat the GPU, look "
         "at the slot's settings"},
        {{GPU_LINKS_UP, 17},
         "GPU-241 17 of 18 NVLinks are up: look at nvidia-smi nvlink -s, then "
         "reset the GPU"},
        {{GPU_LINKS_UP, 0}, ""},
        {{GPU_REASONS, NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL},
         "GPU-220 clocks are held down: too hot, the hardware slows it down; "
         "look at its cooling"},
        {{GPU_REASONS, NVML_REASON_SW_THERMAL},
         "GPU-220 clocks are held down: too hot, the driver slows it down; "
         "look at its cooling"},
        {{GPU_REASONS, NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_POWER_BRAKE},
         "GPU-220 clocks are held down: the power supply's brake is on; look "
         "at the power supply"},
        {{GPU_REASONS, NVML_REASON_HW_SLOWDOWN},
         "GPU-220 clocks are held down: the hardware slows it down; look at "
         "cooling and power"},
        {{GPU_COMPUTE_MODE, NVML_MODE_PROHIBITED},
         "GPU-252 compute mode is \"prohibited\": no program may use the GPU; "
         "set it with nvidia-smi -c 0"},
        {{GPU_COMPUTE_MODE, NVML_MODE_EXCLUSIVE_PROCESS}, ""},
        {{GPU_PROCESSES, 1},
         "1 process uses the GPU already, with 600 MiB in use"},
        {{GPU_PROCESSES, 2},
         "2 processes use the GPU already, with 600 MiB in use"},
        {{GPU_MIG_ON, 1},
         "MIG is on: programs get slices of this GPU, not the whole"},
        {{GPU_REASONS, NVML_REASON_IDLE}, ""},
        {{GPU_REASONS, NVML_REASON_APPLICATION_CLOCKS}, ""},
        {{GPU_TEMPERATURE, 91}, ""},
        {{GPU_TEMPERATURE, 92},
         "GPU-221 it has 92 C, and from 92 C on it is slowed down: look at "
         "its cooling"},
        {{GPU_TEMPERATURE_MAX, 0}, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_device d = make_healthy();
        gpu_device_set(&d, cases[i].change.number, cases[i].change.value);
        assert_findings(&d, cases[i].expected);
    }
}

/* An idle GPU has a slow link to save power: that is no finding. */
static void test_idle_link(void **state)
{
    (void)state;
    struct gpu_device d = make_healthy();
    gpu_device_set(&d, GPU_PCIE_GENERATION, 1);
    gpu_device_set(&d, GPU_REASONS, NVML_REASON_IDLE);
    assert_findings(&d, "");
}

/* A slice is what MIG is for. */
static void test_slice(void **state)
{
    (void)state;
    struct gpu_device d = make_healthy();
    gpu_device_set(&d, GPU_MIG_ON, 1);
    d.is_slice = true;
    assert_findings(&d, "");
}

/* What could not be looked at is said, and never counts as healthy; ECC that
 * is off has no errors to count. */
static void test_not_read(void **state)
{
    (void)state;
    struct gpu_device d = {.model = "H100"};
    assert_findings(&d, "could not be read: ECC errors, PCIe width, reasons "
                        "for lower clocks\n"
                        "memory in use cannot be seen: whether it is free "
                        "again after the self-test is not known");
    gpu_device_set(&d, GPU_ECC_ON, 0);
    gpu_device_set(&d, GPU_MEMORY_USED, 0);
    assert_findings(&d, "could not be read: PCIe width, reasons for lower "
                        "clocks");
    strcpy(d.error, "NVML: GPU is lost");
    assert_findings(&d, "nothing can be read of it: NVML: GPU is lost");
}

/* All at once: the worst comes first, and nothing is lost. */
static void test_all_findings(void **state)
{
    (void)state;
    struct gpu_device d = make_healthy();
    gpu_device_set(&d, GPU_ECC_UNCORRECTED, 1);
    gpu_device_set(&d, GPU_LINKS_UP, 1);
    gpu_device_set(&d, GPU_PROCESSES, 1);
    assert_findings(&d, "GPU-231 1 uncorrected ECC error since the driver "
                        "started: results may be wrong; reset the GPU, or "
                        "replace it\n"
                        "GPU-241 1 of 18 NVLinks are up: look at nvidia-smi "
                        "nvlink -s, then reset the GPU\n"
                        "1 process uses the GPU already, with 600 MiB in use");
}

/* The processes that are known are named, and it is said if there are more. */
static void test_named_processes(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        uint32_t named;
        const char *text;
    } cases[] = {
        {1, 1, "1 process (4194304) uses"},
        {4, 4, "4 processes (4194304, 4194305, 4194306, 4194307) use"},
        {5, 4, "5 processes (4194304, 4194305, 4194306, 4194307, ...) use"},
        {70, 0, "70 processes use"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[GPU_FINDING_BYTES];
        struct gpu_device d = make_healthy();
        gpu_device_set(&d, GPU_PROCESSES, cases[i].count);
        d.pid_count = cases[i].named;
        for (uint32_t p = 0; p < d.pid_count; p++) {
            d.pids[p] = 4194304 + p;
        }
        snprintf(expected, sizeof(expected),
                 "%s the GPU already, with 600 MiB in use", cases[i].text);
        assert_findings(&d, expected);
    }
}

/* The one-way rate of all links, for each generation of data-centre GPU. */
static void test_link_rate(void **state)
{
    (void)state;
    static const struct {
        uint64_t version;
        uint64_t links;
        uint64_t gbps;
    } cases[] = {
        {1, 4, 80},   {2, 6, 150}, {4, 12, 300}, {6, 18, 450},
        {7, 18, 900}, {6, 0, 0},   {0, 18, 0},   {99, 18, 0},
    };
    enum gpul_link kind;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_device d = {0};
        gpu_device_set(&d, GPU_LINK_VERSION, cases[i].version);
        gpu_device_set(&d, GPU_LINKS_UP, cases[i].links);
        assert_true(gpu_device_link_gbps(&d, &kind) == (double)cases[i].gbps);
        assert_int_equal(kind,
                         cases[i].gbps > 0 ? GPUL_NVLINK : GPUL_LINK_NONE);
    }
}

/* Without NVLink devices reach each other over PCIe; where it is not known
 * whether there is any, nothing is. A slice has no link of its own. An idle
 * device's generation is lower than what it works with. */
static void test_pcie_rate(void **state)
{
    (void)state;
    enum gpul_link kind;
    struct gpu_device d = {0};
    assert_true(gpu_device_pcie_gbps(&d) == 0);
    gpu_device_set(&d, GPU_PCIE_GENERATION, 1);
    gpu_device_set(&d, GPU_PCIE_GENERATION_MAX, 4);
    gpu_device_set(&d, GPU_PCIE_WIDTH, 8);
    gpu_device_set(&d, GPU_PCIE_WIDTH_MAX, 16);
    double gbps = gpu_device_pcie_gbps(&d);
    assert_true(gbps > 15.7 && gbps < 15.8);
    assert_true(gpu_device_link_gbps(&d, &kind) == 0);
    assert_int_equal(kind, GPUL_LINK_NONE);
    gpu_device_set(&d, GPU_LINKS_UP, 0);
    assert_true(gpu_device_link_gbps(&d, &kind) == gbps);
    assert_int_equal(kind, GPUL_PCIE);
    gpu_device_set(&d, GPU_C2C_ON, 1); /* the host is behind another link */
    assert_true(gpu_device_pcie_gbps(&d) == 0);
    gpu_device_set(&d, GPU_C2C_ON, 0);
    assert_true(gpu_device_pcie_gbps(&d) == gbps);
    d.is_slice = true;
    assert_true(gpu_device_link_gbps(&d, &kind) == 0);
    assert_int_equal(kind, GPUL_LINK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_idle_link),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_not_read),
        cmocka_unit_test(test_all_findings),
        cmocka_unit_test(test_named_processes),
        cmocka_unit_test(test_link_rate),
        cmocka_unit_test(test_pcie_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
