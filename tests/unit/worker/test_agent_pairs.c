/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent during the trials between two nodes: docs/check.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"

static void to_listening(struct play *p)
{
    play_open(p);
    play_to_assigned(p);
    assert_string_equal(play_pair_start(p), "start_pairs(pair_start)");
    assert_string_equal(play_pair_listening(p), "send(pair_listening)");
}

/* Orders and results pass through; then the self-test may follow. */
static void test_all(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(play_trial_start(&p), "send_probes(trial_start)");
        assert_string_equal(play_trial_result(&p), "send(trial_result)");
    }
    assert_string_equal(play_pair_end(&p), "send_probes(pair_end:)");
    assert_string_equal(play_probe_ended(&p, 0, "it ended without a result"),
                        "send(pair_end:)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_probe_start(&p), "start_probe(probe_start)");
    play_close(&p);
}

/* Each order has its own time, and so has the wait for the next one. */
static void test_hangs(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    play_ack(&p);
    assert_string_equal(play_wait(&p, 6900), "send(heartbeat)");
    assert_string_equal(play_trial_start(&p), "send_probes(trial_start)");
    play_ack(&p);
    assert_null(strstr(play_wait(&p, 10900), "kill_probes"));
    play_ack(&p);
    assert_non_null(strstr(play_wait(&p, 200), "kill_probes"));
    assert_string_equal(
        play_probe_ended(&p, 0, "it was ended by signal 9 (SIGKILL)"),
        "send(pair_end:it did not end in time and was killed)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    play_close(&p);
}

static void test_idle(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    play_trial_start(&p);
    play_trial_result(&p);
    play_ack(&p);
    assert_null(strstr(play_wait(&p, 6900), "kill_probes"));
    assert_non_null(strstr(play_wait(&p, 200), "kill_probes"));
    play_close(&p);
}

/* What crosses its end is late, and no fault. */
static void test_dies(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    assert_string_equal(
        play_probe_ended(&p, 0, "it was ended by signal 11 (SIGSEGV)"),
        "send(pair_end:it was ended by signal 11 (SIGSEGV))");
    assert_string_equal(play_trial_start(&p), "");
    assert_string_equal(play_pair_end(&p), "");
    assert_string_equal(play_stop(&p, SIGTERM, 100), "send(idle)");
    play_close(&p);
}

static void test_hangs_at_end(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    play_pair_end(&p);
    assert_non_null(strstr(play_wait(&p, 2000), "kill_probes"));
    assert_string_equal(
        play_probe_ended(&p, 0, "it was ended by signal 9 (SIGKILL)"),
        "send(pair_end:it did not end in time and was killed)");
    play_close(&p);
}

static void test_stop(void **state)
{
    (void)state;
    struct play p;
    to_listening(&p);
    play_trial_start(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 100), "kill_probes");
    assert_string_equal(
        play_probe_ended(&p, 0, "it was ended by signal 9 (SIGKILL)"),
        "send(idle)");
    play_close(&p);
}

/* Out of turn: before the roster, to another probe, behind the end. */
static void test_out_of_turn(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    play_assign(&p);
    assert_non_null(strstr(play_pair_start(&p), "pair_start out of place"));
    play_close(&p);
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_non_null(strstr(play_trial_start(&p), "disconnect"));
    play_close(&p);
    to_listening(&p);
    play_pair_end(&p);
    assert_non_null(strstr(play_trial_start(&p), "disconnect"));
    play_close(&p);
    to_listening(&p);
    assert_string_equal(play_probe_result(&p), "");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),          cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_idle),         cmocka_unit_test(test_dies),
        cmocka_unit_test(test_hangs_at_end), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_out_of_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
