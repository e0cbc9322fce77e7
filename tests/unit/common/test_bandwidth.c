/* SPDX-License-Identifier: Apache-2.0
 *
 * The formulas against nccl-tests' definitions and against published runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bandwidth.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_near(double actual, double expected, double tolerance)
{
    if (actual < expected - tolerance || actual > expected + tolerance) {
        fail_msg("%.6f is not within %.6f of %.6f", actual, tolerance,
                 expected);
    }
}

/* GB/s are 1e9 bytes in a second, so 1 GiB in a second is 1.0737. */
static void test_algbw(void **state)
{
    (void)state;
    assert_near(gpul_algbw_gbps(1000000000, 1000000000), 1, 0);
    assert_near(gpul_algbw_gbps(1 << 30, 1000000000), 1.073741824, 1e-9);
    assert_near(gpul_algbw_gbps(8, 0), 0, 0);
}

/* The factor of each operation at 2, 8 and 32 ranks is nccl-tests'. */
static void test_busbw_factor(void **state)
{
    (void)state;
    static const struct {
        enum gpul_collective collective;
        double at_2, at_8, at_32;
    } rows[] = {
        {GPUL_COLLECTIVE_NONE, 1, 1.75, 1.9375},
        {GPUL_ALL_REDUCE, 1, 1.75, 1.9375},
        {GPUL_ALL_GATHER, 0.5, 0.875, 0.96875},
        {GPUL_REDUCE_SCATTER, 0.5, 0.875, 0.96875},
        {GPUL_ALL_TO_ALL, 0.5, 0.875, 0.96875},
        {GPUL_BROADCAST, 1, 1, 1},
        {GPUL_SEND_RECV, 1, 1, 1},
        {GPUL_COPY_TO_DEVICE, 1, 1, 1},
        {GPUL_COPY_TO_HOST, 1, 1, 1},
        {GPUL_COPY_ON_DEVICE, 1, 1, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double factor;
        assert_true(gpul_busbw_factor(&factor, rows[i].collective, 2));
        assert_near(factor, rows[i].at_2, 1e-12);
        assert_true(gpul_busbw_factor(&factor, rows[i].collective, 8));
        assert_near(factor, rows[i].at_8, 1e-12);
        assert_true(gpul_busbw_factor(&factor, rows[i].collective, 32));
        assert_near(factor, rows[i].at_32, 1e-12);
    }
}

/* One rank, and none: busbw of a collective is not a figure, that of a copy
 * is. */
static void test_one_rank(void **state)
{
    (void)state;
    double factor = 5;
    for (int c = GPUL_COLLECTIVE_NONE; c <= GPUL_SEND_RECV; c++) {
        for (uint32_t ranks = 0; ranks < 2; ranks++) {
            assert_false(
                gpul_busbw_factor(&factor, (enum gpul_collective)c, ranks));
            assert_near(factor, 0, 0);
        }
    }
    assert_true(gpul_busbw_factor(&factor, GPUL_COPY_TO_HOST, 1));
    assert_false(gpul_busbw_factor(&factor, (enum gpul_collective)77, 8));
}

/* Nodes of 8 devices with 8 cards of 400 Gb/s each, links not counted. */
static void test_ceilings(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes;
        double ring, hierarchical, in_network;
    } rows[] = {
        {2, 400, 750, 750},  {4, 400, 517, 775},  {8, 400, 450, 788},
        {16, 400, 423, 794}, {64, 400, 406, 798},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_fabric fabric = {.ranks = 8 * rows[i].nodes,
                                     .nodes = rows[i].nodes,
                                     .nics_gbps = 400};
        assert_near(gpul_ceiling_ring_gbps(&fabric), rows[i].ring, 0.5);
        assert_near(gpul_ceiling_hierarchical_gbps(&fabric),
                    rows[i].hierarchical, 0.5);
        assert_near(gpul_ceiling_in_network_gbps(&fabric), rows[i].in_network,
                    0.5);
    }
}

/* The links within a node cap what the network would allow, and are all
 * there is on one node. */
static void test_ceilings_of_links(void **state)
{
    (void)state;
    struct gpul_fabric two = {16, 2, 450, 400};
    assert_near(gpul_ceiling_ring_gbps(&two), 400, 1e-9);
    assert_near(gpul_ceiling_hierarchical_gbps(&two), 450, 1e-9);
    assert_near(gpul_ceiling_in_network_gbps(&two), 450, 1e-9);
    struct gpul_fabric one = {8, 1, 450, 400};
    assert_near(gpul_ceiling_ring_gbps(&one), 450, 1e-9);
    assert_near(gpul_ceiling_hierarchical_gbps(&one), 450, 1e-9);
    assert_near(gpul_ceiling_in_network_gbps(&one), 450, 1e-9);
}

/* What is not known has no ceiling. */
static void test_ceilings_unknown(void **state)
{
    (void)state;
    struct gpul_fabric no_nics = {16, 2, 450, 0};
    struct gpul_fabric no_links = {8, 1, 0, 400};
    struct gpul_fabric nothing = {0};
    assert_near(gpul_ceiling_ring_gbps(&no_nics), 0, 0);
    assert_near(gpul_ceiling_hierarchical_gbps(&no_nics), 0, 0);
    assert_near(gpul_ceiling_ring_gbps(&no_links), 0, 0);
    assert_near(gpul_ceiling_in_network_gbps(&nothing), 0, 0);
}

/* A published run: 4 nodes of 8 devices at 381.8 GB/s put 36.9 GB/s on each
 * card of 50, which is 74 % and not 95. */
static void test_wire(void **state)
{
    (void)state;
    double wire = gpul_wire_gbps(381.8, 32, 4);
    assert_near(wire, 36.9, 0.05);
    assert_near(wire / 50, 0.74, 0.005);
    assert_near(gpul_wire_gbps(450, 8, 1), 0, 0);
    assert_near(gpul_wire_gbps(10, 2, 2), 10, 1e-9);
}

/* Every operation has a name of its own, a foreign number too. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "all-reduce",     "all-reduce",         "all-gather",
        "reduce-scatter", "broadcast",          "all-to-all",
        "send/recv",      "copy to device",     "copy to host",
        "copy on device", "unknown collective",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(gpul_collective_name((enum gpul_collective)i),
                            names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algbw),
        cmocka_unit_test(test_busbw_factor),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_ceilings_of_links),
        cmocka_unit_test(test_ceilings_unknown),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
