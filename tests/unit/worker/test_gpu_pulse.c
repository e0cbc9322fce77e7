/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/clock.h"
#include "worker/gpu_pulse.h"

#define STATE(name) GPUL__PROBE_PHASE__STATE__STATE_##name

/* How it looks `ms` from now. */
static struct gpu_pulse_view look(const struct gpu_pulse *p, uint64_t ms)
{
    struct gpu_pulse_view view;
    gpu_pulse_look(p, &view, gpul_clock_ms() + ms);
    return view;
}

/* A call is in passing at first; one that lasts is named, in a wait too. */
static void test_call(void **state)
{
    (void)state;
    struct gpu_pulse p = {0};
    gpu_pulse_step(&p);
    gpu_pulse_enter(&p, "ncclSend");
    assert_int_equal(look(&p, 0).state, STATE(WORKS));
    struct gpu_pulse_view view = look(&p, 3000);
    assert_int_equal(view.state, STATE(INSIDE));
    assert_string_equal(view.call, "ncclSend");
    assert_true(view.since_ms >= 3000);
    gpu_pulse_leave(&p);
    assert_int_equal(look(&p, 3000).state, STATE(WORKS));
    gpu_pulse_wait(&p);
    gpu_pulse_enter(&p, "cuEventQuery");
    assert_int_equal(look(&p, 0).state, STATE(WAITS));
    assert_int_equal(look(&p, GPU_PULSE_INSIDE_MS).state, STATE(INSIDE));
}

/* What lies between calls and waits is work; it begins with a step, or with
 * the end of a wait. */
static void test_wait(void **state)
{
    (void)state;
    struct gpu_pulse p = {0};
    gpu_pulse_step(&p);
    gpu_pulse_wait(&p);
    struct gpu_pulse_view view = look(&p, 9000);
    assert_int_equal(view.state, STATE(WAITS));
    assert_string_equal(view.call, "");
    assert_true(view.since_ms >= 9000);
    gpu_pulse_go_on(&p);
    view = look(&p, 200);
    assert_int_equal(view.state, STATE(WORKS));
    assert_true(view.since_ms >= 200 && view.since_ms < 9000);
}

/* Steps are counted by phase. */
static void test_progress(void **state)
{
    (void)state;
    struct gpu_pulse p = {0};
    assert_int_equal(look(&p, 0).progress, 0);
    gpu_pulse_step(&p);
    gpu_pulse_step(&p);
    assert_int_equal(look(&p, 0).progress, 2);
    gpu_pulse_new_phase(&p);
    assert_int_equal(look(&p, 0).progress, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
