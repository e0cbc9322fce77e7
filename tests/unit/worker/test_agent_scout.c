/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent and the scout, which looks at the GPUs before a self-test on them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>

#include <cmocka.h>

#include "agent_play_gpu.h"

/* Facts go out when the scout has ended, not before. */
static void test_scout(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_facts(&p);
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A scout that dies or hangs is told as a node on which GPUs cannot be
 * looked at; the host's self-test may then follow. */
static void test_scout_fails(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_scout(&p);
    assert_string_equal(play_probe_ended(&p, 0, CRASH),
                        "send(probe_facts:0:the process that looks at the "
                        "GPUs failed: " CRASH ")");
    play_scout(&p);
    assert_string_equal(play_pass(&p, 6999), "");
    assert_string_equal(play_pass(&p, 1), "kill_probes");
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"),
                        "send(probe_facts:0:the process that looks at the "
                        "GPUs failed: " LATE ")");
    assert_string_equal(play_probe_start(&p), "start_probe(probe_start)");
    play_close(&p);
}

/* A scout is needed for as many probes as are begun, and of this
 * generation. */
static void test_begin_without_devices(void **state)
{
    (void)state;
    static const char fault[] = "send(leave:clean) disconnect leave 125 \"the "
                                "coordinator at 127.0.0.1:9 sent "
                                "probe_begin out of place\"";
    for (int i = 0; i < 3; i++) {
        struct play p;
        play_open(&p);
        if (i == 0) {
            play_to_assigned(&p);
        } else {
            play_to_facts(&p);
        }
        if (i == 2) {
            assert_string_equal(play_stop(&p, SIGTERM, 0), "send(idle)");
            play_to_assigned(&p);
        }
        assert_string_equal(play_probe_begin(&p, i == 1 ? 3 : 2), fault);
        play_close(&p);
    }
}

/* How a scout is goes out too, and that it is stopped, until it has told. */
static void test_scout_halt(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_scout(&p);
    assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__NONE),
                        "send(probe_phase:0:0)");
    assert_string_equal(play_halted(&p, 0, SIGSTOP),
                        "send(probe_phase:0:0:stopped)");
    assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__NONE),
                        "send(probe_phase:0:0:stopped)");
    assert_string_equal(play_halted(&p, 0, 0), "send(probe_phase:0:0)");
    assert_string_equal(play_facts(&p, 2, 100), "");
    assert_string_equal(play_phase(&p, 0, GPUL__PROBE_PHASE__PHASE__NONE), "");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scout),
        cmocka_unit_test(test_scout_fails),
        cmocka_unit_test(test_scout_halt),
        cmocka_unit_test(test_begin_without_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
