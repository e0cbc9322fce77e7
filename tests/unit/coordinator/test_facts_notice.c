/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of the scouts' finds that end nothing, and how it is folded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/coordinator/facts_stage.h"

static void expect_notices(const char *const *expected, size_t count)
{
    struct text text;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(facts_next_notice(&facts, &text, &at, &roster));
        assert_string_equal(text.bytes, expected[i]);
    }
    assert_false(facts_next_notice(&facts, &text, &at, &roster));
}

/* Differences that end nothing are told, findings folded. */
static void test_notices(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "GPU-202 the numbers of devices differ: n1 has 1, n[0,2] have 2; not "
        "on n1: bus id 3B",
        "VER-301 the builds of NCCL differ: n0 has 2.28.9 build 1a, n[1-2] "
        "have 2.28.9 build unknown",
        "2 devices of n2: ECC errors",
        "device GPU-01 (bus id 3B) of node n0: power is capped",
    };
    char *ecc = wire_text("ECC errors");
    char *power = wire_text("power is capped");
    reports[1].facts.n_devices = 1;
    reports[0].nccl.build_id = wire_text("1a");
    for (size_t i = 0; i < DEVICES; i++) {
        reports[2].devices[i].findings = &ecc;
        reports[2].devices[i].n_findings = 1;
    }
    reports[0].devices[1].findings = &power;
    reports[0].devices[1].n_findings = 1;
    for (size_t i = 0; i < NODES; i++) {
        reports[i].devices[0].bus_id = wire_text("1A");
        reports[i].devices[1].bus_id = wire_text("3B");
    }
    assert_int_equal(stage_judge(), FACTS_GOOD);
    expect_notices(expected, sizeof(expected) / sizeof(expected[0]));
}

/* What of a device should be the same everywhere: the minority first. A node
 * whose devices differ is on both sides. */
static void test_unlike_devices(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "GPU-203 the models of the devices differ: n0 has B, n[0-2] have A; "
        "all go at the pace of the slowest",
        "GPU-204 the memory of the devices differs: n2 has 80.0 GiB, n[0-2] "
        "have unknown; the least is the limit for all",
        "GPU-205 ECC of the devices differs: n1 has off, n[0-2] have on; set "
        "it alike with nvidia-smi -e and reset the GPUs",
        "GPU-206 MIG of the devices differs: n1 has on, n[0-2] have "
        "unknown; set it alike with nvidia-smi -mig",
        "GPU-240 the links between the devices of a node differ: n2 has PCIe "
        "of 63.0 GB/s, n[0-2] have NVLink of 450.0 GB/s; look at nvidia-smi "
        "nvlink -s and at the fabric manager",
        "VER-304 the kernel drivers differ: n1 has 570.1, n[0,2] have "
        "unknown; install the same on every node",
    };
    for (size_t i = 0; i < NODES * DEVICES; i++) {
        reports[i / DEVICES].devices[i % DEVICES].ecc =
            GPUL__DEVICE__SWITCH__ON;
    }
    reports[0].devices[1].model = wire_text("B");
    reports[1].devices[0].ecc = GPUL__DEVICE__SWITCH__OFF;
    reports[1].devices[1].mig = GPUL__DEVICE__SWITCH__ON;
    reports[1].facts.driver_version = wire_text("570.1");
    reports[2].devices[0].memory_bytes = UINT64_C(80) << 30;
    reports[2].devices[1].link_gbps = 63;
    reports[2].devices[1].link_kind = GPUL__LINK__LINK_PCIE;
    assert_int_equal(stage_judge(), FACTS_GOOD);
    expect_notices(expected, sizeof(expected) / sizeof(expected[0]));
    assert_true(facts.rates.link_gbps == 63);
    assert_int_equal(facts.rates.link_kind, GPUL_PCIE);
}

/* Fewer or slower cards are named, and the least of any node counts; TCP on
 * one node means TCP for all. */
