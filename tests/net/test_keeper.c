/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper as a process: what it starts, tells, keeps and ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/keeperstage.h"
#include "worker/keeping.h"

enum { LONG_MS = 600000 };

static struct keeperstage s;
static struct keeper_mail mail;

static void open_stage(void)
{
    stage_init(&s);
    stage_open(&s);
    stage_take_agent(&s, &mail);
    assert_int_equal(mail.packet.following, 0);
}

/* Start, tell, end, and an exit code for the agent to choose. */
static void test_run(void **state)
{
    (void)state;
    char line[64];
    int out;
    open_stage();
    stage_begin(&s, 2, LONG_MS);
    stage_start(&s, 0, "echo hello; exit 3", &out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    assert_true(mail.packet.pid > 0);
    assert_true(mail.packet.at_ms > 0);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_int_equal(mail.packet.slot, 0);
    assert_int_equal(WEXITSTATUS(mail.packet.status), 3);
    assert_true(mail.packet.rss_bytes > 0);
    assert_false(mail.packet.is_out_of_memory);
    stage_read_line(out, line, sizeof(line));
    assert_string_equal(line, "hello");
    close(out);
    stage_start(&s, 1, "kill -9 $$", NULL);
    stage_expect(&s, &mail, KEEPER_STARTED);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_int_equal(mail.packet.slot, 1);
    assert_int_equal(WTERMSIG(mail.packet.status), SIGKILL);
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 7);
}

/* What cannot be executed, and what is no start at all. */
static void test_exec_errors(void **state)
{
    (void)state;
    char missing[] = "/no/such/program";
    char plain[] = "/etc/passwd";
    char shell[] = "/bin/sh";
    char *arguments[] = {shell, NULL};
    char *environment[] = {NULL};
    char folder[] = "/no/such/folder";
    const struct {
        char *path;
        char *folder;
        int exec_errno;
        const char *text;
    } rows[] = {
        {missing, NULL, ENOENT,
         "cannot execute /no/such/program: No such file or directory"},
        {plain, NULL, EACCES, "cannot execute /etc/passwd: Permission denied"},
        {shell, folder, ENOENT,
         "cannot enter directory /no/such/folder: No such file or directory"},
    };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    open_stage();
    size_t fds = stage_open_fds(s.keeper);
    stage_begin(&s, ROWS + 1, LONG_MS);
    for (uint32_t i = 0; i < ROWS; i++) {
        struct startspec spec = {.path = rows[i].path,
                                 .arguments = arguments,
                                 .environment = environment,
                                 .working_directory = rows[i].folder};
        stage_start_spec(&s, i, &spec);
        stage_expect(&s, &mail, KEEPER_STARTED);
        assert_int_equal(mail.packet.slot, i);
        assert_int_equal(mail.packet.pid, 0);
        assert_int_equal(mail.packet.exec_errno, rows[i].exec_errno);
        assert_string_equal(mail.packet.text, rows[i].text);
    }
    struct keeper_packet empty = {.type = KEEPER_START, .slot = ROWS};
    stage_send(&s, &empty);
    stage_expect(&s, &mail, KEEPER_STARTED);
    assert_string_equal(mail.packet.text, "a start with 0 descriptors");
    stage_expect(&s, &mail, KEEPER_GONE);
    assert_true(stage_open_fds(s.keeper) <= fds);
    stage_leave(&s, 126);
}

/* A rank has what it is to have and no descriptor more; nor has the next
 * agent. */
static void test_descriptors(void **state)
{
    (void)state;
    char line[128];
    int out;
    open_stage();
    size_t agent_fds = stage_open_fds(s.agent);
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "ls -m /proc/$$/fd; exec sleep 1000", &out);
    stage_read_line(out, line, sizeof(line));
    assert_string_equal(line, "0, 1, 2");
    close(out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    size_t keeper_fds = stage_open_fds(s.keeper);
    for (int i = 0; i < 3; i++) {
        stage_kill_agent(&s);
        stage_take_agent(&s, &mail);
        stage_expect(&s, &mail, KEEPER_RANK);
        assert_int_equal(mail.fd_count, 2);
        keeperwire_close_fds(&mail);
        stage_say(&s, KEEPER_ATTACHED, 0);
        assert_int_equal(stage_open_fds(s.agent), agent_fds);
        assert_int_equal(stage_open_fds(s.keeper), keeper_fds);
    }
    stage_say(&s, KEEPER_STOP, SIGKILL);
    stage_expect(&s, &mail, KEEPER_EXIT);
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 0);
}

/* Agents are killed a hundred times; the rank counts on, its output is whole,
 * and each new agent is given it. */
static void test_agents_killed(void **state)
{
    (void)state;
    enum { TIMES = 100 };
    char line[64];
    int out;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "n=0; while :; do n=$((n+1)); echo $n; done", &out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    pid_t pid = mail.packet.pid;
    unsigned long expected = 1;
    for (uint32_t i = 0; i < TIMES; i++) {
        for (int lines = 0; lines < 10; lines++, expected++) {
            stage_read_line(out, line, sizeof(line));
            assert_int_equal(strtoul(line, NULL, 10), expected);
        }
        close(out);
        stage_kill_agent(&s);
        stage_take_agent(&s, &mail);
        assert_int_equal(mail.packet.agent, i + 1);
        assert_int_equal(mail.packet.following, 1);
        stage_expect(&s, &mail, KEEPER_RANK);
        assert_int_equal(mail.packet.pid, pid);
        assert_int_equal(mail.packet.kept_fds, 2);
        out = mail.fds[0];
        close(mail.fds[1]);
        stage_say(&s, KEEPER_ATTACHED, 0);
    }
    close(out);
    stage_say(&s, KEEPER_STOP, SIGTERM);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_int_equal(WTERMSIG(mail.packet.status), SIGTERM);
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 0);
}

