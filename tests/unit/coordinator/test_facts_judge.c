/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/facts.h"

enum { NODES = 3, DEVICES = 2, NICS = 2 };

/* One node's report, good until a test changes it. */
struct report {
    Gpul__ProbeFacts facts;
    Gpul__Library nccl;
    Gpul__Library cuda;
    Gpul__Device devices[DEVICES];
    Gpul__Device *list[DEVICES];
    Gpul__Nic nics[NICS];
    Gpul__Nic *nic_list[NICS];
    char uuids[DEVICES][16];
};

static struct roster roster;
static struct facts facts;
static struct report reports[NODES];
static struct facts_judgement judgement;

static void make_report(struct report *r, uint32_t node)
{
    gpul__probe_facts__init(&r->facts);
    gpul__library__init(&r->nccl);
    gpul__library__init(&r->cuda);
    r->nccl.version = wire_text("2.28.9");
    r->nccl.path = wire_text("/lib/libnccl.so.2");
    r->cuda.version = wire_text("13.0");
    r->cuda.path = wire_text("/lib/libcuda.so.1");
    r->cuda.version_code = 13000;
    for (uint32_t i = 0; i < DEVICES; i++) {
        gpul__device__init(&r->devices[i]);
        snprintf(r->uuids[i], sizeof(r->uuids[i]), "GPU-%u%u", node, i);
        r->devices[i].uuid = r->uuids[i];
        r->devices[i].model = wire_text("A");
        r->devices[i].link_gbps = 450;
        r->devices[i].link_kind = GPUL__LINK__LINK_NVLINK;
        r->devices[i].pcie_gbps = 63;
        r->list[i] = &r->devices[i];
    }
    for (uint32_t i = 0; i < NICS; i++) {
        gpul__nic__init(&r->nics[i]);
        r->nics[i].name = wire_text(i == 0 ? "mlx5_0" : "mlx5_1");
        r->nics[i].kind = GPUL__LINK__LINK_RDMA;
        r->nics[i].gbits = 400;
        r->nic_list[i] = &r->nics[i];
    }
    r->facts.nics = r->nic_list;
    r->facts.n_nics = NICS;
    r->facts.nccl = &r->nccl;
    r->facts.cuda = &r->cuda;
    r->facts.devices = r->list;
    r->facts.n_devices = DEVICES;
    r->facts.has_scalable_init = true;
}

static int setup(void **state)
{
    (void)state;
    char *names = wire_text("n[0-2]");
    Gpul__Job job = GPUL__JOB__INIT;
    Gpul__Facts host = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    job.node_count = NODES;
    job.node_names = &names;
    job.n_node_names = 1;
    hello.facts = &host;
    assert_int_equal(roster_init(&roster, &job, NULL), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[] = {'h', (char)('0' + i), 0};
        host.hostname = name;
        assert_int_equal(roster_join(&roster, &roster.nodes[i], i, &hello), 0);
        make_report(&reports[i], i);
    }
    return facts_init(&facts, NODES);
}

static int teardown(void **state)
{
    (void)state;
    facts_release(&facts);
    roster_release(&roster);
    return 0;
}

/* In another order than that of the nodes. */
static enum facts_verdict judge(void)
{
    for (uint32_t i = NODES; i > 0; i--) {
        assert_int_equal(facts_add(&facts, i - 1, &reports[i - 1].facts), 0);
    }
    assert_int_equal(facts_judge(&facts, &judgement, &roster), 0);
    return judgement.verdict;
}

static void expect(enum facts_verdict verdict, const char *why,
                   const struct node *node)
{
    assert_int_equal(judge(), verdict);
    assert_string_equal(judgement.why.bytes, why);
    assert_ptr_equal(judgement.node, node);
}

/* Equal nodes: ranks in node order, each with its device. */
static void test_good(void **state)
{
    (void)state;
    expect(FACTS_GOOD, "", NULL);
    assert_int_equal(facts_rank_count(&facts), NODES * DEVICES);
    assert_int_equal(facts_ranks_per_node(&facts), DEVICES);
    assert_int_equal(facts_node(&facts, 0), 0);
    assert_int_equal(facts_node(&facts, 3), 1);
    assert_int_equal(facts_node(&facts, 5), 2);
    assert_string_equal(facts_uuid(&facts, 3), "GPU-11");
    assert_true(facts.rates.link_gbps == 450 && facts.rates.host_gbps == 63);
    assert_int_equal(facts.rates.link_kind, GPUL_NVLINK);
    assert_true(facts.rates.nics_gbps == 100 && facts.rates.nics == 2);
    assert_int_equal(facts.rates.nics_kind, GPUL_RDMA);
    assert_int_equal(facts.rates.algorithm, GPUL_HIERARCHICAL);
    assert_false(facts.has_one_id || facts.is_simulated);
    size_t at = 0;
    struct text text;
    assert_false(facts_next_notice(&facts, &text, &at, &roster));
}

