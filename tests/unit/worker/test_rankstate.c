/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of real processes: one that reads, one that is stopped, one that
 * works below a shell, and one that is not there.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/rankstate.h"

static void test_parse(void **state)
{
    (void)state;
    struct rankstate_process p;
    assert_true(rankstate_parse(
        &p,
        "42 (a) R (b)) S 7 1 2 3 4 5 6 7 8 9 100 23 12 13 20 0 17 0 1573651 "
        "2990080 407"));
    assert_int_equal(p.pid, 42);
    assert_int_equal(p.parent, 7);
    assert_int_equal(p.state, 'S');
    assert_int_equal(p.cpu_ticks, 123);
    assert_int_equal(p.threads, 17);
    assert_int_equal(p.start_ticks, 1573651);
    assert_false(rankstate_parse(&p, ""));
    assert_false(rankstate_parse(&p, "42 (cut) S 7 1 2 3"));
    assert_false(rankstate_parse(&p, "42 no brackets S 7 1 2 3"));
}

/* By number, as a look is. */
static void test_descends(void **state)
{
    (void)state;
    struct rankstate_process list[] = {
        {.pid = 1},
        {.pid = 7, .parent = 1},
        {.pid = 8, .parent = 7},
        {.pid = 9, .parent = 8},
        {.pid = 20, .parent = 19}, /* whose parent could not be seen */
        {.pid = 30, .parent = 31}, /* pids that were given anew meanwhile */
        {.pid = 31, .parent = 30},
    };
    const struct rankstate_look look = {list, sizeof(list) / sizeof(list[0])};
    assert_true(rankstate_descends(&look, 9, 7));
    assert_true(rankstate_descends(&look, 9, 9));
    assert_false(rankstate_descends(&look, 7, 9));
    assert_false(rankstate_descends(&look, 20, 7));
    assert_false(rankstate_descends(&look, 40, 7));
    assert_false(rankstate_descends(&look, 31, 7));
    const struct rankstate_look none = {.list = NULL};
    assert_false(rankstate_descends(&none, 9, 9));
}

enum part { READS, STOPS, WORKS };

/* Become a program that has one thread; this one may have a second, of a
 * sanitizer. It ends with this test at the latest. */
static void act(enum part part, int end)
{
    static const char *const commands[] = {
        [READS] = "read -r line",
        [STOPS] = "kill -STOP $$",
        [WORKS] = "while :; do :; done",
    };
    dup2(end, STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", commands[part], NULL);
    _exit(127);
}

/* A process that does this as long as `end` is open; below a child of ours
 * that waits for it, if it is to be so. */
static pid_t start(enum part part, int end, int keeper, bool is_below)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        return pid;
    }
    close(keeper);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (is_below && (pid = fork()) > 0) {
        waitpid(pid, NULL, 0);
        _exit(0);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    act(part, end);
    return 0;
}

/* Look until `pids[which]` is as it is to be, for at most 10 s. */
static struct rankstate await(const pid_t *pids, size_t which, char letter,
                              uint64_t cpu_ms)
{
    struct rankstate_look before, now;
    struct rankstate states[4] = {{.state = 0}};
    assert_int_equal(rankstate_look_take(&before, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        const struct timespec tick = {.tv_nsec = 10000000};
        assert_int_equal(rankstate_look_take(&now, NULL), 0);
        assert_int_equal(rankstate_read(states, pids, 4, &before, &now, NULL),
                         0);
        rankstate_look_release(&now);
        if (states[which].state == letter && states[which].cpu_ms >= cpu_ms) {
            break;
        }
        nanosleep(&tick, NULL);
    }
    rankstate_look_release(&before);
    assert_int_equal(states[3].state, 0);
    assert_int_equal(states[which].state, letter);
    assert_true(states[which].cpu_ms >= cpu_ms);
    return states[which];
}

static void test_states(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pids[4] = {start(READS, ends[0], ends[1], true),
                           start(STOPS, ends[0], ends[1], false),
                           start(WORKS, ends[0], ends[1], true), 0};
    struct rankstate s = await(pids, 1, 'T', 0);
    assert_int_equal(s.threads, 1);
    s = await(pids, 2, 'R', 50);
    assert_int_equal(s.threads, 1);
    s = await(pids, 0, 'S', 0);
    assert_true(s.cpu_ms < 50);
    /* Some kernels tell of neither. */
    bool is_told = strstr(s.wait_channel, "pipe") != NULL ||
                   strstr(s.wait_channel, "wait") != NULL ||
                   strstr(s.wait_channel, "read") != NULL;
    assert_true(is_told || s.wait_channel[0] == 0);
    close(ends[1]);
    close(ends[0]);
    kill(pids[1], SIGKILL);
    assert_int_equal(waitpid(pids[1], NULL, 0), pids[1]);
    /* The one that works: below the second child of ours. */
    struct rankstate_look now;
    assert_int_equal(rankstate_look_take(&now, NULL), 0);
    for (size_t i = 0; i < now.count; i++) {
        if (now.list[i].parent == pids[2]) {
            kill(now.list[i].pid, SIGKILL);
        }
    }
    rankstate_look_release(&now);
    assert_int_equal(waitpid(pids[2], NULL, 0), pids[2]);
    assert_int_equal(waitpid(pids[0], NULL, 0), pids[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_descends),
        cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
