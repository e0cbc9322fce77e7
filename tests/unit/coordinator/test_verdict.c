/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/verdict.h"

static Gpul__ProbeRow row;
static Gpul__ProbeRow *rows[] = {&row, &row};

static Gpul__ProbeResult result_of(uint64_t min_ns, uint64_t median_ns,
                                   uint64_t max_ns)
{
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    gpul__probe_row__init(&row);
    row.bytes = 1000000;
    row.count = 250000;
    row.iterations = 20;
    row.min_ns = min_ns;
    row.median_ns = median_ns;
    row.max_ns = max_ns;
    result.rows = rows;
    result.n_rows = 1;
    return result;
}

/* The result of a node on host memory. */
static enum verdict_kind add(struct verdict *v, struct text *why,
                             const char *node_name,
                             const Gpul__ProbeResult *result)
{
    const struct verdict_source from = {
        .node_name = node_name,
        .rank = (uint32_t)(node_name[0] - 'a'),
        .phase = "init",
    };
    return verdict_add(v, why, &from, result);
}

static const struct verdict_source on_device = {
    .node_name = "c",
    .rank = 5,
    .has_device = true,
    .device_uuid = "GPU-5",
    .phase = "coll",
};

/* Each time is the slowest node's, whichever that is for it; the bandwidths
 * follow nccl-tests: 1e6 B in 500,000 ns are 2 GB/s, times 2*3/4. */
static void test_slowest(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(400000, 500000, 600000);
    assert_int_equal(add(&v, &why, "a", &a), VERDICT_GOOD);
    Gpul__ProbeResult b = result_of(450000, 480000, 900000);
    assert_int_equal(add(&v, &why, "b", &b), VERDICT_GOOD);
    verdict_finish(&v, &(struct verdict_world){.ranks = 4, .nodes = 4});
    assert_int_equal(v.row_count, 1);
    assert_int_equal(v.rows[0].bytes, 1000000);
    assert_int_equal(v.rows[0].min_ns, 450000);
    assert_int_equal(v.rows[0].median_ns, 500000);
    assert_int_equal(v.rows[0].max_ns, 900000);
    assert_true(v.rows[0].algbw_gbps == 2.0);
    assert_true(v.rows[0].busbw_gbps == 3.0);
    assert_int_equal(v.rows[0].slowest_rank, 0);
    assert_true(v.rows[0].ceiling_gbps == 0 && v.rows[0].wire_gbps == 0);
}

/* A measured time of 0 gives no bandwidth rather than an infinite one. */
static void test_no_time(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(0, 0, 0);
    assert_int_equal(add(&v, &why, "a", &a), VERDICT_GOOD);
    verdict_finish(&v, &(struct verdict_world){.ranks = 2, .nodes = 2});
    assert_true(v.rows[0].algbw_gbps == 0 && v.rows[0].busbw_gbps == 0);
}

/* Wrong data weighs more than an error, also when only a row tells it. */
static void test_wrong_data(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    a.error = wire_text("and then it broke");
    a.wrong_elements = 2;
    a.first_wrong_offset = 17;
    a.first_wrong_bytes = 64;
    assert_int_equal(add(&v, &why, "node3", &a), VERDICT_WRONG_DATA);
    assert_string_equal(
        why.bytes,
        "self-test: wrong data on node node3: element 17 of an all-reduce of "
        "64 bytes has the wrong sum (2 wrong elements in all); do not train "
        "on this node before its memory and network have been checked");
    a = result_of(1, 1, 1);
    row.wrong_elements = 1;
    assert_int_equal(add(&v, &why, "node3", &a), VERDICT_WRONG_DATA);
}

/* An error names the node and the phase; without one it never began. */
static void test_error(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    a.error = wire_text("no route");
    assert_int_equal(add(&v, &why, "b", &a), VERDICT_ERROR);
    assert_string_equal(
        why.bytes, "self-test: node b failed before the all-reduce: no route");
}

/* On a device the rank, the device, the phase and NCCL's words are named. */
static void test_error_on_device(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    a.error = wire_text("ncclCommInitRankConfig: system error (2)");
    a.phase = wire_text("init");
    a.library_error = wire_text("Call to connect timed out");
    assert_int_equal(verdict_add(&v, &why, &on_device, &a), VERDICT_ERROR);
    assert_string_equal(why.bytes,
                        "self-test phase init: rank 5 (node c, device GPU-5): "
                        "ncclCommInitRankConfig: system error (2); NCCL said: "
                        "Call to connect timed out");
}

