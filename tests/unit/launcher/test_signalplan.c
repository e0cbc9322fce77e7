/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/signalplan.h"

/* Every number once: what is not named here is the ranks'. */
static void test_all(void **state)
{
    (void)state;
    static const enum signal_use others[SIGNALPLAN_MAX + 1] = {
        [SIGINT] = SIGNAL_USE_STOP,      [SIGTERM] = SIGNAL_USE_STOP,
        [SIGHUP] = SIGNAL_USE_STOP,      [SIGTSTP] = SIGNAL_USE_SUSPEND,
        [SIGCONT] = SIGNAL_USE_CONTINUE, [SIGUSR1] = SIGNAL_USE_PASS,
        [SIGUSR2] = SIGNAL_USE_PASS,     [SIGQUIT] = SIGNAL_USE_PASS,
        [SIGWINCH] = SIGNAL_USE_PASS,    [SIGALRM] = SIGNAL_USE_PASS,
        [SIGVTALRM] = SIGNAL_USE_PASS,   [SIGPROF] = SIGNAL_USE_PASS,
        [SIGXCPU] = SIGNAL_USE_PASS,     [SIGIO] = SIGNAL_USE_PASS,
        [SIGPWR] = SIGNAL_USE_PASS,      [SIGSTKFLT] = SIGNAL_USE_PASS,
    };
    for (int number = 1; number <= SIGNALPLAN_MAX; number++) {
        enum signal_use expected =
            number >= 34 ? SIGNAL_USE_PASS : others[number];
        assert_int_equal(signalplan_use(number), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
