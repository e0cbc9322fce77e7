/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU probes that sweep within their nodes after the sweep of all ranks, on
 * the doubles of the GPU libraries: what comes of it, and every way in which
 * it can fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/gpustage.h"

/* Rank r's all-reduces: three sizes of a warm-up, five timed and a check are
 * calls 1 to 21, the largest once more within its node 22 to 28. */

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

static void start(uint32_t per_node, const char *scenario)
{
    const struct stage_spec spec = {.scenario = scenario,
                                    .nodes = 2,
                                    .per_node = per_node,
                                    .sweeps_nodes = true};
    stage_start(&stage, &spec, false);
}

static const Gpul__ProbeResult *result_of(uint32_t rank)
{
    assert_non_null(stage.probes[rank].result);
    return stage.probes[rank].result->probe_result;
}

static void assert_error(uint32_t rank, const char *error)
{
    const Gpul__ProbeResult *result = result_of(rank);
    assert_string_equal(result->error, error);
    assert_string_equal(result->phase, "coll");
    assert_int_equal(result->probe_rank, rank);
    assert_string_equal(result->device_uuid, stage.probes[rank].uuid);
}

/* Told to stop, all that are left end by themselves: none is killed. */
static void stop_all(void)
{
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_true(WIFEXITED(stage.probes[i].status));
        assert_int_equal(WEXITSTATUS(stage.probes[i].status), 0);
    }
}

/* "2 world, 1 node: 1048576": the rows of each scope, in this order, and the
 * size of the last. */
static const char *rows_text(uint32_t rank)
{
    static char text[64];
    const Gpul__ProbeResult *result = result_of(rank);
    size_t node = 0;
    assert_true(result->n_rows > 0);
    for (size_t i = 0; i < result->n_rows; i++) {
        bool is_node = result->rows[i]->scope == GPUL__SCOPE__SCOPE_NODE;
        assert_true(is_node || node == 0);
        node += is_node;
    }
    snprintf(text, sizeof(text), "%zu world, %zu node: %llu",
             result->n_rows - node, node,
             (unsigned long long)result->rows[result->n_rows - 1]->bytes);
    return text;
}

/* Two nodes of two devices: each node runs the largest all-reduce by itself. */
static void test_two_by_two(void **state)
{
    (void)state;
    start(2, "");
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_string_equal(rows_text(i), "8 world, 1 node: 65536");
        const Gpul__ProbeResult *result = result_of(i);
        assert_string_equal(result->error, "");
        assert_string_equal(result->phase, "end");
        assert_int_equal(result->wrong_elements, 0);
        assert_int_equal(result->rows[8]->collective,
                         GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE);
        assert_true(result->rows[8]->median_ns > 0);
    }
}

/* A rank that has its node to itself takes part in the split, and that is
 * all. */
static void test_alone(void **state)
{
    (void)state;
    start(1, "");
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_string_equal(rows_text(i), "8 world, 0 node: 65536");
        assert_string_equal(result_of(i)->error, "");
        assert_string_equal(result_of(i)->phase, "end");
    }
}

static bool is_splitting(const struct stage_probe *probe)
{
    return strcmp(probe->text, "splitting the communicator by nodes") == 0;
}

static bool is_within_node(const struct stage_probe *probe)
{
    return strcmp(probe->text, "all-reduce within the node of 65536 bytes") ==
           0;
}

static bool has_swept(const struct stage_probe *probe)
{
    return stage_has_result(probe) || is_within_node(probe);
}

/* A rank that hangs in the split holds up all of them; a stop ends them. */
static void test_hang_in_split(void **state)
{
    (void)state;
    start(2, "fault rank 3 hang split");
    stage_until(&stage, 0, is_splitting);
    stop_all();
    assert_null(stage.probes[3].result);
}

/* A rank that hangs in the sweep within its node holds up that node only, and
 * a stop ends both communicators of those that are left. */
static void test_hang_within_node(void **state)
{
    (void)state;
    start(2, "fault rank 3 hang allreduce call 23");
    stage_until(&stage, 3, stage_has_result);
    stage_until(&stage, 0xc, is_within_node);
    stop_all();
    assert_string_equal(result_of(0)->error, "");
    assert_null(stage.probes[2].result);
    assert_null(stage.probes[3].result);
}

/* NCCL refuses a collective within a node: it is named as such, and the other
 * node comes to its end. */
static void test_code_within_node(void **state)
{
    (void)state;
    start(2, "fault rank 1 code 3 at allreduce call 23");
    stage_until(&stage, 2, stage_is_gone);
    assert_error(1, "all-reduce within the node of 65536 bytes: ncclAllReduce: "
                    "internal error - please report this issue to the NCCL "
                    "developers (NCCL error 3)");
    stage_until(&stage, 0xd, has_swept);
    stop_all();
}

/* An error of the split itself. */
static void test_code_in_split(void **state)
{
    (void)state;
    start(2, "fault rank 1 code 3 at split");
    stage_until(&stage, 2, stage_is_gone);
    assert_error(1,
                 "ncclCommSplit: internal error - please report this issue to "
                 "the NCCL developers (NCCL error 3)");
    stop_all();
}

/* Asked to split with a library that cannot: an error and no crash. */
static void test_no_split(void **state)
{
    (void)state;
    start(2, "fault missing-symbol ncclCommSplit");
    stage_until(&stage, 0, stage_is_gone);
    assert_error(0, "a split by nodes, but this NCCL has no ncclCommSplit");
}

/* A wrong element within a node is told by scope, element and bit. */
static void test_wrong_within_node(void **state)
{
    (void)state;
    start(2, "fault rank 2 flip element 1000 bit 3 at allreduce call 28");
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_int_equal(result_of(i)->wrong_elements, i == 2);
    }
    const Gpul__ProbeResult *wrong = result_of(2);
    assert_int_equal(wrong->first_wrong_scope, GPUL__SCOPE__SCOPE_NODE);
    assert_int_equal(wrong->first_wrong_offset, 1000);
    assert_int_equal(wrong->first_wrong_bit, 3);
    assert_int_equal(wrong->first_wrong_bytes, 65536);
    assert_int_equal(wrong->rows[8]->wrong_elements, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_two_by_two, teardown),
        cmocka_unit_test_teardown(test_alone, teardown),
        cmocka_unit_test_teardown(test_hang_in_split, teardown),
        cmocka_unit_test_teardown(test_hang_within_node, teardown),
        cmocka_unit_test_teardown(test_code_within_node, teardown),
        cmocka_unit_test_teardown(test_code_in_split, teardown),
        cmocka_unit_test_teardown(test_no_split, teardown),
        cmocka_unit_test_teardown(test_wrong_within_node, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
