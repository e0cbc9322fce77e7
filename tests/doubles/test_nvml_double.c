/* SPDX-License-Identifier: Apache-2.0
 *
 * The double of libnvidia-ml: facts, and the account of device memory that
 * all processes of a node share. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define TWO "node * gpus 2 memory 1GiB context 64MiB\n"

enum { MIB = 1 << 20 };

static struct nvml_device *nvml_open(struct rank *rank, unsigned index)
{
    struct nvml_api *nvml = &rank->doubles.nvml;
    struct nvml_device *device = NULL;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(nvml->init() == 0);
    CHECK(nvml->device_get_handle_by_index(index, &device) == 0);
    return device;
}

static int no_driver(struct rank *rank)
{
    struct nvml_api *nvml = &rank->doubles.nvml;
    char missing[RANKS_TEXT];
    unsigned count;

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(nvml->init() == NVML_RESULT_DRIVER_NOT_LOADED);
    CHECK(strcmp(nvml->error_string(9), "Driver Not Loaded") == 0);
    CHECK(nvml->device_get_count(&count) == NVML_RESULT_UNINITIALIZED);
    CHECK(nvml->shutdown() == NVML_RESULT_UNINITIALIZED);
    return 0;
}

/* Without a device there is no driver. */
static void test_no_driver(void **state)
{
    (void)state;
    story_run(NULL, no_driver);
    story_run(TWO "node * nvml-init 9", no_driver);
    story_run(TWO "fault code 9 at facts", no_driver);
}

static int facts(struct rank *rank)
{
    struct nvml_api *nvml = &rank->doubles.nvml;
    struct nvml_device *device = nvml_open(rank, 1);
    unsigned long long count, reasons;
    struct nvml_pci pci;
    char text[96];
    unsigned a, b, c, d;
    int is_on;

    CHECK(nvml->system_get_driver_version(text, sizeof text) == 0);
    CHECK(strcmp(text, "570.86") == 0);
    CHECK(nvml->system_get_driver_version(text, 3) ==
          NVML_RESULT_INSUFFICIENT_SIZE);
    CHECK(nvml->device_get_count(&a) == 0 && a == 2);
    CHECK(nvml->device_get_handle_by_index(2, &device) ==
          NVML_RESULT_INVALID_ARGUMENT);
    CHECK(nvml->device_get_handle_by_index(1, &device) == 0);
    CHECK(nvml->device_get_uuid(device, text, sizeof text) == 0);
    CHECK(strcmp(text, "GPU-01234567-89ab-cdef-fedc-ba9876543210") == 0);
    CHECK(nvml->device_get_pci_info(device, &pci) == 0);
    CHECK(strcmp(pci.bus_id, "00000002:3B:00.0") == 0 && pci.domain == 2);
    CHECK(nvml->device_get_ecc_mode(device, &a, &b) == 0 && a == 1 && b == 1);
    CHECK(nvml->device_get_total_ecc_errors(device, NVML_ERROR_UNCORRECTED,
                                            NVML_COUNTER_VOLATILE,
                                            &count) == 0);
    CHECK(count == 3);
    CHECK(nvml->device_get_remapped_rows(device, &a, &b, &c, &d) == 0);
    CHECK(a == 0 && b == 1 && c == 1 && d == 0);
    CHECK(nvml->device_get_nvlink_state(device, 3, &is_on) == 0 && is_on);
    CHECK(nvml->device_get_nvlink_state(device, 4, &is_on) == 0 && !is_on);
    CHECK(nvml->device_get_nvlink_state(device, 18, &is_on) ==
          NVML_RESULT_INVALID_ARGUMENT);
    CHECK(nvml->device_get_curr_pcie_link_width(device, &a) == 0 && a == 8);
    CHECK(nvml->device_get_max_pcie_link_width(device, &a) == 0 && a == 16);
    CHECK(nvml->device_get_clock_info(device, NVML_CLOCKS_SM, &a) == 0);
    CHECK(a == 345);
    CHECK(nvml->device_get_clocks_throttle_reasons(device, &reasons) == 0);
    CHECK(reasons == NVML_REASON_HW_THERMAL);
    CHECK(nvml->device_get_temperature(device, NVML_SENSOR_GPU, &a) == 0);
    CHECK(a == 91);
    CHECK(nvml->device_get_temperature_threshold(
              device, NVML_THRESHOLD_SLOWDOWN, &a) == 0);
    CHECK(a == 90);
    CHECK(nvml->device_get_temperature_threshold(device, 0, &a) ==
          NVML_RESULT_INVALID_ARGUMENT);
    CHECK(nvml->device_get_power_usage(device, &a) == 0 && a == 650000);
    CHECK(nvml->device_get_persistence_mode(device, &is_on) == 0 && !is_on);
    CHECK(nvml->device_get_mig_mode(device, &a, &b) == 0 && a == 1);
    return nvml->shutdown();
}

/* Facts of a device are those of the scenario. */
static void test_facts(void **state)
{
    (void)state;
    story_run(TWO "node * driver 570.86\n"
                  "gpu * 1 uuid GPU-01234567-89ab-cdef-fedc-ba9876543210 "
                  "bus 0002:3b:00.0 ecc-uncorrected 3 remap-uncorrected 1 "
                  "remap-pending on nvlinks 4 pcie-width 8\n"
                  "gpu * 1 clock-sm 345 throttle 0x40 temperature 91 "
                  "temperature-limit 90 "
                  "power 650 persistence off mig on",
              facts);
}

