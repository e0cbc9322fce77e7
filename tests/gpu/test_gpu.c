/* SPDX-License-Identifier: Apache-2.0
 *
 * Scouts and probes on the real GPUs and with the real libraries of this
 * machine: facts, communicator, sweep with every check, copies, and what is
 * left behind, which is nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bandwidth.h"
#include "common/clock.h"
#include "proto/limits.h"
#include "tests/lib/gpustage.h"

enum {
    EXIT_SKIPPED = 77,
    /* docs/gpu-self-test.md, "After it" */
    BASELINE_WITHIN_BYTES = 512 << 20,
    BASELINE_BOUND_MS = 50000,
};

static struct stage stage;
static char uuids[GPUL_DEVICES_MAX][STAGE_UUID_BYTES];
static const char *uuid_list[GPUL_DEVICES_MAX];
static uint64_t used_bytes[GPUL_DEVICES_MAX]; /* before anything ran */
static uint32_t device_count;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

static const Gpul__ProbeFacts *scout(void)
{
    const struct stage_spec spec = {.nodes = 1, .per_node = 1};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    assert_int_equal(WEXITSTATUS(stage.probes[0].status), 0);
    return stage.probes[0].facts->probe_facts;
}

/* The devices of this machine, or why there is nothing to test. */
static const char *look(void)
{
    static char reason[1025];
    const Gpul__ProbeFacts *facts = scout();
    snprintf(reason, sizeof(reason), "%s", facts->error);
    device_count = (uint32_t)facts->n_devices;
    for (uint32_t i = 0; i < device_count; i++) {
        snprintf(uuids[i], sizeof(uuids[i]), "%s", facts->devices[i]->uuid);
        uuid_list[i] = uuids[i];
        used_bytes[i] = facts->devices[i]->memory_used_bytes;
    }
    stage_end(&stage);
    return reason[0] != 0 ? reason : NULL;
}

static void print_row(const Gpul__ProbeRow *row, uint32_t ranks)
{
    enum gpul_collective collective = (enum gpul_collective)row->collective;
    double algbw = gpul_algbw_gbps(row->bytes, row->median_ns);
    double factor;
    char busbw[32] = "n/a";
    if (gpul_busbw_factor(&factor, collective, ranks)) {
        snprintf(busbw, sizeof(busbw), "%.2f", algbw * factor);
    }
    print_message("%-15s %12llu %12llu %11.2f us %9.2f %9s %llu\n",
                  gpul_collective_name(collective),
                  (unsigned long long)row->bytes,
                  (unsigned long long)row->count, (double)row->median_ns / 1000,
                  algbw, busbw, (unsigned long long)row->wrong_elements);
}

static void assert_passed(uint32_t rank)
{
    const struct stage_probe *probe = &stage.probes[rank];
    assert_non_null(probe->result);
    const Gpul__ProbeResult *result = probe->result->probe_result;
    if (result->error[0] != 0) {
        fail_msg("rank %u, phase %s: %s; %s", rank, result->phase,
                 result->error, result->library_error);
    }
    assert_string_equal(result->phase, "end");
    assert_string_equal(result->device_uuid, uuids[rank]);
    assert_int_equal(result->wrong_elements, 0);
    assert_false(result->is_simulated);
    assert_int_equal(WEXITSTATUS(probe->status), 0);
}

static void run(uint32_t ranks, Gpul__SelfTest__Level level, Gpul__Sweep *sweep)
{
    const struct stage_spec spec = {.nodes = 1,
                                    .per_node = ranks,
                                    .uuids = uuid_list,
                                    .level = level,
                                    .sweep = sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < ranks; i++) {
        assert_passed(i);
    }
}

/* What the scout tells: libraries by path and version, devices by UUID,
 * model and memory. */
static void test_facts(void **state)
{
    (void)state;
    const Gpul__ProbeFacts *facts = scout();
    assert_false(facts->is_simulated);
    assert_int_equal(facts->nccl->path[0], '/');
    assert_int_equal(facts->cuda->path[0], '/');
    assert_true(facts->cuda->version_code >= 11000);
    print_message("NCCL %s (%s), CUDA driver %s (%s)\n", facts->nccl->version,
                  facts->nccl->path, facts->cuda->version, facts->cuda->path);
    for (size_t i = 0; i < facts->n_devices; i++) {
        const Gpul__Device *device = facts->devices[i];
        assert_int_not_equal(device->uuid[0], 0);
        assert_int_not_equal(device->model[0], 0);
        assert_true(device->memory_bytes > (1 << 30));
        print_message("%s %s %s, %llu MiB\n", device->uuid, device->bus_id,
                      device->model,
                      (unsigned long long)(device->memory_bytes >> 20));
    }
}

