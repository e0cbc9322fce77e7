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

static double ceiling(enum gpul_collective collective,
                      const struct gpul_fabric *fabric, enum gpul_link expected)
{
    enum gpul_link kind;
    double gbps = gpul_ceiling_gbps(&kind, collective, fabric);
    assert_int_equal(kind, expected);
    return gbps;
}

/* Of an all-reduce that crosses the network in this way. */
static double ceiling_by(enum gpul_algorithm algorithm,
                         struct gpul_fabric fabric, enum gpul_link expected)
{
    fabric.links.algorithm = algorithm;
    return ceiling(GPUL_ALL_REDUCE, &fabric, expected);
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
        struct gpul_fabric fabric = {
            .ranks = 8 * rows[i].nodes,
            .nodes = rows[i].nodes,
            .links = {.nics_gbps = 400, .nics_kind = GPUL_RDMA}};
        assert_near(ceiling_by(GPUL_FLAT_RING, fabric, GPUL_RDMA), rows[i].ring,
                    0.5);
        assert_near(ceiling_by(GPUL_HIERARCHICAL, fabric, GPUL_RDMA),
                    rows[i].hierarchical, 0.5);
        assert_near(ceiling_by(GPUL_IN_NETWORK, fabric, GPUL_RDMA),
                    rows[i].in_network, 0.5);
        /* The algorithm is that of all-reduce; the others are rings. */
        fabric.links.algorithm = GPUL_IN_NETWORK;
        assert_near(ceiling(GPUL_ALL_GATHER, &fabric, GPUL_RDMA), 400, 1e-9);
        assert_near(ceiling(GPUL_REDUCE_SCATTER, &fabric, GPUL_RDMA), 400,
                    1e-9);
        assert_near(ceiling(GPUL_BROADCAST, &fabric, GPUL_RDMA), 400, 1e-9);
    }
}

/* In an all-to-all of 4 nodes with 2 devices, a node sends 2 * 6 of 8 shares;
 * with one device each, all of its share but one. */
static void test_all_to_all(void **state)
{
    (void)state;
    struct gpul_fabric fabric = {
        8, 4, {.nics_gbps = 48, .nics_kind = GPUL_TCP}};
    double wire = 48 * 7.0 / (2 * 6);
    assert_near(ceiling(GPUL_ALL_TO_ALL, &fabric, GPUL_TCP), wire, 1e-9);
    fabric.ranks = 4;
    assert_near(ceiling(GPUL_ALL_TO_ALL, &fabric, GPUL_TCP), 48, 1e-9);
}

/* The links within a node cap what the network would allow, and are all
 * there is on one node. */
static void test_ceilings_of_links(void **state)
{
    (void)state;
    struct gpul_fabric fabric = {16,
                                 2,
                                 {.link_gbps = 450,
                                  .nics_gbps = 400,
                                  .link_kind = GPUL_NVLINK,
                                  .nics_kind = GPUL_RDMA}};
    assert_near(ceiling_by(GPUL_FLAT_RING, fabric, GPUL_RDMA), 400, 1e-9);
    assert_near(ceiling_by(GPUL_HIERARCHICAL, fabric, GPUL_NVLINK), 450, 1e-9);
    assert_near(ceiling_by(GPUL_IN_NETWORK, fabric, GPUL_NVLINK), 450, 1e-9);
    fabric.ranks = 8;
    fabric.nodes = 1;
    for (int c = GPUL_ALL_REDUCE; c <= GPUL_ALL_TO_ALL; c++) {
        assert_near(ceiling((enum gpul_collective)c, &fabric, GPUL_NVLINK), 450,
                    1e-9);
    }
}

/* Copies go over the device's own way to the host. */
static void test_ceilings_of_copies(void **state)
{
    (void)state;
    struct gpul_fabric fabric = {1, 1, {.link_gbps = 450, .host_gbps = 63}};
    assert_near(ceiling(GPUL_COPY_TO_DEVICE, &fabric, GPUL_PCIE), 63, 0);
    assert_near(ceiling(GPUL_COPY_TO_HOST, &fabric, GPUL_PCIE), 63, 0);
    assert_near(ceiling(GPUL_COPY_ON_DEVICE, &fabric, GPUL_LINK_NONE), 0, 0);
    fabric.links.host_gbps = 0;
    assert_near(ceiling(GPUL_COPY_TO_HOST, &fabric, GPUL_LINK_NONE), 0, 0);
}

