/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>

#include <cmocka.h>

#include "keeping_play.h"

/* ---- agents that end ----------------------------------------------------- */

/* The next agent is told all there is, how much that is, and then the news. */
static void test_replay(void **state)
{
    (void)state;
    play_open_ranks(3);
    play_exited(1, 0);
    assert_string_equal(play_type(KEEPING_AGENT_ENDED), "");
    play_exited(2, 256); /* while there is none */
    assert_string_equal(play_told(), "");
    assert_string_equal(play_wait(0), "fork");
    play_agent(51);
    assert_string_equal(play_told_some(3),
                        "state(agent 1, generation 1, signal 0, 5 more) "
                        "rank(0: 100) rank(1: 101)");
    play_exited(0, 9); /* not among the five */
    assert_string_equal(play_told(),
                        "exit(1: 0) rank(2: 102) exit(2: 256) exit(0: 9)");
    play_type(KEEPING_NONE_LEFT);
    play_type(KEEPING_AGENT_ENDED);
    play_agent(52);
    assert_string_equal(
        play_told(),
        "state(agent 2, generation 1, signal 0, 7 more) rank(0: 100) "
        "exit(0: 9) rank(1: 101) exit(1: 0) rank(2: 102) "
        "exit(2: 256) gone");
}

/* The last descriptor is where the input is written, until it is closed; a
 * second CLOSE, or one for no slot, is nothing. */
static void test_close(void **state)
{
    (void)state;
    struct keeper_packet p;
    play_open();
    play_begin(1, 1);
    play_start(0);
    play_step((struct keeping_event){.type = KEEPING_STARTED,
                                     .slot = 0,
                                     .kept_fds = 3,
                                     .has_input = true,
                                     .pid = 100});
    play_told();
    play_type(KEEPING_AGENT_ENDED);
    play_agent(51);
    play_told_some(1);
    assert_true(keeping_next_packet(&play_keeper, &p));
    assert_int_equal(p.kept_fds, 3);
    assert_true(p.has_input);
    assert_string_equal(play_told(), "rank(0: 100)");
    assert_string_equal(play_close_input(1), "");
    assert_string_equal(play_close_input(KEEPER_ALL_SLOTS), "");
    assert_string_equal(play_close_input(0), "close(0)");
    assert_string_equal(play_close_input(0), "");
    play_type(KEEPING_AGENT_ENDED);
    play_agent(52);
    play_told_some(1);
    assert_true(keeping_next_packet(&play_keeper, &p));
    assert_int_equal(p.kept_fds, 2);
    assert_false(p.has_input);
}

/* A stop that is under way, a start that failed, and what was unclean. */
static void test_replay_stop(void **state)
{
    (void)state;
    play_open_ranks(2);
    play_packet(KEEPER_STOP, SIGTERM);
    play_type(KEEPING_AGENT_ENDED);
    play_agent(51);
    assert_string_equal(play_told(),
                        "state(agent 1, generation 1, signal 15, 2 more) "
                        "rank(0: 100) rank(1: 101)");
    play_packet(KEEPER_ABANDON, 0);
    play_type(KEEPING_AGENT_ENDED);
    play_agent(52);
    assert_string_equal(play_told(),
                        "state(agent 2, generation 1, signal 0, 4 more) "
                        "rank(0: 100) rank(1: 101) unclean(7 stuck (D, nfs)) "
                        "gone");
}

/* At once, then later and later, until one has attached. */
static void test_retries(void **state)
{
    (void)state;
    play_open();
    for (uint64_t i = 0; i < 13; i++) {
        play_now_ms += KEEPING_SHORT_LIFE_MS; /* no failure, but no success */
        assert_string_equal(play_type(KEEPING_AGENT_ENDED), "");
        assert_string_equal(play_wait(i < 10 ? i * 100 : 1000), "fork");
        play_agent(51);
    }
    play_packet(KEEPER_ATTACHED, 0);
    play_type(KEEPING_AGENT_ENDED);
    assert_string_equal(play_wait(0), "fork");
}

/* Five that fail at once are enough; ranks are stopped in order. */
static void test_given_up(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_type(KEEPING_AGENT_ENDED); /* had attached: no failure */
    for (uint64_t i = 0; i < 5; i++) {
        assert_string_equal(play_wait(i * 100), "fork");
        const char *line;
        if (i % 2 == 0) {
            play_agent(51);
            line = play_type(KEEPING_AGENT_ENDED);
        } else {
            line = play_agent(0); /* fork failed */
        }
        assert_string_equal(line, i < 4 ? "" : "stop(15)");
    }
    assert_string_equal(play_wait(3000), "stop(9)");
    play_exited(0, 9);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish leave(125)");
}

/* No agent attaches: the same stop, 75; one that is there may watch. */
static void test_orphaned(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_type(KEEPING_AGENT_ENDED);
    play_wait(0);
    play_agent(51);
    play_told();
    assert_string_equal(play_wait(60000), "stop(15)");
    assert_string_equal(play_packet(KEEPER_STOP, SIGUSR1), "");
    play_exited(0, 15);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(play_told(), "exit(0: 15) gone");
    assert_string_equal(play_wait(KEEPING_LINGER_MS), "kill-agent");
    assert_string_equal(play_type(KEEPING_AGENT_ENDED), "stop(9)");
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "leave(75)");
}

