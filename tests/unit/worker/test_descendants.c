/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/descendants.h"

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

/* What would not die is named by pid and program. */
static void test_list(void **state)
{
    (void)state;
    struct gpul_buf out;
    char expected[64];
    gpul_buf_init(&out, 1000);
    pid_t child = start_child(0);
    assert_int_equal(descendants_list(&out, 5), 1);
    snprintf(expected, sizeof(expected), "%d test_descendant", child);
    assert_memory_equal(out.data, expected, strlen(expected));
    assert_int_equal(out.data[out.used - 1], 0);
    gpul_buf_release(&out);
    kill(child, SIGKILL);
    expect_signal(child, SIGKILL);
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
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_spared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
