/* SPDX-License-Identifier: Apache-2.0
 *
 * A hundred thousand ranks join, get their places, pass the self-test, are
 * launched, end and leave, in one process. Counts and memory are asserted;
 * time is only printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "tests/lib/crowd.h"
#include "tests/lib/memory.h"

/* What the rendezvous may hold for a node at most, its share of a step's
 * actions and of the roster included. */
enum {
    NODE_BYTES_MAX = 1024,
    FIXED_BYTES_MAX = 4 << 20,
    /* For each rank of the self-test on GPUs: UUID, step, last words. */
    PROBE_BYTES_MAX = 160,
};

/* node7 before node66: the rank order is that of the numbers. */
static void check_counts(const struct crowd *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        assert_int_equal(c->first_ranks[i], i * c->ranks_per_node);
    }
    assert_int_equal(c->sends[GPUL__FRAME__BODY_WELCOME], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_JOB], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_ASSIGN], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_LINK_START], c->node_count);
    assert_in_range(c->sends[GPUL__FRAME__BODY_LINK_PEERS], c->node_count,
                    c->node_count * (c->node_count / 512u + 1u));
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_START], c->node_count);
    uint32_t on_gpus = c->has_gpus ? c->node_count : 0;
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_CONNECT],
                     c->node_count - on_gpus);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_BEGIN], on_gpus);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_PROBE_IDS], on_gpus);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_LAUNCH], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_FINISH], c->node_count);
    assert_int_equal(c->sends[GPUL__FRAME__BODY_STOP], 0);
    assert_int_equal(c->job_ends, 1);
    assert_int_equal(c->exit_code, 0);
    assert_true(c->is_finished);
}

static void run_crowd(uint32_t node_count, uint32_t ranks_per_node,
                      bool has_gpus)
{
    struct crowd c;
    size_t probes = has_gpus ? (size_t)node_count * ranks_per_node : 0;
    crowd_init(&c, node_count, ranks_per_node);
    c.has_gpus = has_gpus;
    memory_watch(); /* what the crowd itself holds does not count */
    uint64_t start_ns = gpul_clock_ns();
    struct rendezvous_config config = {
        .epoch = 1, .seed = 7, .version = "0.1.0"};
    assert_int_equal(rendezvous_create(&c.core, &config, 0, NULL), 0);
    crowd_send_job(&c);
    crowd_everybody(&c, crowd_join);
    crowd_everybody(&c, crowd_get_ready);
    crowd_everybody(&c, crowd_open_links);
    crowd_everybody(&c, crowd_dial);
    if (has_gpus) {
        crowd_test_gpus(&c);
    } else {
        crowd_everybody(&c, crowd_start_listening);
        crowd_everybody(&c, crowd_pass);
    }
    rendezvous_check(c.core);
    crowd_everybody(&c, crowd_end_ranks);
    crowd_everybody(&c, crowd_leave);
    check_counts(&c);
    size_t peak = memory_peak();
    printf("%u nodes of %u%s: %.2f s, peak %.1f MiB (%.0f B a node), "
           "%.0f B to each node, %.1f MiB to the front end\n",
           node_count, ranks_per_node, has_gpus ? " on GPUs" : "",
           (double)(gpul_clock_ns() - start_ns) / 1e9, (double)peak / (1 << 20),
           (double)peak / node_count, (double)c.sent_bytes / node_count,
           (double)c.told_bytes / (1 << 20));
    assert_true(peak < (size_t)node_count * NODE_BYTES_MAX +
                           probes * PROBE_BYTES_MAX + FIXED_BYTES_MAX);
    rendezvous_destroy(c.core);
    assert_int_equal(memory_held(), 0);
    free(c.order);
    free(c.first_ranks);
}

/* 12,500 nodes of 8 GPUs. */
static void test_eight_a_node(void **state)
{
    (void)state;
    run_crowd(12500, 8, false);
}

/* 100,000 nodes of one. */
static void test_one_a_node(void **state)
{
    (void)state;
    run_crowd(100000, 1, false);
}

/* The same with a device for each rank, which all pass the self-test. */
static void test_eight_gpus_a_node(void **state)
{
    (void)state;
    run_crowd(12500, 8, true);
}

static void test_one_gpu_a_node(void **state)
{
    (void)state;
    run_crowd(100000, 1, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_a_node),
        cmocka_unit_test(test_one_a_node),
        cmocka_unit_test(test_eight_gpus_a_node),
        cmocka_unit_test(test_one_gpu_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