/* One that attaches in time ends the wait, one that only starts does not. */
static void test_attached_in_time(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_type(KEEPING_AGENT_ENDED);
    play_wait(0);
    play_now_ms += 30000;
    play_agent(51);
    assert_int_equal(keeping_next_deadline_ms(&play_keeper),
                     play_now_ms + 30000);
    play_packet(KEEPER_ATTACHED, 0);
    assert_int_equal(keeping_next_deadline_ms(&play_keeper), UINT64_MAX);
}

/* ---- leaving ------------------------------------------------------------- */

/* What does not die is left after its time, and the agent with it. */
static void test_unkillable(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_packet(KEEPER_STOP, SIGKILL);
    assert_string_equal(play_packet(KEEPER_LEAVE, 75), "stop(9)");
    for (int i = 0; i < 49; i++) {
        assert_string_equal(play_wait(KEEPING_SWEEP_MS), "stop(9)");
    }
    assert_string_equal(play_wait(KEEPING_SWEEP_MS), "kill-agent");
    assert_string_equal(play_type(KEEPING_TICK), "kill-agent leave(75)");
}

/* An agent that says LEAVE and stays is killed; if that fails, it is left. */
static void test_agent_stays(void **state)
{
    (void)state;
    play_open();
    play_packet(KEEPER_LEAVE, 0);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish");
    assert_string_equal(play_wait(KEEPING_AGENT_END_MS), "kill-agent");
    assert_string_equal(play_wait(KEEPING_KILL_MS), "kill-agent leave(0)");
}

/* A signal is the agent's matter; if it does not leave, the keeper's. */
static void test_signal(void **state)
{
    (void)state;
    play_open_ranks(1);
    assert_string_equal(play_signaled(SIGTERM), "");
    assert_string_equal(play_signaled(SIGINT), "");
    assert_string_equal(play_told(), "signal(2) signal(15)");
    assert_string_equal(play_wait(KEEPING_ORDERLY_MS + 3000),
                        "kill-agent stop(15)");
    play_type(KEEPING_AGENT_ENDED);
    assert_string_equal(play_signaled(SIGTERM), "stop(9)");
    play_exited(0, 9);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish leave(143)");
}

/* An agent that dies of its order to leave is not replaced, and without an
 * agent the keeper stops by itself. */
static void test_signal_without_agent(void **state)
{
    (void)state;
    play_open_ranks(1);
    play_signaled(SIGHUP);
    assert_string_equal(play_type(KEEPING_AGENT_ENDED), "stop(15)");
    play_exited(0, 15);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish leave(129)");
    play_open_ranks(1);
    play_type(KEEPING_AGENT_ENDED);
    assert_string_equal(play_signaled(SIGINT), "stop(15)");
    play_exited(0, 15);
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "finish leave(130)");
}

/* One that is killed is replaced, but not for ever. */
static void test_undertakers(void **state)
{
    (void)state;
    play_open_ranks(1);
    for (int i = 1; i < KEEPING_UNDERTAKERS_MAX; i++) {
        assert_string_equal(play_type(KEEPING_UNDERTAKER_ENDED), "undertaker");
    }
    assert_string_equal(play_type(KEEPING_UNDERTAKER_ENDED), "");
    play_exited(0, 0);
    play_type(KEEPING_NONE_LEFT);
    assert_string_equal(play_type(KEEPING_UNDERTAKER_ENDED), "");
}

/* Nonsense changes nothing. */
/* A question is answered behind what is owed, once; the next agent has not
 * asked it. */
static void test_asked(void **state)
{
    (void)state;
    play_open();
    assert_string_equal(play_packet(KEEPER_ASK, 0), "");
    assert_string_equal(play_packet(KEEPER_ASK, 0), "");
    play_step(
        (struct keeping_event){.type = KEEPING_SIGNAL, .signal = SIGTERM});
    assert_string_equal(play_told(), "signal(15) alive");
    assert_string_equal(play_told(), "");
    play_packet(KEEPER_ASK, 0);
    play_type(KEEPING_AGENT_ENDED);
    assert_string_equal(play_told(), "");
}

static void test_nonsense(void **state)
{
    (void)state;
    play_open();
    assert_string_equal(play_begin(0, 1), "");
    assert_string_equal(play_begin(1, 0), "");
    assert_string_equal(play_begin(1, GPUL_RANKS_PER_NODE_MAX + 1), "");
    assert_string_equal(play_packet(KEEPER_STOP, 0), "");
    assert_string_equal(play_packet(KEEPER_STOP, 65), "");
    assert_string_equal(play_packet(KEEPER_PASS, -1), "");
    assert_string_equal(play_packet(KEEPER_STATE, 0), "");
    assert_string_equal(play_packet(KEEPER_ABANDON, 0), "");
    assert_string_equal(play_type(KEEPING_NONE_LEFT), "");
    assert_string_equal(play_told(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_replay_stop),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_orphaned),
        cmocka_unit_test(test_attached_in_time),
        cmocka_unit_test(test_unkillable),
        cmocka_unit_test(test_agent_stays),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_signal_without_agent),
        cmocka_unit_test(test_undertakers),
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