static int unsupported(struct rank *rank)
{
    struct nvml_api *nvml = &rank->doubles.nvml;
    struct nvml_device *device = nvml_open(rank, 0);
    unsigned a, b;
    int is_on;

    CHECK(nvml->device_get_ecc_mode(device, &a, &b) ==
          NVML_RESULT_NOT_SUPPORTED);
    CHECK(nvml->device_get_nvlink_state(device, 0, &is_on) ==
          NVML_RESULT_NOT_SUPPORTED);
    CHECK(nvml->device_get_handle_by_index(1, &device) ==
          NVML_RESULT_GPU_IS_LOST);
    return nvml->shutdown();
}

/* A device may lack what is asked for, or be lost. */
static void test_unsupported(void **state)
{
    (void)state;
    story_run(TWO "gpu * 0 ecc none nvlink-version 0\ngpu * 1 lost on",
              unsupported);
}

static unsigned long long used(struct rank *rank, struct nvml_device *device)
{
    struct nvml_memory memory;

    CHECK(rank->doubles.nvml.device_get_memory_info(device, &memory) == 0);
    CHECK(memory.used + memory.free == memory.total);
    return memory.used;
}

/* Each rank holds (rank + 1) * 10 MiB of the one device of the node; rank 3
 * dies of it. The first looks on. */
static int memory_comes_back(struct rank *rank)
{
    struct nvml_process processes[8];
    struct nvml_device *device = nvml_open(rank, 0);
    struct nvml_api *nvml = &rank->doubles.nvml;
    unsigned count = 0;
    cuda_address address;

    rank->local_rank = 0;
    CHECK(used(rank, device) <= 500ull * MIB);
    rank_barrier(rank);
    rank_open(rank);
    CHECK(rank->doubles.cuda.mem_alloc(&address, (size_t)(rank->rank + 1) * 10 *
                                                     MIB) == 0);
    rank_barrier(rank);
    if (rank->rank == 0) {
        CHECK(used(rank, device) == 4ull * 64 * MIB + 100ull * MIB);
        CHECK(nvml->device_get_compute_running_processes(
                  device, &count, NULL) == NVML_RESULT_INSUFFICIENT_SIZE);
        CHECK(count == 4);
        count = 8;
        CHECK(nvml->device_get_compute_running_processes(device, &count,
                                                         processes) == 0);
        CHECK(count == 4);
        CHECK(rank->doubles.cuda.mem_alloc(&address, 700u * MIB) ==
              CUDA_RESULT_OUT_OF_MEMORY);
    }
    rank_barrier(rank);
    if (rank->rank == 3)
        (void)kill(getpid(), SIGKILL);
    if (rank->rank > 0)
        return 0;
    uint64_t end = now_ms() + 20000;
    while (used(rank, device) > 74ull * MIB && now_ms() < end)
        pause_ms(2);
    CHECK(used(rank, device) == 74ull * MIB);
    return 0;
}

/* Memory in use is that of all processes of the node, and comes back when
 * they end or die. */
static void test_memory_comes_back(void **state)
{
    struct account accounts[4];

    (void)state;
    ranks_run(&(struct plan){TWO, 1, 4, 0, memory_comes_back}, accounts);
    for (int i = 0; i < 4; i++)
        assert_int_equal(accounts[i].exit_code, i == 3 ? -SIGKILL : 0);
}

static int nodes_are_apart(struct rank *rank)
{
    struct nvml_device *device = nvml_open(rank, 0);

    rank_open(rank);
    rank_barrier(rank);
    CHECK(used(rank, device) == 64ull * MIB);
    rank_barrier(rank);
    return 0;
}

/* What one node uses is nothing to another. */
static void test_nodes_are_apart(void **state)
{
    struct account accounts[2];

    (void)state;
    ranks_run(&(struct plan){TWO, 2, 1, 0, nodes_are_apart}, accounts);
    assert_int_equal(accounts[0].exit_code, 0);
    assert_int_equal(accounts[1].exit_code, 0);
}

static int memory_lingers(struct rank *rank)
{
    struct nvml_device *device = nvml_open(rank, 0);
    unsigned count = 8;
    struct nvml_process processes[8];

    pid_t pid = fork();
    if (pid == 0) {
        rank_open(rank);
        exit(0);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(used(rank, device) == 64ull * MIB);
    CHECK(rank->doubles.nvml.device_get_compute_running_processes(
              device, &count, processes) == 0);
    CHECK(count == 0);
    uint64_t start = now_ms();
    while (used(rank, device) > 0)
        CHECK(now_ms() < start + 20000);
    return now_ms() - start < 250;
}

/* Memory can outlive its process for a while, held by nobody. */
static void test_memory_lingers(void **state)
{
    (void)state;
    story_run(TWO "gpu * 0 lingers 300ms", memory_lingers);
}

static int memory_of_others(struct rank *rank)
{
    struct nvml_device *device = nvml_open(rank, 0);
    struct nvml_process processes[8];
    unsigned count = 8;

    CHECK(used(rank, device) == 100ull * MIB);
    CHECK(rank->doubles.nvml.device_get_compute_running_processes(
              device, &count, processes) == 0);
    CHECK(count == 1 && processes[0].pid == 4711 &&
          processes[0].used_bytes == 100ull * MIB);
    return 0;
}

/* Memory may be in use before anybody came. */
static void test_memory_of_others(void **state)
{
    (void)state;
    story_run(TWO "gpu * 0 used 100MiB process 4711", memory_of_others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_nodes_are_apart),
        cmocka_unit_test(test_memory_lingers),
        cmocka_unit_test(test_memory_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