static void test_unlike_cards(void **state)
{
    (void)state;
    const char *expected =
        "NET-140 the network cards differ: n0 has 2 x RDMA 400 Gbit/s, n1 has "
        "1 x RDMA 400 Gbit/s, mlx5_1 down, n2 has 1 x RDMA 400 Gbit/s, 1 x "
        "TCP 200 Gbit/s; the node with the least sets the pace: look at its "
        "cables, ports and drivers";
    reports[1].nics[1].is_down = true;
    reports[1].nics[1].gbits = 0;
    reports[2].nics[1].gbits = 200;
    reports[2].nics[1].kind = GPUL__LINK__LINK_TCP;
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 50 && facts.rates.nics == 1);
    assert_int_equal(facts.rates.nics_kind, GPUL_TCP);
    expect_notices(&expected, 1);
}

/* An entry of CUDA_VISIBLE_DEVICES that is no use is told, and where. */
static void test_refused(void **state)
{
    (void)state;
    const char *expected =
        "ENV-131 CUDA_VISIBLE_DEVICES of n[1-2]: \"9\" names no device there, "
        "or one that it has named before; what stands behind it is not used "
        "either";
    reports[1].facts.refused_device = wire_text("9");
    reports[2].facts.refused_device = wire_text("9");
    assert_int_equal(stage_judge(), FACTS_GOOD);
    expect_notices(&expected, 1);
}

/* What has no name leaves no hole. */
static void test_nameless(void **state)
{
    (void)state;
    char *power = wire_text("power is capped");
    struct text text;
    size_t at = 0;
    reports[0].uuids[1][0] = 0;
    reports[0].devices[1].findings = &power;
    reports[0].devices[1].n_findings = 1;
    reports[1].cuda.version = wire_text("");
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_true(facts_next_notice(&facts, &text, &at, &roster));
    assert_non_null(strstr(text.bytes, "n1 has unknown, "));
    assert_true(facts_next_notice(&facts, &text, &at, &roster));
    assert_string_equal(text.bytes, "a device of node n0: power is capped");
}

/* One line for each distinct set, and for each distinct set of settings. */
static void test_lines(void **state)
{
    (void)state;
    static const char *const expected[] = {
        ("n2: NCCL of unknown version (/lib/libnccl.so.2), driver for CUDA "
         "13.0 "
         "(/lib/libcuda.so.1), kernel driver 580.95.05; 2 x several models; "
         "network: 1 x RDMA 400 Gbit/s, mlx5_1 down"),
        ("n[0-1]: NCCL 2.28.9 (/lib/libnccl.so.2), driver for CUDA 13.0 "
         "(/lib/libcuda.so.1); 2 x A; network: 2 x RDMA 400 Gbit/s"),
        "n1: NCCL_DEBUG=WARN NCCL_NVLS_ENABLE=0",
    };
    bool is_setting;
    char *settings[] = {wire_text("NCCL_DEBUG=WARN"),
                        wire_text("NCCL_NVLS_ENABLE=0")};
    struct text text;
    size_t at = 0;
    reports[2].nccl.version = wire_text("");
    reports[2].devices[1].model = wire_text("B");
    reports[2].facts.driver_version = wire_text("580.95.05");
    reports[2].nics[1].is_down = true;
    reports[1].facts.settings = settings;
    reports[1].facts.n_settings = 2;
    assert_int_equal(stage_judge(), FACTS_WRONG);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(facts_next_line(&facts, &text, &is_setting, &at, &roster));
        assert_string_equal(text.bytes, expected[i]);
        assert_int_equal(is_setting, i == 2);
    }
    assert_false(facts_next_line(&facts, &text, &is_setting, &at, &roster));
}

/* What stood in the way of a library is told with it. */
static void test_passed_over(void **state)
{
    (void)state;
    static char why[] = "/a/libnccl.so.2 (a library for another machine)";
    struct text text;
    bool is_setting;
    size_t at = 0;
    for (size_t i = 0; i < NODES; i++) {
        reports[i].nccl.passed_over = why;
    }
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_true(facts_next_line(&facts, &text, &is_setting, &at, &roster));
    assert_non_null(strstr(text.bytes, "; passed over: /a/libnccl.so.2 (a "
                                       "library for another machine))"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_notices),      TEST(test_unlike_devices),
        TEST(test_unlike_cards), TEST(test_refused),
        TEST(test_nameless),     TEST(test_lines),
        TEST(test_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
