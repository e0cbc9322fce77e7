/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/coordinator/facts_stage.h"

static void expect(enum facts_verdict verdict, const char *why,
                   const struct node *node)
{
    assert_int_equal(stage_judge(), verdict);
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
    assert_int_equal(stage_judge(), FACTS_GOOD);
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
           "NCCL cannot be used on n0: NCCL was not found (2 other reasons "
           "elsewhere)",
           &roster.nodes[0]);
    assert_string_equal(facts.unusable.answers[1].text,
                        "the driver was not found");
    assert_string_equal(facts.unusable.answers[2].text,
                        "libcuda.so.1 is only a stub");
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
    assert_int_equal(stage_judge(), FACTS_WRONG);
    assert_ptr_equal(judgement.node, &roster.nodes[1]);
}

static void test_shared(void **state)
{
    (void)state;
    roster.nodes[2].hostname[1] = '0';
    snprintf(reports[2].uuids[0], sizeof(reports[2].uuids[0]), "GPU-01");
    assert_int_equal(stage_judge(), FACTS_SHARED);
}

/* Devices without a UUID are not each other's twins. */
static void test_no_uuid(void **state)
{
    (void)state;
    reports[1].uuids[0][0] = 0;
    reports[2].uuids[0][0] = 0;
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_string_equal(facts_uuid(&facts, 2), "");
    assert_string_equal(facts_uuid(&facts, 3), "GPU-11");
}

/* One card without a rate, no card at all, or nodes on one host: unknown. */
static void test_unknown_network(void **state)
{
    (void)state;
    reports[1].nics[0].gbits = 0;
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 0 && facts.rates.nics == 2);
    facts_release(&facts);
    assert_int_equal(facts_init(&facts, NODES), 0);
    reports[1].facts.n_nics = 0;
    assert_int_equal(stage_judge(), FACTS_GOOD);
    assert_true(facts.rates.nics_gbps == 0 && facts.rates.nics == 0);
    facts_release(&facts);
    assert_int_equal(facts_init(&facts, NODES), 0);
    stage_make_report(&reports[1], 1);
    roster.nodes[2].host_node_count = 2;
    assert_int_equal(stage_judge(), FACTS_GOOD);
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
        assert_int_equal(stage_judge(), FACTS_GOOD);
        assert_int_equal(facts.rates.algorithm, cases[i].expected);
        facts_release(&facts);
        assert_int_equal(facts_init(&facts, NODES), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_set, stage_clear)

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
        TEST(test_unknown_network),
        TEST(test_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
