/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent after a self-test on GPUs: the command waits for the memory of the
 * devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play_gpu.h"

/* Memory that comes back late: the scout looks again, at longer and longer
 * intervals, and a Launch that has come meanwhile is then carried out. */
static void test_memory_late(void **state)
{
    (void)state;
    static const uint64_t waits[] = {100, 200, 400, 800, 1600, 1600};
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    assert_string_equal(play_input(&p, "x", false), ""); /* not yet */
    assert_string_equal(play_launch(&p), "");
    assert_string_equal(play_input(&p, "x", false), "feed 1");
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_string_equal(play_facts(&p, 2, 613), "");
        assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
        if (waits[i] > 1) {
            assert_string_equal(play_pass(&p, waits[i] - 1), "");
        }
        assert_string_equal(play_pass(&p, 1), WATCH);
    }
    assert_string_equal(play_facts(&p, 2, 100), "");
    assert_string_equal(play_probe_ended(&p, 0, ENDED), "start_ranks");
    assert_int_equal(agent_state(p.agent), AGENT_RUNNING);
    assert_int_equal(agent_attempt(p.agent), 1);
    play_close(&p);
}

/* Memory that does not come back holds the command up for 50 s; what uses it
 * is named. */
static void test_memory_lost(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    uint64_t start_ms = p.now_ms;
    const char *line = WATCH;
    while (strcmp(line, WATCH) == 0) {
        play_facts(&p, 2, 3000);
        assert_string_equal(play_probe_ended(&p, 0, ENDED), "");
        line = play_pass(&p, 2000);
    }
    assert_int_equal(p.now_ms - start_ms, 50000);
    assert_string_equal(
        line,
        "send(heartbeat notice:GPU memory is not free again 50 s after the "
        "self-test, and the command starts without it: device 0 (GPU-0) has "
        "3000 MiB in use, 100 MiB before: 1 process (77) uses the GPU already; "
        "device 1 (GPU-1) has 3000 MiB in use, 100 MiB before: 1 process (77) "
        "uses the GPU already) start_ranks");
    play_close(&p);
}

/* A scout that fails, or hangs, cannot say: that is told, and all goes on. */
static void test_memory_unseen(void **state)
{
    (void)state;
    static const char unseen[] = "send(notice:whether GPU memory is free "
                                 "again after the self-test cannot be seen: ";
    char expected[300];
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    snprintf(expected, sizeof(expected), "%s%s)", unseen, CRASH);
    assert_string_equal(play_probe_ended(&p, 0, CRASH), expected);
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    assert_string_equal(play_no_facts(&p, "NVML is gone"), "");
    snprintf(expected, sizeof(expected), "%sNVML is gone)", unseen);
    assert_string_equal(play_probe_ended(&p, 0, ENDED), expected);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    assert_string_equal(play_pass(&p, 6999), "");
    assert_string_equal(play_pass(&p, 1), "kill_probes");
    snprintf(expected, sizeof(expected),
             "%sit took too long to look) start_ranks", unseen);
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"), expected);
    play_close(&p);
}

/* Where memory could not be seen before, nobody looks for it after: a finding
 * has told. Where it could, the loss of NVML is told. */
static void test_memory_blind(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_scout(&p), SCOUT);
    play_facts_without(&p, 2, 0, "NVML was not found");
    play_probe_ended(&p, 0, ENDED);
    play_probe_begin(&p, 2);
    for (uint32_t i = 0; i < 2; i++) {
        play_device_result(&p, i, "");
    }
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_probe_ended(&p, 1, ENDED),
                        "send(probe_result:5:GPU-1:coll:)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_facts_without(&p, 2, 0, "NVML: Uninitialized");
    assert_string_equal(play_probe_ended(&p, 0, ENDED),
                        "send(notice:whether GPU memory is free again after "
                        "the self-test cannot be seen: NVML: Uninitialized)");
    play_close(&p);
}

/* Stop while the memory is waited for: the scout is killed, a Launch that
 * was kept is forgotten, and the next generation begins anew. */
static void test_memory_stop(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 5000), "kill_probes");
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"), "send(idle)");
    play_to_running(&p);
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_facts(&p, 2, 3000);
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_stop(&p, SIGTERM, 5000), "send(idle)");
    assert_string_equal(play_pass(&p, 3000), "");
    play_close(&p);
}

/* Out of CLEARING with nothing alive the agent leaves at once; a second
 * Launch is a fault. */
static void test_memory_leave(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_clearing(&p);
    play_facts(&p, 2, 3000);
    play_probe_ended(&p, 0, ENDED);
    assert_string_equal(play_finish(&p, true), "leave 0");
    play_close(&p);

    play_open(&p);
    play_to_clearing(&p);
    play_launch(&p);
    play_launch(&p);
    assert_non_null(strstr(p.line, "kill_probes"));
    assert_string_equal(play_probe_ended(&p, 0, "signal 9"),
                        "leave 125 \"the coordinator at 127.0.0.1:9 sent "
                        "launch out of place\"");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_late),
        cmocka_unit_test(test_memory_lost),
        cmocka_unit_test(test_memory_unseen),
        cmocka_unit_test(test_memory_blind),
        cmocka_unit_test(test_memory_stop),
        cmocka_unit_test(test_memory_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