/* One rank on one device runs every collective from 8 B to 256 MiB, right to
 * the last element, and the copies at a rate that is no accident. */
static void test_one_rank(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    uint32_t copies = 0;
    sweep.bytes_min = 8;
    sweep.bytes_max = 256 << 20;
    sweep.factor = 8;
    run(1, GPUL__SELF_TEST__LEVEL__FULL, &sweep);
    const Gpul__ProbeResult *result = stage.probes[0].result->probe_result;
    for (size_t i = 0; i < result->n_rows; i++) {
        const Gpul__ProbeRow *row = result->rows[i];
        print_row(row, 1);
        assert_true(row->median_ns > 0);
        if (row->collective >= GPUL__COLLECTIVE__COLLECTIVE_COPY_TO_DEVICE) {
            assert_true(gpul_algbw_gbps(row->bytes, row->median_ns) > 1);
            copies++;
        }
    }
    assert_int_equal(copies, 3);
    assert_int_equal(result->n_rows, 6 * 9 + 3);
}

/* The quick test, as every launch runs it. */
static void test_quick(void **state)
{
    (void)state;
    Gpul__Sweep nothing_asked = GPUL__SWEEP__INIT;
    run(1, GPUL__SELF_TEST__LEVEL__QUICK, &nothing_asked);
    assert_int_equal(stage.probes[0].result->probe_result->n_rows, 11);
}

/* All devices of this machine as one communicator. */
static void test_all_devices(void **state)
{
    (void)state;
    Gpul__Sweep nothing_asked = GPUL__SWEEP__INIT;
    if (device_count < 2) {
        print_message("skipped: one GPU has no peer\n");
        skip();
    }
    run(device_count, GPUL__SELF_TEST__LEVEL__QUICK, &nothing_asked);
    const Gpul__ProbeResult *result = stage.probes[0].result->probe_result;
    for (size_t i = 0; i < result->n_rows; i++) {
        print_row(result->rows[i], device_count);
    }
}

/* A stop in the middle of the sweep ends the probe, and its context. */
static bool is_in_sweep(const struct stage_probe *probe)
{
    return (probe->phases & 1u << GPUL__PROBE_PHASE__PHASE__INIT) != 0;
}

static void test_stop(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 64 << 20;
    sweep.bytes_max = 64 << 20;
    sweep.iterations = 1000;
    sweep.check = 100;
    const struct stage_spec spec = {
        .nodes = 1, .per_node = 1, .uuids = uuid_list, .sweep = &sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, is_in_sweep);
    uint64_t start_ms = gpul_clock_ms();
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
    assert_null(stage.probes[0].result);
    assert_int_equal(WEXITSTATUS(stage.probes[0].status), 0);
    assert_true(gpul_clock_ms() - start_ms < 15000);
}

/* The memory of every device is back to what it was before. */
static bool is_at_baseline(void)
{
    const Gpul__ProbeFacts *facts = scout();
    bool is_back = true;
    for (uint32_t i = 0; i < device_count; i++) {
        is_back = is_back && facts->devices[i]->memory_used_bytes <=
                                 used_bytes[i] + BASELINE_WITHIN_BYTES;
    }
    stage_end(&stage);
    return is_back;
}

static void test_memory_is_back(void **state)
{
    (void)state;
    uint64_t deadline_ms = gpul_clock_ms() + BASELINE_BOUND_MS;
    while (!is_at_baseline()) {
        assert_true(gpul_clock_ms() < deadline_ms);
    }
}

/* Training on the device that was tested works. */
static void test_training(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("CUDA_VISIBLE_DEVICES", uuids[0], 1);
        execlp("python3", "python3", GPUL_TEST_TRAINING, NULL);
        _exit(EXIT_SKIPPED);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == EXIT_SKIPPED) {
        print_message("skipped: no PyTorch or TensorFlow that sees a GPU\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_facts, teardown),
        cmocka_unit_test_teardown(test_one_rank, teardown),
        cmocka_unit_test_teardown(test_quick, teardown),
        cmocka_unit_test_teardown(test_all_devices, teardown),
        cmocka_unit_test_teardown(test_stop, teardown),
        cmocka_unit_test_teardown(test_memory_is_back, teardown),
        cmocka_unit_test_teardown(test_training, teardown),
    };
    const char *reason = look();
    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return EXIT_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
