/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program whose agent is killed: the next one takes over what
 * the keeper holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "desk.h"

static void read_file(char *text, size_t bytes, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, bytes - 1) : 0;
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0) {
        close(fd);
    }
}

/* The child of the keeper that has named itself so; 0: there is none now. */
static pid_t find_agent(const struct desk *d)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", d->worker,
             d->worker);
    read_file(text, sizeof(text), path);
    for (char *at = text, *end; *at != 0; at = end + 1) {
        char name[32];
        long pid = strtol(at, &end, 10);
        if (end == at) {
            break;
        }
        snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
        read_file(name, sizeof(name), path);
        if (strcmp(name, "gpulaunch-agent\n") == 0) {
            return (pid_t)pid;
        }
    }
    return 0;
}

static void kill_agent(struct desk *d)
{
    pid_t agent = find_agent(d);
    assert_true(agent > 0);
    assert_int_equal(kill(agent, SIGKILL), 0);
}

static bool has_output(const struct desk *d)
{
    return d->streams[0].used > 0;
}

/* The end of stderr of a worker says that its agent was killed, at once and
 * how often, and no more than that. */
static void expect_complaints(const char *text, int count)
{
    static const char complaint[] =
        "gpulaunch-worker: node-0: its agent was ended by signal 9 (SIGKILL)";
    char expected[512];
    int n = snprintf(expected, sizeof(expected), "%s\n", complaint);
    if (count > 1) {
        snprintf(expected + n, sizeof(expected) - (size_t)n, "%s, %d times\n",
                 complaint, count);
    }
    assert_string_equal(text, expected);
}

static void read_log(struct desk *d, const char *name, char *text, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/test-job/attempt-1/%s", d->log_dir, name);
    read_file(text, bytes, path);
}

/* The rank goes on, its log is whole, its end is told by the new agent. */
static void test_goes_on(void **state)
{
    (void)state;
    static const char script[] =
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done; "
        "exit 3";
    struct desk d;
    char text[512];
    struct desk_exit end = {.rank = 0};
    desk_open(&d);
    desk_prepare(&d, 1, script);
    desk_launch(&d, 1);
    desk_until(&d, has_output);
    for (uint32_t i = 1; i <= 4; i++) {
        kill_agent(&d);
        desk_attach(&d, i, script);
        desk_launch(&d, 1);
    }
    desk_expect_exits(&d, 1, &end);
    assert_int_equal(end.code, 3);
    desk_expect_idle(&d, 0);
    assert_non_null(strstr(gpul_buf_text(&d.notices),
                           "the agent of this node was restarted (agent 4); "
                           "the console may lack some lines, the log files "
                           "are complete"));
    static char log[200000];
    read_log(&d, "rank-0.out", log, sizeof(log));
    char *at = log;
    for (long i = 1; i <= 20000; i++) {
        assert_int_equal(strtol(at, &at, 10), i);
        assert_int_equal(*at++, '\n');
    }
    desk_finish(&d, false);
    char path[256];
    snprintf(path, sizeof(path), "%s/test-job", d.log_dir);
    assert_int_equal(access(path, F_OK), -1); /* all of it, removed */
    desk_close(&d, 0, text);
    expect_complaints(text, 4);
}

static void await_end_of(const char *text)
{
    uint64_t deadline = gpul_clock_ms() + DESK_PATIENCE_MS;
    while (desk_sees_process(text)) {
        assert_true(gpul_clock_ms() < deadline);
    }
}

