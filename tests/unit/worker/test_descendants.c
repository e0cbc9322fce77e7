/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/descendants.h"
#include "worker/procstat.h"

/* A child in a session of its own that waits for a signal. It has told that
 * it is ready before this returns. */
static pid_t start_child(int ignored_signal)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (ignored_signal != 0) {
            signal(ignored_signal, SIG_IGN);
        }
        _exit(write(ready[1], &byte, 1) == 1 && pause());
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void expect_signal(pid_t pid, int signal)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
}

/* A stop reaches every child once, and with SIGKILL whoever comes later. */
static void test_stop(void **state)
{
    (void)state;
    struct descendants d = {0};
    descendants_sweep(&d); /* no stop is under way: nobody is hurt */
    pid_t meek = start_child(0);
    pid_t stubborn = start_child(SIGTERM);
    descendants_stop(&d, SIGTERM);
    expect_signal(meek, SIGTERM);
    pid_t late = start_child(0);
    descendants_sweep(&d);
    expect_signal(late, SIGTERM);
    descendants_stop(&d, SIGKILL);
    expect_signal(stubborn, SIGKILL);
    late = start_child(SIGTERM);
    descendants_sweep(&d);
    expect_signal(late, SIGKILL);
}

/* ---- stopped ones -------------------------------------------------------- */

/* Which signals a process has taken, a letter each, until SIGUSR1. */
static void note_signals(int out)
{
    sigset_t set;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCONT);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int number = 0;
    if (write(out, "r", 1) != 1) { /* ready */
        _exit(1);
    }
    while (number != SIGUSR1) {
        number = sigwaitinfo(&set, NULL);
        const char *letter = number == SIGTERM   ? "T"
                             : number == SIGCONT ? "C"
                                                 : "U";
        if (number > 0 && write(out, letter, 1) != 1) {
            _exit(1);
        }
    }
    _exit(0);
}

struct noter {
    pid_t pid; /* a child of ours, or of one that only waits for it */
    pid_t parent;
    int out;
};

static void expect_letter(const struct noter *n, char letter)
{
    char got = 0;
    assert_int_equal(read(n->out, &got, 1), 1);
    assert_int_equal(got, letter);
}

static void start_noter(struct noter *n, bool has_parent)
{
    int out[2];
    int pids[2];
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(pids), 0);
    fflush(NULL);
    n->parent = fork();
    if (n->parent == 0) {
        setsid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_IGN);
        signal(SIGUSR1, SIG_IGN);
        pid_t pid = has_parent ? fork() : 0;
        if (pid == 0) {
            pid = getpid();
            if (write(pids[1], &pid, sizeof(pid)) != sizeof(pid)) {
                _exit(1);
            }
            note_signals(out[1]);
        }
        _exit(waitpid(pid, NULL, 0) != pid);
    }
    assert_true(n->parent > 0);
    assert_int_equal(read(pids[0], &n->pid, sizeof(n->pid)), sizeof(n->pid));
    n->out = out[0];
    close(out[1]);
    close(pids[0]);
    close(pids[1]);
    expect_letter(n, 'r');
}

static void end_noter(struct noter *n)
{
    int status;
    kill(n->pid, SIGUSR1);
    expect_letter(n, 'U');
    assert_int_equal(waitpid(n->parent, &status, 0), n->parent);
    assert_int_equal(status, 0);
    close(n->out);
}

/* A process that is stopped is so once its parent can see it in /proc. */
static void stop_noter(const struct noter *n)
{
    struct procstat stat;
    kill(n->pid, SIGSTOP);
    do {
        assert_true(procstat_read(&stat, n->pid));
    } while (stat.state != 'T');
}

/* Whoever is stopped is continued to take the signal of a stop, deep below a
 * child too; no other process sees a SIGCONT. */
static void test_stopped(void **state)
{
    (void)state;
    struct descendants d = {0};
    struct noter runs, stands, deep, spared;
    start_noter(&runs, true);
    start_noter(&stands, false);
    start_noter(&deep, true);
    start_noter(&spared, true);
    stop_noter(&stands);
    stop_noter(&deep);
    stop_noter(&spared);
    d.spared[0] = spared.parent;
    descendants_stop(&d, SIGTERM);
    struct noter *all[] = {&runs, &stands, &deep};
    expect_letter(&runs, 'T');
    expect_letter(&stands, 'T');
    expect_letter(&stands, 'C');
    expect_letter(&deep, 'T');
    expect_letter(&deep, 'C');
    descendants_sweep(&d); /* nobody is told twice */
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        end_noter(all[i]);
    }
    struct procstat stat;
    assert_true(procstat_read(&stat, spared.pid));
    assert_int_equal(stat.state, 'T');
    kill(spared.pid, SIGCONT);
    expect_letter(&spared, 'C');
    end_noter(&spared);
}

static void note_text(void *arg, const char *text)
{
    snprintf(arg, DESCENDANTS_TEXT_BYTES, "%s", text);
}

/* Who is spared is not signalled, not counted and not listed. */
static void test_spared(void **state)
{
    (void)state;
    pid_t spared = start_child(0);
    struct descendants d = {.spared = {spared}};
    char text[DESCENDANTS_TEXT_BYTES] = "none";
    char expected[64];
    assert_false(descendants_remain(&d));
    descendants_describe(&d, note_text, text);
    assert_string_equal(text, "none");
    pid_t child = start_child(0);
    assert_true(descendants_remain(&d));
    descendants_describe(&d, note_text, text);
    snprintf(expected, sizeof(expected), "%d test_descendant (", child);
    assert_memory_equal(text, expected, strlen(expected));
    descendants_stop(&d, SIGKILL);
    expect_signal(child, SIGKILL);
    assert_false(descendants_remain(&d));
    assert_int_equal(kill(spared, 0), 0);
    kill(spared, SIGTERM);
    expect_signal(spared, SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_spared),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
