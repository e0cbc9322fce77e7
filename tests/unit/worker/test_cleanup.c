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

#include "worker/cleanup.h"

static char job[32];

/* A process with this environment that has been executed when this returns,
 * and then does this. */
static pid_t start_script(char *const *environment, char *script)
{
    int ready[2];
    char byte;
    char shell[] = "/bin/sh";
    char flag[] = "-c";
    char *arguments[] = {shell, flag, script, script, NULL};
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], 1);
        close(ready[0]);
        close(ready[1]);
        execve(shell, arguments, environment);
        _exit(127);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static pid_t start(char *const *environment)
{
    char script[] = "echo; exec sleep 1000";
    return start_script(environment, script);
}

static pid_t start_marked(const char *text)
{
    char marker[256];
    char path[] = "PATH=/usr/bin:/bin";
    snprintf(marker, sizeof(marker), "GPULAUNCH_MARKER=%s", text);
    char *environment[] = {path, marker, NULL};
    return start(environment);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct cleanup of_job(void)
{
    struct cleanup c = {.generation = 3, .first_rank = 8, .rank_count = 4};
    snprintf(c.job_id, sizeof(c.job_id), "%s", job);
    return c;
}

static pid_t start_rank(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
static pid_t start_rank(const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return start_marked(text);
}

/* This job, this generation, a rank of this node: all else is not ours. */
static void test_whose(void **state)
{
    (void)state;
    const char *suffixes[] = {"/3/7",  "/3/12",  "/2/8",
                              "/33/8", "/3/8x",  "/3/",
                              "/3/-8", "/3/8/1", "x/3/8",
                              "",      "/3",     "/3/18446744073709551625"};
    struct cleanup c = of_job();
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        pid_t pid = start_rank("%s%s", job, suffixes[i]);
        assert_int_equal(cleanup_look(&c, SIGKILL), 0);
        assert_int_equal(kill(pid, 0), 0);
        end(pid);
    }
    pid_t prefixed = start_rank("x%s/3/8", job);
    assert_int_equal(cleanup_look(&c, SIGKILL), 0);
    end(prefixed);
    pid_t first = start_rank("%s/3/8", job);
    pid_t last = start_rank("%s/3/11", job);
    assert_int_equal(cleanup_look(&c, 0), 2);
    end(first);
    assert_int_equal(cleanup_look(&c, 0), 1);
    end(last);
    assert_int_equal(cleanup_look(&c, 0), 0);
}

/* Somebody's variable that only looks like it; the marker anywhere, behind a
 * large environment too. */
static void test_where(void **state)
{
    (void)state;
    enum { LARGE = 100000 };
    struct cleanup c = of_job();
    char *large = malloc(LARGE);
    char marker[96];
    char other[96];
    char nearly[96];
    assert_non_null(large);
    memset(large, 'x', LARGE);
    large[1] = '=';
    large[LARGE - 1] = 0;
    snprintf(marker, sizeof(marker), "GPULAUNCH_MARKER=%s/3/8", job);
    snprintf(other, sizeof(other), "X=GPULAUNCH_MARKER=%s/3/8", job);
    snprintf(nearly, sizeof(nearly), "GPULAUNCH_MARKER_=%s/3/8", job);
    char path[] = "PATH=/usr/bin:/bin";
    char *without[] = {path, other, nearly, NULL};
    char *with[] = {path, large, large, marker, NULL};
    pid_t pids[] = {start(without), start(with)};
    assert_int_equal(cleanup_look(&c, 0), 1);
    for (int i = 0; i < 2; i++) {
        end(pids[i]);
    }
    free(large);
}

/* In the middle of an exec a process shows no environment; it has one. */
static void test_exec(void **state)
{
    (void)state;
    enum { LOOKS = 300 };
    struct cleanup c = of_job();
    char path[] = "PATH=/usr/bin:/bin";
    char marker[96];
    char script[] = "echo; exec /bin/sh -c \"$0\" \"$0\" >/dev/null";
    snprintf(marker, sizeof(marker), "GPULAUNCH_MARKER=%s/3/8", job);
    char *environment[] = {path, marker, NULL};
    pid_t pid = start_script(environment, script);
    for (int i = 0; i < LOOKS; i++) {
        assert_int_equal(cleanup_look(&c, 0), 1);
    }
    end(pid);
}

/* Nothing that was there before the keeper. */
static void test_since(void **state)
{
    (void)state;
    pid_t pid = start_rank("%s/3/8", job);
    struct cleanup c = of_job();
    c.since_ticks = cleanup_start_ticks(pid);
    assert_true(c.since_ticks > 0);
    assert_int_equal(cleanup_look(&c, 0), 1);
    c.since_ticks++;
    assert_int_equal(cleanup_look(&c, SIGKILL), 0);
    end(pid);
}

/* All are killed, also those that ignore what can be ignored; none left is
 * told as 0. */
static void test_run(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    pid_t pids[COUNT];
    struct cleanup c = of_job();
    for (int i = 0; i < COUNT; i++) {
        pids[i] = start_rank("%s/3/9", job);
    }
    assert_int_equal(cleanup_run(&c, 20000), 0);
    for (int i = 0; i < COUNT; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose), cmocka_unit_test(test_where),
        cmocka_unit_test(test_exec),  cmocka_unit_test(test_since),
        cmocka_unit_test(test_run),
    };
    snprintf(job, sizeof(job), "cleanup-%d", getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
