/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>

#include <cmocka.h>

#include "keeping_play.h"

/* ---- a run --------------------------------------------------------------- */

/* Begin, start, end by themselves, gone, begin again, leave. */
static void test_run(void **state)
{
    (void)state;
    play_open();
    assert_string_equal(play_begin(1, 2), "begin");
    play_start_rank(0);
    play_start_rank(1);
    assert_string_equal(play_told(), "started(0: 100) started(1: 101)");
    play_exited(1, 256);
    assert_false(keeping_wants_look(&play_keeper));
    play_exited(0, 0);
    assert_true(keeping_wants_look(&play_keeper));
    assert_string_equal(play_told(), "exit(1: 256) exit(0: 0)");
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(play_told(), "gone");
    assert_false(keeping_wants_look(&play_keeper));
    assert_string_equal(play_begin(2, 1), "begin");
    play_start_rank(0);
    assert_string_equal(play_told(), "started(0: 100)");
    play_exited(0, 0);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(play_packet(KEEPER_LEAVE, 3), "stop(9)");
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "");
    assert_string_equal(play_type(KEEPING_AGENT_ENDED), "stop(9)");
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "leave(3)");
}

/* The agent's escalation; SIGKILL is sent again until nobody is left. */
static void test_stop(void **state)
{
    (void)state;
    play_open_ranks(2);
    assert_string_equal(play_packet(KEEPER_PASS, SIGUSR1), "pass(10 to -1)");
    assert_string_equal(play_packet(KEEPER_STOP, SIGTERM), "stop(15)");
    play_exited(0, 15);
    assert_int_equal(keeping_next_deadline_ms(&play_keeper), UINT64_MAX);
    assert_string_equal(play_packet(KEEPER_STOP, SIGKILL), "stop(9)");
    assert_string_equal(play_wait(KEEPING_SWEEP_MS), "stop(9)");
    assert_string_equal(play_wait(KEEPING_SWEEP_MS), "stop(9)");
    assert_string_equal(play_packet(KEEPER_ABANDON, 0), "list finish");
    assert_string_equal(play_told(),
                        "exit(0: 15) unclean(7 stuck (D, nfs)) gone");
    assert_int_equal(keeping_next_deadline_ms(&play_keeper), UINT64_MAX);
    /* It ended after all. */
    play_exited(1, 9);
    assert_string_equal(play_told(), "exit(1: 9)");
}

/* Ranks that were sent SIGTSTP are continued when they are to stop, once, and
 * SIGKILL needs nobody awake; others get no SIGCONT by this way. */
static void test_suspended(void **state)
{
    (void)state;
    play_open_ranks(2);
    assert_string_equal(play_packet(KEEPER_PASS, SIGTSTP), "pass(20 to -1)");
    assert_string_equal(play_packet(KEEPER_STOP, SIGTERM),
                        "pass(18 to -1) stop(15)");
    assert_string_equal(play_packet(KEEPER_STOP, SIGINT), "stop(2)");

    play_open_ranks(1);
    play_packet(KEEPER_PASS, SIGTSTP);
    assert_string_equal(play_packet(KEEPER_PASS, SIGCONT), "pass(18 to -1)");
    assert_string_equal(play_packet(KEEPER_STOP, SIGTERM), "stop(15)");

    play_open_ranks(1);
    play_packet(KEEPER_PASS, SIGTSTP);
    assert_string_equal(play_packet(KEEPER_STOP, SIGKILL), "stop(9)");
}

/* So they are where no agent is there to say so. */
static void test_suspended_orphans(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_packet(KEEPER_PASS, SIGTSTP);
    play_type(KEEPING_AGENT_ENDED);
    assert_string_equal(play_signaled(SIGTERM), "pass(18 to -1) stop(15)");
}

/* What probes leave is stopped without ranks, and told by GONE as well. */
static void test_stop_without_ranks(void **state)
{
    (void)state;
    play_open();
    assert_string_equal(play_packet(KEEPER_STOP, SIGKILL), "stop(9)");
    assert_true(keeping_wants_look(&play_keeper));
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(play_told(), "gone");
}

/* Starts that fail, that come too late, twice, or for no slot. */
static void test_starts_refused(void **state)
{
    (void)state;
    play_open();
    assert_string_equal(play_start(0), "");
    play_begin(1, 3);
    assert_string_equal(play_begin(2, 3), "");
    assert_string_equal(play_start(0), "start(0)");
    play_step((struct keeping_event){.type = KEEPING_STARTED,
                                     .slot = 0,
                                     .exec_errno = ENOENT,
                                     .text = "cannot execute x"});
    assert_string_equal(play_start(0), "");
    assert_string_equal(play_start(3), "");
    play_packet(KEEPER_STOP, SIGTERM);
    assert_string_equal(play_start(1), "");
    assert_string_equal(play_told(),
                        "started(0: 2 cannot execute x) "
                        "started(1: 125 the ranks are being stopped)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_suspended),
        cmocka_unit_test(test_suspended_orphans),
        cmocka_unit_test(test_stop_without_ranks),
        cmocka_unit_test(test_starts_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
