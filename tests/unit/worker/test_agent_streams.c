/* SPDX-License-Identifier: Apache-2.0
 *
 * What the coordinator has for the ranks: signals and standard input.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include "agent_play.h"

#include <cmocka.h>

/* Only to ranks that run, and to those that are being stopped. */
static void test_signal(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_pass_signal(&p, SIGUSR1), "");
    play_launch(&p);
    assert_string_equal(play_pass_signal(&p, SIGUSR1), "pass_signal 10");
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "stop_ranks 15");
    assert_string_equal(play_pass_signal(&p, 40), "pass_signal 40");
    play_exits(&p, 0, 2, 0);
    play_gone(&p, NULL);
    assert_string_equal(play_pass_signal(&p, SIGUSR1), "");
    play_close(&p);
}

/* To the ranks that run; what comes later is swallowed. */
static void test_input(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_input(&p, "abc", false), "feed 3");
    assert_string_equal(play_input(&p, "", true), "feed 0 end");
    play_exits(&p, 0, 2, 0);
    play_gone(&p, NULL);
    assert_string_equal(play_input(&p, "late", false), "");
    play_close(&p);
}

/* What is meant for ranks before these is not heard. */
static void test_stale(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    p.generation--;
    assert_string_equal(play_input(&p, "abc", false), "");
    assert_string_equal(play_pass_signal(&p, SIGUSR1), "");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