/* Wrong data on a device: rank, device, collective, element and bit. */
static void test_wrong_data_on_device(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    a.wrong_elements = 1;
    a.first_wrong_offset = 17;
    a.first_wrong_bytes = 64;
    a.first_wrong_bit = 23;
    a.first_wrong_collective = GPUL__COLLECTIVE__COLLECTIVE_BROADCAST;
    assert_int_equal(verdict_add(&v, &why, &on_device, &a), VERDICT_WRONG_DATA);
    assert_string_equal(
        why.bytes,
        "self-test phase coll: wrong data on rank 5 (node c, device GPU-5): "
        "element 17 of "
        "a broadcast of 64 bytes is wrong in bit 23 (1 wrong element in all); "
        "do not train on this device before its memory and links have been "
        "checked");
}

/* One row for each collective and size, each with its own factor, ceiling
 * and slowest rank. */
static void test_collectives(void **state)
{
    (void)state;
    static const Gpul__Collective collectives[] = {
        GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE,
        GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE,
        GPUL__COLLECTIVE__COLLECTIVE_ALL_TO_ALL,
        GPUL__COLLECTIVE__COLLECTIVE_COPY_TO_HOST,
    };
    static const struct {
        double busbw_gbps;
        double ceiling_gbps;
        double wire_gbps;
    } expected[] = {
        {1.5, 7.5, 0.25}, {1.5, 7.5, 0.25}, {0.75, 3.75, 0.25}, {1, 0, 0}};
    Gpul__ProbeRow parts[4];
    Gpul__ProbeRow *list[4];
    struct verdict v;
    struct text why;
    verdict_init(&v);
    for (uint64_t i = 0; i < 4; i++) {
        gpul__probe_row__init(&parts[i]);
        parts[i].bytes = i == 1 ? 2048 : 1024;
        parts[i].median_ns = parts[i].bytes;
        parts[i].collective = collectives[i];
        list[i] = &parts[i];
    }
    Gpul__ProbeResult a = GPUL__PROBE_RESULT__INIT;
    a.rows = list;
    a.n_rows = 4;
    assert_int_equal(verdict_add(&v, &why, &on_device, &a), VERDICT_GOOD);
    struct verdict_world world = {
        .ranks = 4,
        .nodes = 2,
        .has_devices = true,
        .links = {.nics_gbps = 5, .nics_kind = GPUL_TCP, .nics = 4}};
    verdict_finish(&v, &world);
    for (size_t i = 0; i < 4; i++) {
        assert_true(v.rows[i].busbw_gbps == expected[i].busbw_gbps);
        assert_true(v.rows[i].ceiling_gbps == expected[i].ceiling_gbps);
        assert_true(v.rows[i].wire_gbps == expected[i].wire_gbps);
        assert_int_equal(v.rows[i].slowest_rank, 5);
    }
    assert_ptr_equal(verdict_largest(&v), &v.rows[1]);
    /* Within one node the links are the ceiling. */
    assert_int_equal(v.rows[0].ceiling_kind, GPUL__LINK__LINK_TCP);
    assert_int_equal(v.rows[3].ceiling_kind, GPUL__LINK__LINK_NONE);
    world.nodes = 1;
    world.links.link_gbps = 450;
    world.links.link_kind = GPUL_NVLINK;
    verdict_finish(&v, &world);
    assert_true(v.rows[0].ceiling_gbps == 450 && v.rows[0].wire_gbps == 0);
    assert_int_equal(v.rows[0].ceiling_kind, GPUL__LINK__LINK_NVLINK);
    assert_true(v.rows[2].ceiling_gbps == 450);
    list[0]->collective = GPUL__COLLECTIVE__COLLECTIVE_BROADCAST;
    assert_int_equal(verdict_add(&v, &why, &on_device, &a), VERDICT_ERROR);
    assert_string_equal(why.bytes,
                        "self-test: rank 5 (node c, device GPU-5) measured "
                        "other message sizes than the other ranks; is its "
                        "gpulaunch-worker the same?");
}

/* One row of all ranks and one from within the node, in that order. */
static Gpul__ProbeResult result_in_both(Gpul__ProbeRow parts[2],
                                        Gpul__ProbeRow *list[2])
{
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    for (size_t i = 0; i < 2; i++) {
        gpul__probe_row__init(&parts[i]);
        parts[i].bytes = 1000000;
        parts[i].median_ns = i == 0 ? 500000 : 250000;
        parts[i].collective = GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE;
        list[i] = &parts[i];
    }
    parts[1].scope = GPUL__SCOPE__SCOPE_NODE;
    result.rows = list;
    result.n_rows = 2;
    return result;
}

/* Within nodes the ranks of one node count, where all have as many; wire and
 * --min-busbw are for all ranks. A rank alone on its node owes no such row. */
