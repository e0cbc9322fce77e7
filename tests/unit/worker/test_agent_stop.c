/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent stops what runs: ranks, and the probe of the self-test over host
 * memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"

#define DRAINED(p) play_event(p, AGENT_EVENT_OUTPUT_DRAINED, NULL)

/* ---- stopping ------------------------------------------------------------ */

/* Stop: the signal, SIGKILL after the grace, and what will not die is given
 * up and named. */
static void test_stop_escalates(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_stop(&p, SIGINT, 1500), "stop_ranks 2");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 1500);
    assert_string_equal(play_wait(&p, 1500), "kill_ranks");
    play_wait(&p, 500);
    play_wait(&p, 2000);
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 500), "abandon discard_output");
    assert_string_equal(play_gone(&p, "77 stuck"), "");
    assert_string_equal(DRAINED(&p), "send(idle:77 stuck)");
    play_close(&p);
}

/* A second Stop may shorten the grace, never lengthen it. */
static void test_second_stop(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_stop(&p, SIGTERM, 1900);
    assert_string_equal(play_stop(&p, SIGTERM, 60000), "stop_ranks 15");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 1900);
    assert_string_equal(play_stop(&p, SIGTERM, 0), "kill_ranks");
    assert_string_equal(play_stop(&p, SIGKILL, 0), "");
    play_close(&p);
}

/* What the ranks left behind has a moment to end, then is stopped as they
 * would have been. */
static void test_leftovers(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 500);
    assert_string_equal(play_wait(&p, 500), "stop_ranks 15");
    assert_string_equal(play_wait(&p, 1500), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 500), "kill_ranks");
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* Idle waits for a slow reader after a natural end, but not for ever after
 * a Stop: then nobody may be reading. */
static void test_output_without_credit(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_exits(&p, 0, 2, 0);
    play_gone(&p, NULL);
    for (int i = 0; i < 100; i++) {
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
        play_ack(&p);
    }
    assert_string_equal(play_credit(&p, 500), "credit 500");
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "");
    play_wait(&p, 2000);
    play_wait(&p, 2000);
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat) discard_output");
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* A Stop where nothing runs is answered with Idle. */
static void test_stop_idle(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 100), "send(idle)");
    assert_int_equal(agent_state(p.agent), AGENT_MEMBER);
    play_close(&p);
}

/* A signal to the agent stops the ranks with it, tells the coordinator, and
 * then leaves; the second one kills. */
static void test_signal(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_signal(&p, SIGINT), "stop_ranks 2");
    assert_string_equal(play_signal(&p, SIGINT), "kill_ranks");
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    play_gone(&p, NULL);
    assert_string_equal(
        DRAINED(&p),
        "send(idle leave:clean) leave 130 \"stopped by signal 2 (SIGINT)\"");
    play_close(&p);
}

/* Before it is a member, a signal ends the agent at once. */
static void test_signal_early(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    assert_string_equal(play_signal(&p, SIGTERM),
                        "leave 143 \"stopped by signal 15 (SIGTERM)\"");
    assert_string_equal(play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1"), "");
    play_close(&p);
}

/* Finish while ranks live kills them first; logs are removed last, or kept. */
static void test_finish_while_running(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct play p;
        play_open(&p);
        play_to_running(&p);
        assert_string_equal(play_finish(&p, keeps),
                            "discard_output kill_ranks");
        play_gone(&p, NULL);
        assert_string_equal(DRAINED(&p),
                            keeps ? "send(idle) leave 0"
                                  : "send(idle) remove_logs leave 0");
        play_close(&p);
    }
}

/* ---- the self-test ------------------------------------------------------- */

/* The result goes out when the probe has ended, not before. */
static void test_probe(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_probe_start(&p), "start_probe(probe_start)");
    assert_string_equal(play_listening(&p), "send(probe_listening)");
    assert_string_equal(play_probe_connect(&p), "send_probes(probe_connect)");
    assert_string_equal(play_probe_result(&p), "");
    assert_int_equal(agent_state(p.agent), AGENT_PROBING);
    assert_string_equal(play_event(&p, AGENT_EVENT_PROBE_ENDED, "ended"),
                        "send(probe_result:coll:)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A probe that dies says nothing itself: the agent says it, with the phase. */
static void test_probe_dies(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_string_equal(play_event(&p, AGENT_EVENT_PROBE_ENDED, "signal 11"),
                        "send(probe_result:init:signal 11)");
    assert_string_equal(play_probe_connect(&p), "");
    play_close(&p);
}

/* A probe that hangs is killed 2 s after its deadline. */
static void test_probe_hangs(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    play_probe_connect(&p);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    }
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat) kill_probes");
    assert_string_equal(
        play_event(&p, AGENT_EVENT_PROBE_ENDED, "signal 9"),
        "send(probe_result:coll:it did not end in time and was killed)");
    play_close(&p);
}

/* Stop during the self-test kills the probe; its result is of no interest.
 * One that cannot be killed is given up and named. */
static void test_stop_probe(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "kill_probes");
    play_wait(&p, 5000);
    assert_non_null(strstr(p.line, "abandon"));
    char name[] = "5 gpulaunch-worker";
    char *list[] = {name};
    struct agent_event ended = {.type = AGENT_EVENT_PROBE_ENDED,
                                .text = name,
                                .unclean = list,
                                .unclean_count = 1};
    assert_string_equal(play_step(&p, &ended), "send(idle:5 gpulaunch-worker)");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_escalates),
        cmocka_unit_test(test_second_stop),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_output_without_credit),
        cmocka_unit_test(test_stop_idle),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_signal_early),
        cmocka_unit_test(test_finish_while_running),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_dies),
        cmocka_unit_test(test_probe_hangs),
        cmocka_unit_test(test_stop_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