/* The link of the worst device counts, and an unknown one makes it unknown;
 * one node is enough for a single ID, and for SIMULATED. */
static void test_worst(void **state)
{
    (void)state;
    reports[1].devices[1].link_gbps = 0;
    reports[1].facts.has_scalable_init = false;
    reports[2].facts.is_simulated = true;
    reports[2].facts.n_devices = 1;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts.rates.link_gbps == 0 && facts.rates.host_gbps == 63);
    assert_true(facts.has_one_id && facts.is_simulated);
    assert_int_equal(facts_ranks_per_node(&facts), 0);
    assert_int_equal(facts_rank_count(&facts), 5);
}

/* The scout's own error comes first, then what is missing. */
static void test_unusable(void **state)
{
    (void)state;
    reports[1].facts.error = wire_text("the scout was ended by signal 11");
    reports[1].facts.nccl = NULL;
    expect(FACTS_UNUSABLE,
           "NCCL cannot be used on n1: the scout was ended by signal 11",
           &roster.nodes[1]);
}

static void test_missing_parts(void **state)
{
    (void)state;
    reports[0].facts.nccl = NULL;
    reports[1].facts.cuda = NULL;
    reports[2].cuda.error = wire_text("libcuda.so.1 is only a stub");
    expect(FACTS_UNUSABLE,
           "NCCL cannot be used on n2: libcuda.so.1 is only a stub (2 other "
           "reasons elsewhere)",
           &roster.nodes[2]);
    assert_string_equal(facts.unusable.answers[1].text,
                        "the driver was not found");
    assert_string_equal(facts.unusable.answers[2].text, "NCCL was not found");
}

/* A driver serves the releases of its own major number and older ones. */
static void test_old_driver(void **state)
{
    (void)state;
    reports[0].nccl.version = wire_text("2.28.9+cuda13.0");
    reports[1].nccl.version = wire_text("2.28.9+cuda12.9");
    reports[1].cuda.version_code = 12040;
    reports[2].nccl.version = wire_text("2.28.9+cuda13.0");
    reports[2].cuda.version_code = 12080;
    expect(FACTS_UNUSABLE,
           "NCCL cannot be used on n2: VER-302 NCCL 2.28.9+cuda13.0 needs a "
           "driver for CUDA 13 and this one is for CUDA 12.8; update the "
           "driver, or use an NCCL built for an older CUDA",
           &roster.nodes[2]);
}

static void test_versions(void **state)
{
    (void)state;
    reports[0].nccl.version = wire_text("2.27.3+cuda13.0");
    reports[1].nccl.version = wire_text("2.28.9+cuda12.9");
    expect(FACTS_WRONG,
           "VER-301 the versions of NCCL differ: n0 has 2.27.3, n[1-2] have "
           "2.28.9; install the same on every node, or name it with "
           "--nccl-lib",
           &roster.nodes[0]);
}

/* Twice within a node, or on two hosts, is wrong; on one host it is shared. */
static void test_twins(void **state)
{
    (void)state;
    snprintf(reports[2].uuids[0], sizeof(reports[2].uuids[0]), "GPU-01");
    expect(FACTS_WRONG,
           "GPU-201 rank 1 (node n0, its device 1) and rank 4 (node n2, its "
           "device 0) have the same device GPU-01; give each a device of its "
           "own, with CUDA_VISIBLE_DEVICES for example",
           &roster.nodes[2]);
}

static void test_twin_in_node(void **state)
{
    (void)state;
    snprintf(reports[1].uuids[0], sizeof(reports[1].uuids[0]), "GPU-11");
    assert_int_equal(judge(), FACTS_WRONG);
    assert_ptr_equal(judgement.node, &roster.nodes[1]);
}