/* What is not known has no ceiling. */
static void test_ceilings_unknown(void **state)
{
    (void)state;
    struct gpul_fabric no_nics = {
        16, 2, {.link_gbps = 450, .link_kind = GPUL_NVLINK}};
    struct gpul_fabric no_links = {8, 1, {.nics_gbps = 400}};
    struct gpul_fabric one_rank = {1, 1, {.link_gbps = 450}};
    struct gpul_fabric nothing = {0};
    for (int c = GPUL_COLLECTIVE_NONE; c <= GPUL_COPY_ON_DEVICE + 1; c++) {
        enum gpul_collective collective = (enum gpul_collective)c;
        assert_near(ceiling(collective, &no_nics, GPUL_LINK_NONE), 0, 0);
        assert_near(ceiling(collective, &no_links, GPUL_LINK_NONE), 0, 0);
        assert_near(ceiling(collective, &one_rank, GPUL_LINK_NONE), 0, 0);
        assert_near(ceiling(collective, &nothing, GPUL_LINK_NONE), 0, 0);
    }
    no_nics.links.nics_gbps = 400;
    assert_near(ceiling(GPUL_SEND_RECV, &no_nics, GPUL_LINK_NONE), 0, 0);
}

/* A published run: 4 nodes of 8 devices at 381.8 GB/s put 36.9 GB/s on each
 * card of 50, which is 74 % and not 95. With half the cards each carries
 * twice as much; a ring puts all of busbw on the node's cards. */
static void test_wire(void **state)
{
    (void)state;
    struct gpul_fabric fabric = {32, 4, {.nics = 8}};
    double wire = gpul_wire_gbps(381.8, GPUL_ALL_REDUCE, &fabric);
    assert_near(wire, 381.8 * 3 / 31, 1e-9);
    assert_near(wire / 50, 0.74, 0.005);
    fabric.links.nics = 4;
    assert_near(gpul_wire_gbps(381.8, GPUL_ALL_REDUCE, &fabric), 2 * wire,
                1e-9);
    assert_near(gpul_wire_gbps(400, GPUL_ALL_GATHER, &fabric), 100, 1e-9);
    assert_near(gpul_wire_gbps(400, GPUL_SEND_RECV, &fabric), 0, 0);
    assert_near(gpul_wire_gbps(400, GPUL_COPY_TO_HOST, &fabric), 0, 0);
    fabric.links.algorithm = GPUL_FLAT_RING;
    assert_near(gpul_wire_gbps(400, GPUL_ALL_REDUCE, &fabric), 100, 1e-9);
    fabric.links.nics = 0;
    assert_near(gpul_wire_gbps(400, GPUL_ALL_REDUCE, &fabric), 0, 0);
    struct gpul_fabric one = {8, 1, {.nics = 8}};
    struct gpul_fabric two = {2, 2, {.nics = 1}};
    assert_near(gpul_wire_gbps(450, GPUL_ALL_REDUCE, &one), 0, 0);
    assert_near(gpul_wire_gbps(10, GPUL_ALL_REDUCE, &two), 10, 1e-9);
}

/* 16 lanes of each generation, as vendors round them. */
static void test_pcie(void **state)
{
    (void)state;
    static const double by_16[] = {0, 4, 8, 15.75, 31.5, 63, 121, 0};
    for (size_t i = 0; i < COUNT(by_16); i++) {
        assert_near(gpul_pcie_gbps(i, 16), by_16[i], 0.02);
    }
    assert_near(gpul_pcie_gbps(5, 8), 31.5, 0.01);
    assert_near(gpul_pcie_gbps(5, 0), 0, 0);
}

static void test_link_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "unknown link", "NVLink", "PCIe", "RDMA", "TCP", "unknown link"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(gpul_link_name((enum gpul_link)i), names[i]);
    }
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
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_ceilings_of_links),
        cmocka_unit_test(test_ceilings_of_copies),
        cmocka_unit_test(test_ceilings_unknown),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_pcie),
        cmocka_unit_test(test_link_names),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