/* What happens while there is no agent is told to the next, and again to the
 * one after it. */
static void test_exits_replayed(void **state)
{
    (void)state;
    int out;
    open_stage();
    stage_begin(&s, 2, LONG_MS);
    stage_start(&s, 0, "exit 5", NULL);
    stage_start(&s, 1, "read line; exit 6", &out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    close(out);
    for (uint32_t agent = 1; agent < 4; agent++) {
        stage_kill_agent(&s);
        stage_take_agent(&s, &mail);
        /* Whatever was known already: an agent may be quicker than a rank. */
        uint32_t exits = 0;
        while (exits < 2) {
            assert_int_equal(
                poll(&(struct pollfd){s.socket, POLLIN, 0}, 1, STAGE_WAIT_MS),
                1);
            assert_int_equal(keeperwire_receive(s.socket, &mail), 0);
            keeperwire_close_fds(&mail);
            if (mail.packet.type == KEEPER_EXIT) {
                exits++;
                assert_int_equal(WEXITSTATUS(mail.packet.status),
                                 5 + mail.packet.slot);
            } else {
                assert_int_equal(mail.packet.type, KEEPER_RANK);
            }
        }
        stage_expect(&s, &mail, KEEPER_GONE);
        stage_say(&s, KEEPER_ATTACHED, 0);
    }
    stage_leave(&s, 5);
}

/* An agent that does not read holds nothing up, and misses nothing. */
static void test_slow_reader(void **state)
{
    (void)state;
    enum { RANKS = 400 };
    char line[64];
    int out;
    open_stage();
    stage_begin(&s, RANKS, LONG_MS);
    for (uint32_t i = 0; i + 1 < RANKS; i++) {
        stage_start(&s, i, "exit 1", NULL);
    }
    /* The last one runs, so all were started. */
    stage_start(&s, RANKS - 1, "echo up; exit 1", &out);
    stage_read_line(out, line, sizeof(line));
    assert_string_equal(line, "up");
    close(out);
    uint32_t started = 0;
    uint32_t ended = 0;
    while (started + ended < 2 * RANKS) {
        assert_int_equal(
            poll(&(struct pollfd){s.socket, POLLIN, 0}, 1, STAGE_WAIT_MS), 1);
        assert_int_equal(keeperwire_receive(s.socket, &mail), 0);
        started += mail.packet.type == KEEPER_STARTED;
        ended += mail.packet.type == KEEPER_EXIT;
    }
    assert_int_equal(ended, RANKS);
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 1);
}

/* PASS reaches ranks and stops nothing. */
static void test_pass(void **state)
{
    (void)state;
    char line[64];
    int out;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0,
                "trap 'echo got' USR1; echo up; while :; do read x; done "
                "<&2 2>/dev/null || while :; do sleep 0.01; done",
                &out);
    stage_read_line(out, line, sizeof(line));
    stage_say(&s, KEEPER_PASS, SIGUSR1);
    stage_read_line(out, line, sizeof(line));
    assert_string_equal(line, "got");
    close(out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    stage_say(&s, KEEPER_STOP, SIGKILL);
    stage_expect(&s, &mail, KEEPER_EXIT);
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 0);
}

/* A rank that ignores SIGTERM, forks twice into a session of its own that
 * does too, and holds stdout open: gone soon after SIGKILL. */
static void test_stubborn(void **state)
{
    (void)state;
    char line[64];
    int out;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0,
                "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo up; "
                "while :; do sleep 1; done' &); while :; do sleep 1; done",
                &out);
    stage_read_line(out, line, sizeof(line));
    close(out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    stage_say(&s, KEEPER_STOP, SIGTERM);
    stage_say(&s, KEEPER_STOP, SIGKILL);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_int_equal(WTERMSIG(mail.packet.status), SIGKILL);
    stage_expect(&s, &mail, KEEPER_GONE);
    assert_int_equal(stage_count(&s), 0);
    stage_leave(&s, 0);
}

/* What a rank leaves behind outlives it until the agent stops it. */
static void test_left_behind(void **state)
{
    (void)state;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "(setsid sleep 1000 &)", NULL);
    stage_expect(&s, &mail, KEEPER_STARTED);
    stage_expect(&s, &mail, KEEPER_EXIT);
    assert_int_equal(mail.packet.status, 0);
    stage_await_count(&s, 1);
    stage_say(&s, KEEPER_STOP, SIGTERM);
    stage_expect(&s, &mail, KEEPER_GONE);
    assert_int_equal(stage_count(&s), 0);
    stage_leave(&s, 0);
}

/* ABANDON says who is left, by pid, name and state. */
static void test_abandon(void **state)
{
    (void)state;
    char line[64];
    char name[32];
    int out;
    open_stage();
    stage_begin(&s, 1, LONG_MS);
    stage_start(&s, 0, "trap '' TERM; echo up; while :; do sleep 1; done",
                &out);
    stage_read_line(out, line, sizeof(line));
    close(out);
    stage_expect(&s, &mail, KEEPER_STARTED);
    snprintf(name, sizeof(name), "%d sh (", mail.packet.pid);
    stage_say(&s, KEEPER_STOP, SIGTERM);
    stage_say(&s, KEEPER_ABANDON, 0);
    stage_expect(&s, &mail, KEEPER_UNCLEAN);
    assert_memory_equal(mail.packet.text, name, strlen(name));
    stage_expect(&s, &mail, KEEPER_GONE);
    stage_leave(&s, 75); /* which ends it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_exec_errors),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_agents_killed),
        cmocka_unit_test(test_exits_replayed),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_stubborn),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_abandon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
