/* SPDX-License-Identifier: Apache-2.0
 *
 * How a GPU probe says that it is, while a phase lasts: which of them waits,
 * and which is waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/gpustage.h"

enum {
    /* Of each phase: it is told how each is from 3/8 of it on. */
    BOUND_MS = 4000,
    LONG_MS = 8000, /* the same, where none is to end by it */
};

#define STATE(name) GPUL__PROBE_PHASE__STATE__STATE_##name

static struct stage stage;

static int teardown(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

/* Two nodes of two devices. */
static void start(const char *scenario, uint32_t bound_ms)
{
    const struct stage_spec spec = {.scenario = scenario,
                                    .nodes = 2,
                                    .per_node = 2,
                                    .listen_deadline_ms = bound_ms,
                                    .run_deadline_ms = bound_ms};
    stage_start(&stage, &spec, false);
}

static void stop(void)
{
    stage_stop_all(&stage);
    stage_until(&stage, 0, stage_is_gone);
}

static bool waits(const struct stage_probe *probe)
{
    return probe->state == STATE(WAITS) && probe->since_ms >= 1000;
}

static bool is_inside(const struct stage_probe *probe)
{
    return probe->state == STATE(INSIDE);
}

static bool is_deaf(const struct stage_probe *probe)
{
    return probe->state == STATE(DEAF);
}

static bool is_in_all_reduce(const struct stage_probe *probe)
{
    return waits(probe) && strcmp(probe->text, "all-reduce of 4096 bytes") == 0;
}

/* A rank that does not come back from its init call says so; the others say
 * that they wait. */
static void test_init(void **state)
{
    (void)state;
    start("fault rank 2 never-arrives", LONG_MS);
    stage_until(&stage, 4, is_inside);
    assert_string_equal(stage.probes[2].call, "ncclCommInitRankConfig");
    stage_until(&stage, 0xb, waits);
    stop();
}

/* So does one without a context, in a phase that none precedes; the others
 * wait for the IDs. */
static void test_context(void **state)
{
    (void)state;
    start("fault node local-1 gpu 0 hang context", LONG_MS);
    stage_until(&stage, 4, is_inside);
    assert_string_equal(stage.probes[2].call, "cuDevicePrimaryCtxRetain");
    assert_non_null(strstr(stage.probes[2].text, "making a context on GPU-"));
    assert_int_equal(stage.probes[2].phases,
                     1u << GPUL__PROBE_PHASE__PHASE__NONE);
    stage_until(&stage, 0xb, waits);
    stop();
}

/* A device that stands still does not answer; the others' do. */
static void test_device(void **state)
{
    (void)state;
    start("fault rank 1 hang allreduce call 1", LONG_MS);
    stage_until(&stage, 2, is_deaf);
    stage_until(&stage, 0xd, is_in_all_reduce);
    assert_int_equal(stage.probes[0].progress, stage.probes[1].progress);
    stop();
}

/* A transfer that stands still leaves no trace: all wait alike. */
static void test_transfer(void **state)
{
    (void)state;
    start("fault rank 1 stall allreduce call 1", LONG_MS);
    stage_until(&stage, 0, is_in_all_reduce);
    for (uint32_t i = 1; i < stage.count; i++) {
        assert_int_equal(stage.probes[i].progress, stage.probes[0].progress);
    }
    stop();
}

/* Destroying is another step than finalising. */
static void test_destroy(void **state)
{
    (void)state;
    start("fault rank 3 hang destroy", LONG_MS);
    stage_until(&stage, 7, stage_has_result);
    stage_until(&stage, 8, is_inside);
    assert_string_equal(stage.probes[3].call, "ncclCommDestroy");
    assert_string_equal(stage.probes[3].text, "destroying the communicator");
    stop();
}

/* Nobody says Stop: whoever waited tells that it is due to another, and the
 * one that did not come back tells of itself. */
static void test_deadline(void **state)
{
    (void)state;
    start("fault rank 2 never-arrives", BOUND_MS);
    stage_until(&stage, 0, stage_is_gone);
    for (uint32_t i = 0; i < stage.count; i++) {
        assert_non_null(stage.probes[i].result);
        const Gpul__ProbeResult *result = stage.probes[i].result->probe_result;
        assert_non_null(strstr(result->error, "deadline reached: "));
        assert_int_equal(result->is_remote, i != 2);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_init),     TEST(test_context), TEST(test_device),
        TEST(test_transfer), TEST(test_destroy), TEST(test_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
