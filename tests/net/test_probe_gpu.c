/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU probes that come to a good end, on the doubles of the GPU libraries:
 * what they say on the way, and what their result holds. And scouts.
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

#include <cmocka.h>

#include "tests/lib/gpustage.h"

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

enum { ALL_PHASES = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 };

static void assert_passed(uint32_t rank)
{
    const struct stage_probe *probe = &stage.probes[rank];
    const Gpul__ProbeResult *result = probe->result->probe_result;
    assert_string_equal(result->error, "");
    assert_string_equal(result->library_error, "");
    assert_string_equal(result->phase, "end");
    assert_int_equal(result->probe_rank, rank);
    assert_string_equal(result->device_uuid, probe->uuid);
    assert_int_equal(result->wrong_elements, 0);
    assert_true(result->is_simulated);
    assert_false(result->is_remote);
    assert_int_equal(probe->phases, ALL_PHASES);
    assert_true(WIFEXITED(probe->status));
    assert_int_equal(WEXITSTATUS(probe->status), 0);
    for (size_t i = 0; i < result->n_rows; i++) {
        const Gpul__ProbeRow *row = result->rows[i];
        assert_true(row->min_ns > 0 && row->min_ns <= row->median_ns &&
                    row->median_ns <= row->max_ns);
        assert_in_range(row->mean_ns, row->min_ns, row->max_ns);
        assert_int_equal(row->wrong_elements, 0);
        assert_true(row->iterations > 0);
    }
}

static void play(uint32_t nodes, uint32_t per_node)
{
    const struct stage_spec spec = {
        .scenario = "", .nodes = nodes, .per_node = per_node};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_passed(i);
        assert_int_equal(stage.probes[i].id != NULL, i == 0);
    }
}

/* "collective count bytes" of each row, in order. */
static const char *rows_text(const Gpul__ProbeResult *result)
{
    static char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < result->n_rows; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d %llu %llu",
                              i == 0 ? "" : ", ",
                              (int)result->rows[i]->collective,
                              (unsigned long long)result->rows[i]->count,
                              (unsigned long long)result->rows[i]->bytes);
    }
    return text;
}

/* One rank alone: every phase, every collective, nothing wrong. */
static void test_one_rank(void **state)
{
    (void)state;
    play(1, 1);
    assert_string_equal(rows_text(stage.probes[0].result->probe_result),
                        "1 1024 4096, 1 4096 16384, 1 16384 65536, "
                        "2 16384 65536, 3 16384 65536, 4 16384 65536, "
                        "5 16384 65536, 6 16384 65536");
}

/* Two ranks on two nodes. */
static void test_two_ranks(void **state)
{
    (void)state;
    play(2, 1);
    assert_string_equal(rows_text(stage.probes[1].result->probe_result),
                        "1 1024 4096, 1 4096 16384, 1 16384 65536, "
                        "2 8192 65536, 3 8192 65536, 4 16384 65536, "
                        "5 8192 65536, 6 16384 65536");
}

/* Four nodes of two devices: rank 0 makes the ID, and tells where it
 * listens. */
static void test_eight_ranks(void **state)
{
    (void)state;
    play(4, 2);
    assert_string_equal(stage.probes[0].id->probe_id->address, "127.0.0.1");
}

/* The whole of full, with its copies, on sizes that a test can wait for. */
static void test_full(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 8;
    sweep.bytes_max = 1 << 20;
    sweep.factor = 16;
    sweep.iterations = 2;
    sweep.warmup = 1;
    const struct stage_spec spec = {.scenario = "",
                                    .nodes = 2,
                                    .per_node = 1,
                                    .level = GPUL__SELF_TEST__LEVEL__FULL,
                                    .sweep = &sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_passed(i);
        const Gpul__ProbeResult *result = stage.probes[i].result->probe_result;
        assert_int_equal(result->n_rows, 6 * 5 + 3);
        assert_int_equal(result->rows[32]->collective, 9);
        assert_int_equal(result->rows[32]->bytes, 32 << 20);
        assert_int_equal(result->rows[0]->iterations, 2);
    }
}

/* A device that has too little memory cuts the sizes of every rank, so that
 * they still call the same collectives. */
