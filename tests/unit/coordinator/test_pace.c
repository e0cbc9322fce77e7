/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/pace.h"
#include "proto/limits.h"

#define HEARTBEAT GPUL__FRAME__BODY_HEARTBEAT
#define NOTICE GPUL__FRAME__BODY_NOTICE
#define PHASE GPUL__FRAME__BODY_PROBE_PHASE
#define EXITS GPUL__FRAME__BODY_EXITS
#define REPORT GPUL__FRAME__BODY_ENV_REPORT

static bool take(struct pace *p, Gpul__Frame__BodyCase kind, uint32_t ranks,
                 uint64_t now_ms)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = kind;
    return pace_take(p, &frame, ranks, now_ms);
}

/* How many of a kind are taken at once, `most` at most. */
static uint32_t take_all(struct pace *p, Gpul__Frame__BodyCase kind,
                         uint32_t ranks, uint64_t now_ms, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && take(p, kind, ranks, now_ms)) {
        n++;
    }
    return n;
}

/* A burst, then as many a second as the rate says, however they come. */
static void test_rate(void **state)
{
    (void)state;
    struct pace p = {0};
    enum { MOST = 100000 };
    uint64_t now_ms = 5000000;
    assert_int_equal(take_all(&p, HEARTBEAT, 1, now_ms, MOST), GPUL_PACE_BURST);
    assert_false(take(&p, NOTICE, 1, now_ms)); /* the same bucket */
    assert_int_equal(take_all(&p, HEARTBEAT, 1, now_ms + 1000, MOST),
                     GPUL_PACE_PER_S);
    now_ms += 1000;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        n += take(&p, HEARTBEAT, 1, ++now_ms);
    }
    assert_int_equal(n, 10 * GPUL_PACE_PER_S);
    /* A long silence is worth a burst, and no more. */
    now_ms += UINT64_C(1) << 50;
    assert_int_equal(take_all(&p, HEARTBEAT, 1, now_ms, MOST), GPUL_PACE_BURST);
}

/* An honest node: a full burst of every kind at once leaves a heartbeat in
 * its place, and 4096 ranks may all end alone. */
static void test_kinds(void **state)
{
    (void)state;
    struct pace p = {0};
    const uint32_t ranks = GPUL_RANKS_PER_NODE_MAX;
    assert_true(take_all(&p, EXITS, ranks, 1, 2 * ranks) == 2 * ranks);
    assert_true(take_all(&p, PHASE, 1, 1, UINT32_MAX) ==
                GPUL_PACE_PROBES_BURST);
    assert_true(take_all(&p, REPORT, ranks, 1, UINT32_MAX) ==
                ranks * GPUL_PACE_REPORTS_OF_RANK);
    assert_false(take(&p, REPORT, ranks, UINT32_MAX));
    assert_true(take(&p, HEARTBEAT, ranks, 1));
    /* 64 probes that tell their phases for ever, and each a result. */
    p = (struct pace){0};
    for (uint64_t now_ms = 0; now_ms < 100000; now_ms += 1000) {
        assert_int_equal(take_all(&p, PHASE, 1, now_ms, 2 * GPUL_DEVICES_MAX),
                         2 * GPUL_DEVICES_MAX);
    }
}

/* A coordinator that was stopped for a lease finds what came meanwhile. */
static void test_backlog(void **state)
{
    (void)state;
    struct pace p = {0};
    uint32_t seconds = 2 * GPUL_LEASE_MS / 1000;
    uint32_t phases = seconds * GPUL_DEVICES_MAX;
    assert_int_equal(take_all(&p, PHASE, 1, 1, phases), phases);
    assert_int_equal(take_all(&p, HEARTBEAT, 1, 1, seconds), seconds);
}

/* What is bounded by credit is not counted. */
static void test_apart(void **state)
{
    (void)state;
    struct pace p = {0};
    enum { MANY = 1000000 };
    assert_int_equal(take_all(&p, GPUL__FRAME__BODY_OUTPUT, 1, 1, MANY), MANY);
    assert_int_equal(take_all(&p, GPUL__FRAME__BODY_INPUT_CREDIT, 1, 1, MANY),
                     MANY);
    assert_true(take(&p, HEARTBEAT, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
