/* SPDX-License-Identifier: Apache-2.0
 *
 * Who dies, what happens: keeper, agent, both; and how a keeper ends when
 * nobody tells it to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/keeperstage.h"
#include "worker/keeping.h"

enum {
    LONG_MS = 600000,
    ORPHAN_MS = 2000, /* another agent has started by then */
    PAUSE_MS = 2,
};

static struct keeperstage s;
static struct keeper_mail mail;

static void open_stage(void)
{
    stage_init(&s);
    stage_open(&s);
    stage_take_agent(&s, &mail);
}

/* A rank, and below it one that has left its session and ignores what it
 * can: two processes with the marker, at least. */
static void start_family(uint32_t slot)
{
    char line[64];
    int out;
    stage_start(&s, slot,
                "(setsid sh -c 'trap \"\" TERM HUP; echo up; "
                "while :; do sleep 1; done' &); "
                "while :; do sleep 1; done",
                &out);
    stage_read_line(out, line, sizeof(line));
    assert_string_equal(line, "up");
    close(out);
    stage_expect(&s, &mail, KEEPER_STARTED);
}

/* The undertaker is no child of ours, and does nothing that can be seen until
 * it has ended: its leaf is removed then. */
static void await_no_cgroup(pid_t keeper)
{
    char paths[2][96];
    uint64_t end_ms = gpul_clock_ms() + STAGE_WAIT_MS;
    snprintf(paths[0], sizeof(paths[0]), "/sys/fs/cgroup/gpulaunch-%d-1",
             keeper);
    snprintf(paths[1], sizeof(paths[1]),
             "/sys/fs/cgroup/unified/gpulaunch-%d-1", keeper);
    while (access(paths[0], F_OK) == 0 || access(paths[1], F_OK) == 0) {
        assert_true(gpul_clock_ms() < end_ms);
        poll(NULL, 0, PAUSE_MS);
    }
}

/* Its agent is nobody's child that we know, and ends with the stage. */
static void expect_killed(void)
{
    int status = stage_wait(&s);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The keeper: its ranks at once, all else by the undertaker; the agent sees
 * the end. */
static void test_keeper_killed(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 2, LONG_MS);
    start_family(0);
    start_family(1);
    assert_true(stage_count(&s) >= 4);
    assert_int_equal(kill(s.keeper, SIGKILL), 0);
    expect_killed();
    stage_await_count(&s, 0);
    await_no_cgroup(s.keeper);
    struct pollfd p = {.fd = s.socket, .events = POLLIN};
    assert_int_equal(poll(&p, 1, STAGE_WAIT_MS), 1);
    assert_int_equal(keeperwire_receive(s.socket, &mail), EPIPE);
    close(s.socket);
}

static pid_t *forgetful; /* shared with the keeper's forks */

static void note_forgetful(void *arg)
{
    (void)arg;
    *(volatile pid_t *)forgetful = getpid();
}

/* Who waits for the keeper's death has no use for the node's key. */
static void test_undertaker_forgets(void **state)
{
    (void)state;
    uint64_t end_ms = gpul_clock_ms() + STAGE_WAIT_MS;
    forgetful = mmap(NULL, sizeof(*forgetful), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(forgetful != MAP_FAILED);
    stage_init(&s);
    s.forget = note_forgetful;
    stage_open(&s);
    stage_take_agent(&s, &mail);
    assert_int_equal(*forgetful, 0); /* an agent keeps it */
    stage_begin(&s, 1, LONG_MS);
    while (*(volatile pid_t *)forgetful == 0) {
        assert_true(gpul_clock_ms() < end_ms);
        poll(NULL, 0, PAUSE_MS);
    }
    assert_int_not_equal(*forgetful, s.keeper);
    assert_int_not_equal(*forgetful, s.agent);
    stage_leave(&s, 0);
    munmap(forgetful, sizeof(*forgetful));
}

/* Both, and with them whoever is in their process group. */
static void test_group_killed(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    start_family(0);
    assert_int_equal(kill(-s.keeper, SIGKILL), 0);
    expect_killed();
    stage_await_count(&s, 0);
    await_no_cgroup(s.keeper);
    close(s.socket);
}

/* The pid of the keeper's child of this name; 0: none. */
static pid_t find_child(const char *name)
{
    pid_t found = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[64];
        char text[256] = "";
        char expected[64];
        snprintf(path, sizeof(path), "/proc/%d/stat", atoi(e->d_name));
        FILE *f = fopen(path, "re");
        if (f != NULL) {
            if (fgets(text, sizeof(text), f) == NULL) {
                text[0] = 0; /* it has just ended */
            }
            fclose(f);
        }
        snprintf(expected, sizeof(expected), "(%s) ", name);
        const char *at = strstr(text, expected);
        if (at != NULL && atoi(at + strlen(expected) + 2) == s.keeper) {
            found = atoi(text);
        }
    }
    closedir(proc);
    return found;
}