static void test_within_nodes(void **state)
{
    (void)state;
    Gpul__ProbeRow parts[2];
    Gpul__ProbeRow *list[2];
    struct verdict_source from = on_device;
    struct verdict v;
    struct text why;
    Gpul__ProbeResult a = result_in_both(parts, list);
    verdict_init(&v);
    a.n_rows = 1;
    assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_GOOD);
    from.sweeps_node = true;
    assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_ERROR);
    a.n_rows = 2;
    assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_GOOD);
    parts[1].median_ns = 400000;
    from.rank = 6;
    assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_GOOD);
    struct verdict_world world = {.ranks = 8,
                                  .nodes = 4,
                                  .node_ranks = 2,
                                  .has_devices = true,
                                  .links = {.link_gbps = 450}};
    verdict_finish(&v, &world);
    assert_int_equal(v.row_count, 2);
    assert_int_equal(v.rows[1].scope, GPUL__SCOPE__SCOPE_NODE);
    assert_int_equal(v.rows[1].ranks, 2);
    assert_int_equal(v.rows[1].slowest_rank, 6);
    assert_true(v.rows[1].busbw_gbps == 2.5 && v.rows[1].wire_gbps == 0);
    assert_true(v.rows[1].ceiling_gbps == 450);
    assert_int_equal(v.rows[0].ranks, 8);
    assert_true(v.rows[0].busbw_gbps == 3.5);
    assert_ptr_equal(verdict_largest(&v), &v.rows[0]);
    world.node_ranks = 0;
    v.rows[1].busbw_gbps = v.rows[1].ceiling_gbps = 0;
    verdict_finish(&v, &world);
    assert_true(v.rows[1].algbw_gbps == 2.5 && v.rows[1].busbw_gbps == 0);
    assert_true(v.rows[1].ceiling_gbps == 0 && v.rows[1].ranks == 0);
    parts[1].scope = GPUL__SCOPE__SCOPE_WORLD;
    assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_ERROR);
}

/* A ring is as slow on every rank; within nodes the slow one's shows. */
static void test_telling(void **state)
{
    (void)state;
    static const struct {
        uint64_t world_ns;
        uint64_t node_ns;
        uint32_t node_ranks;
        int expected; /* row; -1: none */
    } cases[] = {
        {500000, 250000, 2, -1}, {740000, 370000, 2, -1},
        {760000, 250000, 2, 0},  {500000, 380000, 2, 1},
        {900000, 900000, 2, 1},  {500000, 380000, 0, -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Gpul__ProbeRow parts[2];
        Gpul__ProbeRow *list[2];
        struct verdict_source from = on_device;
        struct verdict v;
        struct text why;
        Gpul__ProbeResult a = result_in_both(parts, list);
        from.sweeps_node = true;
        verdict_init(&v);
        assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_GOOD);
        parts[0].median_ns = cases[i].world_ns;
        parts[1].median_ns = cases[i].node_ns;
        from.rank = 6;
        assert_int_equal(verdict_add(&v, &why, &from, &a), VERDICT_GOOD);
        const struct verdict_world world = {
            .ranks = 8, .nodes = 4, .node_ranks = cases[i].node_ranks};
        const Gpul__SelfTestRow *found = verdict_telling(&v, &world);
        if (cases[i].expected < 0) {
            assert_null(found);
        } else {
            assert_ptr_equal(found, &v.rows[cases[i].expected]);
            assert_int_equal(found->slowest_rank, 6);
        }
    }
}

/* Wrong data within a node names the rank and its device too. */
static void test_wrong_data_within_node(void **state)
{
    (void)state;
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    a.wrong_elements = 1;
    a.first_wrong_offset = 17;
    a.first_wrong_bytes = 64;
    a.first_wrong_collective = GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE;
    a.first_wrong_scope = GPUL__SCOPE__SCOPE_NODE;
    assert_int_equal(verdict_add(&v, &why, &on_device, &a), VERDICT_WRONG_DATA);
    assert_non_null(strstr(why.bytes,
                           "wrong data on rank 5 (node c, device GPU-5): "
                           "element 17 of an all-reduce within the node of 64 "
                           "bytes is wrong in bit 0"));
}

/* Nodes that measured different things cannot be compared. */
static void test_other_rows(void **state)
{
    (void)state;
    static const char expected[] =
        "self-test: node b measured other message sizes than the other nodes; "
        "is its gpulaunch-worker the same?";
    struct verdict v;
    struct text why;
    verdict_init(&v);
    Gpul__ProbeResult a = result_of(1, 1, 1);
    assert_int_equal(add(&v, &why, "a", &a), VERDICT_GOOD);
    a.n_rows = 2;
    assert_int_equal(add(&v, &why, "b", &a), VERDICT_ERROR);
    assert_string_equal(why.bytes, expected);
    a.n_rows = 0;
    assert_int_equal(add(&v, &why, "b", &a), VERDICT_ERROR);
    a.n_rows = 1;
    row.bytes = 8;
    assert_int_equal(add(&v, &why, "b", &a), VERDICT_ERROR);
    assert_string_equal(why.bytes, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_telling),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_error_on_device),
        cmocka_unit_test(test_wrong_data_on_device),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_within_nodes),
        cmocka_unit_test(test_wrong_data_within_node),
        cmocka_unit_test(test_other_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
