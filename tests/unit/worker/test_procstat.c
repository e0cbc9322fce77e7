/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/procstat.h"

/* A name may hold what separates the fields. */
static void test_self(void **state)
{
    (void)state;
    struct procstat stat;
    assert_int_equal(prctl(PR_SET_NAME, "a) R (b 1"), 0);
    assert_true(procstat_read(&stat, getpid()));
    assert_string_equal(stat.name, "a) R (b 1");
    assert_int_equal(stat.state, 'R');
    assert_int_equal(stat.parent, getppid());
    assert_int_equal(stat.group, getpgrp());
    assert_true(stat.start_ticks > 0);
    assert_string_equal(stat.wait_channel, "");
}

/* Younger than its parent, or as old; dead until it is waited for; gone. */
static void test_child(void **state)
{
    (void)state;
    struct procstat parent;
    struct procstat child;
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(procstat_read(&parent, getpid()));
    assert_true(procstat_read(&child, pid));
    assert_int_equal(child.state, 'Z');
    assert_true(child.start_ticks >= parent.start_ticks);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(procstat_read(&child, pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