static void test_least_memory(void **state)
{
    (void)state;
    Gpul__Sweep sweep = GPUL__SWEEP__INIT;
    sweep.bytes_min = 1 << 20;
    sweep.bytes_max = 64 << 20;
    sweep.factor = 2;
    sweep.iterations = 1;
    sweep.warmup = 1;
    sweep.check = 1;
    const struct stage_spec spec = {.scenario =
                                        "gpu local-1 0 memory 1GiB used 480MiB",
                                    .nodes = 2,
                                    .per_node = 1,
                                    .sweep = &sweep};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_passed(i);
        /* 1 GiB less what is used and 512 MiB of the context: 32 MiB free */
        assert_string_equal(rows_text(stage.probes[i].result->probe_result),
                            "1 262144 1048576, 1 524288 2097152, "
                            "1 1048576 4194304, 1 2097152 8388608, "
                            "2 1048576 8388608, 3 1048576 8388608, "
                            "4 2097152 8388608, 5 1048576 8388608, "
                            "6 2097152 8388608");
    }
}

/* Devices by index, where their UUIDs are not known. */
static void test_by_index(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "", .nodes = 1, .per_node = 2, .has_no_uuids = true};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    assert_passed(0);
    assert_passed(1);
}

/* Several IDs: their roots are spread, and each makes one. */
static void test_three_ids(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "", .nodes = 3, .per_node = 2, .id_count = 3};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 6; i++) {
        assert_passed(i);
        const Gpul__Frame *id = stage.probes[i].id;
        assert_int_equal(id != NULL, i % 2 == 0);
        if (id != NULL) {
            assert_int_equal(id->probe_id->index, i / 2);
        }
    }
}

/* What is slow is said while it lasts: the phase that is behind, and what is
 * being done now. */
static bool has_told_twice(const struct stage_probe *probe)
{
    return (probe->phases & 1 << GPUL__PROBE_PHASE__PHASE__CUDA) != 0 &&
           strcmp(probe->text, "setting up the communicator: waiting in NCCL "
                               "for all 2 ranks") == 0;
}

static void test_says_what_it_does(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "fault rank 1 late 2500ms", .nodes = 2, .per_node = 1};
    stage_start(&stage, &spec, false);
    stage_until(&stage, 0, has_told_twice);
    stage_until(&stage, 0, stage_is_gone);
    assert_passed(0);
    assert_passed(1);
}

/* ---- scouts -------------------------------------------------------------- */

/* A scout names the libraries and the devices of its node, and that they are
 * simulated; no error. */
static void test_scout(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "node local-1 nccl 22703", .nodes = 2, .per_node = 3};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 2; i++) {
        const Gpul__ProbeFacts *facts = stage.probes[i].facts->probe_facts;
        assert_string_equal(facts->error, "");
        assert_true(facts->is_simulated);
        assert_true(facts->has_scalable_init);
        assert_int_equal(facts->nccl->version_code, i == 0 ? 22809 : 22703);
        assert_int_equal(facts->n_devices, 3);
        for (uint32_t d = 0; d < 3; d++) {
            char uuid[STAGE_UUID_BYTES];
            stage_uuid(uuid, i, d);
            assert_string_equal(facts->devices[d]->uuid, uuid);
            assert_int_equal(facts->devices[d]->index, d);
        }
        assert_int_equal(WEXITSTATUS(stage.probes[i].status), 0);
    }
}

/* A node without a device says so, with the libraries all the same. */
static void test_scout_without_device(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "node local-0 gpus 0", .nodes = 1, .per_node = 1};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
    assert_string_not_equal(facts->error, "");
    assert_int_equal(facts->n_devices, 0);
    assert_int_equal(facts->nccl->version_code, 22809);
}

/* What is wrong with a device, what carries its data, and the versions. */
static void test_scout_of_a_sick_device(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "node * driver 570.86\n"
                    "gpu * 1 throttle 0x40 temperature 95 nvlink-version 0 "
                    "pcie-width 8 ecc off bus 0000:3b:00.0",
        .nodes = 1,
        .per_node = 2};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
    const Gpul__Device *well = facts->devices[0];
    const Gpul__Device *sick = facts->devices[1];
    assert_string_equal(facts->driver_version, "570.86");
    assert_int_equal(facts->n_nics, 0); /* loopback has none */
    assert_int_equal(well->n_findings, 0);
    assert_int_equal(well->link_kind, GPUL__LINK__LINK_NVLINK);
    assert_int_equal(well->ecc, GPUL__DEVICE__SWITCH__ON);
    assert_int_equal(well->mig, GPUL__DEVICE__SWITCH__OFF);
    assert_true(well->pcie_gbps > 63 && well->pcie_gbps < 63.1);
    assert_int_equal(sick->n_findings, 3);
    assert_string_equal(sick->findings[0],
                        "PCI-513 PCIe width is 8 of 16: reseat the GPU");
    assert_string_equal(sick->findings[1],
                        "GPU-220 clocks are held down: too hot, the hardware "
                        "slows it down; look at its cooling");
    assert_string_equal(sick->findings[2],
                        "GPU-221 it has 95 C, and from 92 C on it is slowed "
                        "down: look at its cooling");
    assert_int_equal(sick->link_kind, GPUL__LINK__LINK_PCIE);
    assert_true(sick->link_gbps == sick->pcie_gbps);
    assert_true(sick->pcie_gbps < 32);
    assert_int_equal(sick->ecc, GPUL__DEVICE__SWITCH__OFF);
    assert_string_equal(sick->bus_id, "00000000:3B:00.0");
}