/* Ranks end before the next agent is let in: nothing of it is lost. */
static void test_ended_meanwhile(void **state)
{
    (void)state;
    struct desk d;
    struct desk_exit end = {.rank = 1};
    char text[512], script[300], go[160];
    desk_open(&d);
    snprintf(go, sizeof(go), "%s/go", d.log_dir);
    snprintf(script, sizeof(script),
             "echo out; echo err >&2; while [ ! -e %s ]; do sleep 0.02; done; "
             "echo late; exit $((RANK + 4))",
             go);
    desk_prepare(&d, 2, script);
    desk_launch(&d, 1);
    desk_until(&d, has_output);
    kill_agent(&d);
    close(open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    await_end_of(go);
    desk_attach(&d, 1, script);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 2, &end);
    assert_int_equal(end.code, 5);
    desk_expect_idle(&d, 0);
    for (int rank = 0; rank < 2; rank++) {
        char name[32];
        snprintf(name, sizeof(name), "rank-%d.out", rank);
        read_log(&d, name, text, sizeof(text));
        assert_string_equal(text, "out\nlate\n");
        snprintf(name, sizeof(name), "rank-%d.err", rank);
        read_log(&d, name, text, sizeof(text));
        assert_string_equal(text, "err\n");
    }
    desk_finish(&d, false);
    desk_close(&d, 0, text);
    expect_complaints(text, 1);
}

/* A stop that the dead agent had begun ends what it was to end. */
static void test_stop_goes_on(void **state)
{
    (void)state;
    static const char script[] = "trap '' TERM; echo up; exec sleep 981.5";
    struct desk d;
    char text[512];
    struct desk_exit end = {.rank = 0};
    desk_open(&d);
    desk_prepare(&d, 1, script);
    desk_launch(&d, 1);
    desk_until(&d, has_output);
    desk_stop(&d, SIGTERM, 60000);
    desk_await_heartbeats(&d, 2);
    kill_agent(&d);
    desk_attach(&d, 1, script);
    desk_launch(&d, 1);
    desk_expect_exits(&d, 1, &end); /* the job's grace is 300 ms */
    assert_int_equal(end.signal, SIGKILL);
    desk_expect_idle(&d, 0);
    desk_finish(&d, false);
    desk_close(&d, 0, text);
    expect_complaints(text, 1);
}

/* Nobody to attach to: the ranks end with the orphan time-out, and the worker
 * says so. */
static void use_short_orphan_timeout(Gpul__Job *job)
{
    job->orphan_timeout_ms = 700;
}

static void test_orphaned(void **state)
{
    (void)state;
    struct desk d;
    char text[512], nap[32], script[64];
    snprintf(nap, sizeof(nap), "980.%ds", (int)getpid()); /* nobody else's */
    snprintf(script, sizeof(script), "echo up; exec sleep %s", nap);
    desk_edit_job = use_short_orphan_timeout;
    desk_open(&d);
    desk_prepare(&d, 1, script);
    desk_launch(&d, 1);
    desk_until(&d, has_output);
    close(d.listener);
    kill_agent(&d);
    close(d.fd);
    d.fd = -1;
    d.listener = open("/dev/null", O_RDONLY | O_CLOEXEC);
    desk_close(&d, 75, text);
    desk_edit_job = NULL;
    assert_false(desk_sees_process(nap));
}

/* The keeper is killed: the coordinator hears that the node will not be back,
 * and that nothing of it is left. */
static void test_keeper_killed(void **state)
{
    (void)state;
    struct desk d;
    char nap[32], script[128];
    snprintf(nap, sizeof(nap), "979.%ds", (int)getpid()); /* nobody else's */
    snprintf(script, sizeof(script),
             "setsid sleep %s & echo up; trap '' TERM; wait; sleep %s", nap,
             nap);
    desk_open(&d);
    desk_prepare(&d, 2, script);
    desk_launch(&d, 1);
    desk_until(&d, has_output);
    kill(d.worker, SIGKILL);
    Gpul__Frame *leave = desk_expect(&d, GPUL__FRAME__BODY_LEAVE);
    assert_string_equal(
        leave->leave->text,
        "the keeper of this node ended, and its ranks were killed");
    assert_true(leave->leave->is_clean);
    gpul_message_release(leave);
    assert_false(desk_sees_process(nap));
    desk_reap(&d, SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_ended_meanwhile),
        cmocka_unit_test(test_stop_goes_on),
        cmocka_unit_test(test_orphaned),
        cmocka_unit_test(test_keeper_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