/* The one whose name is set, which a fork is a moment after its start; not
 * `other`, which may be there for a moment after its death. */
static pid_t await_undertaker(pid_t other)
{
    uint64_t end_ms = gpul_clock_ms() + STAGE_WAIT_MS;
    pid_t found = find_child("gpulaunch-under");
    while (found == 0 || found == other) {
        assert_true(gpul_clock_ms() < end_ms);
        poll(NULL, 0, PAUSE_MS);
        found = find_child("gpulaunch-under");
    }
    return found;
}

/* An undertaker that somebody kills is replaced, and the next one works. */
static void test_undertaker_killed(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    start_family(0);
    pid_t first = await_undertaker(0);
    assert_int_equal(kill(first, SIGTERM), 0); /* it does not mind */
    assert_int_equal(kill(first, SIGKILL), 0);
    await_undertaker(first);
    assert_int_equal(kill(s.keeper, SIGKILL), 0);
    expect_killed();
    stage_await_count(&s, 0);
    await_no_cgroup(s.keeper);
    close(s.socket);
}

static int said; /* the keeper's stderr, where a test reads it */

static void note_what_is_said(void)
{
    dup2(said, STDERR_FILENO);
}

/* Agents that die one after another: the keeper ends, 125. How they did is told
 * once. */
static void test_bad_agents(void **state)
{
    (void)state;
    char text[512] = "";
    stage_init(&s);
    said = memfd_create("said", MFD_CLOEXEC);
    assert_true(said >= 0);
    s.has_bad_agents = true;
    s.in_keeper = note_what_is_said;
    stage_open(&s);
    int status = stage_wait(&s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), KEEPING_EXIT_FAILED);
    assert_true(pread(said, text, sizeof(text) - 1, 0) > 0);
    assert_string_equal(
        text, "gpulaunch-worker: node7: its agent ended with exit code 9\n"
              "gpulaunch-worker: node7: its agent failed five times in a "
              "row\n");
    close(said);
}

/* No agent attaches again: the ranks are stopped, SIGKILL after the grace,
 * and the keeper ends, 75. */
static void test_orphaned(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, ORPHAN_MS);
    start_family(0);
    stage_kill_agent(&s);
    stage_take_agent(&s, &mail);
    assert_int_equal(mail.packet.orphan_ms, ORPHAN_MS);
    int status = stage_wait(&s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), KEEPING_EXIT_LOST);
    assert_int_equal(stage_count(&s), 0);
    close(s.socket);
}

/* A signal is told to the agent; signals that mean nothing hurt nobody. */
static void test_signals(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    start_family(0);
    assert_int_equal(kill(s.keeper, SIGUSR1), 0);
    assert_int_equal(kill(s.keeper, SIGPIPE), 0);
    assert_int_equal(kill(s.keeper, SIGALRM), 0);
    assert_int_equal(kill(s.keeper, SIGTERM), 0);
    stage_expect(&s, &mail, KEEPER_SIGNAL);
    assert_int_equal(mail.packet.signal, SIGTERM);
    /* An agent that dies of it is not replaced. */
    stage_kill_agent(&s);
    int status = stage_wait(&s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    assert_int_equal(stage_count(&s), 0);
}

/* An agent that closes its end and lives is of no use: it is ended. */
static void test_agent_goes_silent(void **state)
{
    (void)state;
    open_stage();
    pid_t silent = s.agent;
    close(s.socket);
    stage_take_agent(&s, &mail);
    assert_int_equal(mail.packet.agent, 1);
    assert_int_not_equal(s.agent, silent);
    stage_leave(&s, 0);
}

/* An agent that leaves with ranks running takes them with it. */
static void test_leave_with_ranks(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    start_family(0);
    stage_leave(&s, 75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeper_killed),
        cmocka_unit_test(test_undertaker_forgets),
        cmocka_unit_test(test_group_killed),
        cmocka_unit_test(test_undertaker_killed),
        cmocka_unit_test(test_bad_agents),
        cmocka_unit_test(test_orphaned),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_agent_goes_silent),
        cmocka_unit_test(test_leave_with_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