static void test_shared(void **state)
{
    (void)state;
    roster.nodes[2].hostname[1] = '0';
    snprintf(reports[2].uuids[0], sizeof(reports[2].uuids[0]), "GPU-01");
    assert_int_equal(judge(), FACTS_SHARED);
}

/* Devices without a UUID are not each other's twins. */
static void test_no_uuid(void **state)
{
    (void)state;
    reports[1].uuids[0][0] = 0;
    reports[2].uuids[0][0] = 0;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_string_equal(facts_uuid(&facts, 2), "");
    assert_string_equal(facts_uuid(&facts, 3), "GPU-11");
}

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
    assert_int_equal(judge(), FACTS_GOOD);
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
    assert_int_equal(judge(), FACTS_GOOD);
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
        "NET-140 the network cards differ: n2 has 1 x RDMA 400 Gbit/s, 1 x "
        "TCP 200 Gbit/s, n1 has 1 x RDMA 400 Gbit/s, mlx5_1 down, n0 has 2 x "
        "RDMA 400 Gbit/s; the node with the least sets the pace: look at its "
        "cables, ports and drivers";
    reports[1].nics[1].is_down = true;
    reports[1].nics[1].gbits = 0;
    reports[2].nics[1].gbits = 200;
    reports[2].nics[1].kind = GPUL__LINK__LINK_TCP;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 50 && facts.rates.nics == 1);
    assert_int_equal(facts.rates.nics_kind, GPUL_TCP);
    expect_notices(&expected, 1);
}

/* One card without a rate, no card at all, or nodes on one host: unknown. */
static void test_unknown_network(void **state)
{
    (void)state;
    reports[1].nics[0].gbits = 0;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 0 && facts.rates.nics == 2);
    facts_release(&facts);
    assert_int_equal(facts_init(&facts, NODES), 0);
    reports[1].facts.n_nics = 0;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 0 && facts.rates.nics == 0);
    facts_release(&facts);
    assert_int_equal(facts_init(&facts, NODES), 0);
    make_report(&reports[1], 1);
    roster.nodes[2].host_node_count = 2;
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 0 && facts.rates.nics == 0);
    assert_true(facts.rates.link_gbps == 450);
}

/* What the user asks of NCCL on every node decides how it crosses the
 * network. */
static void test_algorithm(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        size_t nodes;
        enum gpul_algorithm expected;
    } cases[] = {
        {"NCCL_ALGO=Ring", NODES, GPUL_FLAT_RING},
        {"NCCL_ALGO=Ring", NODES - 1, GPUL_HIERARCHICAL},
        {"NCCL_ALGO=Ring,Tree", NODES, GPUL_HIERARCHICAL},
        {"NCCL_COLLNET_ENABLE=1", NODES, GPUL_IN_NETWORK},
        {"NCCL_COLLNET_ENABLE=0", NODES, GPUL_HIERARCHICAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *setting = wire_text(cases[i].setting);
        for (size_t k = 0; k < NODES; k++) {
            reports[k].facts.settings = &setting;
            reports[k].facts.n_settings = k < cases[i].nodes;
        }
        assert_int_equal(judge(), FACTS_GOOD);
        assert_int_equal(facts.rates.algorithm, cases[i].expected);
        facts_release(&facts);
        assert_int_equal(facts_init(&facts, NODES), 0);
    }
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
    assert_int_equal(judge(), FACTS_GOOD);
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
    assert_int_equal(judge(), FACTS_GOOD);
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
    assert_int_equal(judge(), FACTS_WRONG);
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
    assert_int_equal(judge(), FACTS_GOOD);
    assert_true(facts_next_line(&facts, &text, &is_setting, &at, &roster));
    assert_non_null(strstr(text.bytes, "; passed over: /a/libnccl.so.2 (a "
                                       "library for another machine))"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_good),
        TEST(test_worst),
        TEST(test_unusable),
        TEST(test_missing_parts),
        TEST(test_old_driver),
        TEST(test_versions),
        TEST(test_twins),
        TEST(test_twin_in_node),
        TEST(test_shared),
        TEST(test_no_uuid),
        TEST(test_notices),
        TEST(test_lines),
        TEST(test_unlike_devices),
        TEST(test_unlike_cards),
        TEST(test_unknown_network),
        TEST(test_algorithm),
        TEST(test_refused),
        TEST(test_passed_over),
        TEST(test_nameless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