/* An entry of CUDA_VISIBLE_DEVICES that names no device is told; for one that
 * names a device twice the driver has none, and which it was is told too. */
static void test_scout_of_a_bad_list(void **state)
{
    (void)state;
    static const struct {
        const char *visible;
        size_t count;
        const char *refused;
        const char *error; /* of which this is a part */
    } cases[] = {
        {"1,9,0", 1, "9", ""},
        {"0,0", 1, "0",
         "; in CUDA_VISIBLE_DEVICES=0,0 \"0\" names no device, or one that it "
         "has named before"},
        {"junk,0", 0, "junk",
         "CUDA_VISIBLE_DEVICES=junk,0 leaves none of 2 GPUs: there is no "
         "\"junk\""},
    };
    const struct stage_spec spec = {
        .scenario = "", .nodes = 1, .per_node = 2, .count = 1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
        stage_start(&stage, &spec, true);
        unsetenv("CUDA_VISIBLE_DEVICES");
        stage_until(&stage, 0, stage_is_gone);
        const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
        assert_int_equal(facts->n_devices, cases[i].count);
        assert_string_equal(facts->refused_device, cases[i].refused);
        assert_non_null(strstr(facts->error, cases[i].error));
        assert_int_equal(facts->error[0] != 0, cases[i].error[0] != 0);
        stage_end(&stage);
    }
}

/* An old NCCL without ncclCommInitRankScalable: the scout says so. */
static void test_scout_of_an_old_library(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "fault missing-symbol ncclCommInitRankScalable",
        .nodes = 1,
        .per_node = 1};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
    assert_string_equal(facts->error, "");
    assert_false(facts->has_scalable_init);
}

/* An NCCL below 2.18 without ncclCommSplit: the scout says so. */
static void test_scout_without_split(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "fault node local-1 missing-symbol ncclCommSplit",
        .nodes = 2,
        .per_node = 1};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < 2; i++) {
        const Gpul__ProbeFacts *facts = stage.probes[i].facts->probe_facts;
        assert_string_equal(facts->error, "");
        assert_int_equal(facts->has_comm_split, i == 0);
    }
}

/* A library that lacks what is needed: the symbol is named. */
static void test_scout_of_a_broken_library(void **state)
{
    (void)state;
    const struct stage_spec spec = {
        .scenario = "fault missing-symbol ncclCommInitRankConfig",
        .nodes = 1,
        .per_node = 1};
    stage_start(&stage, &spec, true);
    stage_until(&stage, 0, stage_is_gone);
    const Gpul__ProbeFacts *facts = stage.probes[0].facts->probe_facts;
    assert_non_null(strstr(facts->error, "ncclCommInitRankConfig"));
    assert_int_equal(facts->n_devices, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_one_rank, teardown),
        cmocka_unit_test_teardown(test_two_ranks, teardown),
        cmocka_unit_test_teardown(test_eight_ranks, teardown),
        cmocka_unit_test_teardown(test_full, teardown),
        cmocka_unit_test_teardown(test_least_memory, teardown),
        cmocka_unit_test_teardown(test_by_index, teardown),
        cmocka_unit_test_teardown(test_three_ids, teardown),
        cmocka_unit_test_teardown(test_says_what_it_does, teardown),
        cmocka_unit_test_teardown(test_scout, teardown),
        cmocka_unit_test_teardown(test_scout_without_device, teardown),
        cmocka_unit_test_teardown(test_scout_of_a_sick_device, teardown),
        cmocka_unit_test_teardown(test_scout_of_a_bad_list, teardown),
        cmocka_unit_test_teardown(test_scout_of_an_old_library, teardown),
        cmocka_unit_test_teardown(test_scout_without_split, teardown),
        cmocka_unit_test_teardown(test_scout_of_a_broken_library, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
