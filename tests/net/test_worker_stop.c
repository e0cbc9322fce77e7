/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker as a program: every way in which ranks are stopped. Ranks hold
 * a FIFO open, so that the test sees the last of them go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "desk.h"

/* What the ranks of one test keep open. */
struct life {
    char path[200];
    int fd;
};

static void life_make(struct life *l, const struct desk *d)
{
    snprintf(l->path, sizeof(l->path), "%s/life", d->log_dir);
    assert_int_equal(mkfifo(l->path, 0600), 0);
    l->fd = open(l->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(l->fd >= 0);
}

/* Wait until a rank has said "alive" through it. */
static void life_await_start(struct life *l)
{
    char byte;
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, DESK_PATIENCE_MS), 1);
    assert_int_equal(read(l->fd, &byte, 1), 1);
}

/* Wait until nobody holds it any more. */
static void life_await_end(struct life *l)
{
    struct pollfd p = {.fd = l->fd};
    assert_int_equal(poll(&p, 1, DESK_PATIENCE_MS), 1);
    assert_true((p.revents & POLLHUP) != 0);
    close(l->fd);
}

/* A desk whose one rank runs `script` behind an open FIFO; it runs now. */
static void start(struct desk *d, struct life *l, const char *script)
{
    char whole[600];
    desk_open(d);
    life_make(l, d);
    snprintf(whole, sizeof(whole), "exec 9>%s; %s", l->path, script);
    desk_prepare(d, 1, whole);
    desk_launch(d, 1);
    life_await_start(l);
}

/* Stop sends the signal that it was given, and the rank may end in peace. */
static void test_polite(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    struct desk_exit end = {.rank = 0};
    start(&d, &l,
          "trap 'echo bye; exit 5' INT; printf a >&9;"
          "while :; do sleep 0.05; done");
    desk_stop(&d, SIGINT, 60000);
    desk_expect_exits(&d, 1, &end);
    assert_int_equal(end.code, 5);
    desk_expect_idle(&d, 0);
    assert_string_equal(desk_output(&d, 0), "bye\n");
    life_await_end(&l);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* A rank that ignores the signal is killed when the grace is over, not
 * before; how long after is for the machine. */
static void test_stubborn(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    struct desk_exit end = {.rank = 0};
    start(&d, &l, "trap '' TERM; printf a >&9; while :; do sleep 0.05; done");
    uint64_t begin = gpul_clock_ms();
    desk_stop(&d, SIGTERM, 300);
    desk_expect_exits(&d, 1, &end);
    assert_true(gpul_clock_ms() - begin >= 300);
    assert_int_equal(end.signal, SIGKILL);
    desk_expect_idle(&d, 0);
    life_await_end(&l);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* Descendants in sessions of their own, two forks deep, go too: those that
 * take a hint, and those that do not. */
static void test_descendants(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "(setsid sh -c 'setsid sleep 986.5 & printf a >&9; wait' &);"
        "sleep 986.5",
        "(setsid sh -c 'trap \"\" TERM; printf a >&9;"
        "while :; do sleep 0.05; done' &); sleep 986.5",
    };
    for (size_t i = 0; i < 2; i++) {
        struct desk d;
        struct life l;
        struct desk_exit end = {.rank = 0};
        start(&d, &l, scripts[i]);
        desk_stop(&d, SIGTERM, 300);
        desk_expect_exits(&d, 1, &end);
        desk_expect_idle(&d, 0);
        life_await_end(&l);
        desk_finish(&d, false);
        desk_close(&d, 0, NULL);
    }
}

/* A stopped rank is woken to hear the signal, of which it then dies: it is not
 * left to the grace. */
static void test_suspended(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    struct desk_exit end = {.rank = 0};
    start(&d, &l, "printf a >&9; kill -STOP $$");
    desk_stop(&d, SIGTERM, 600000);
    desk_expect_exits(&d, 1, &end);
    assert_int_equal(end.signal, SIGTERM);
    desk_expect_idle(&d, 0);
    life_await_end(&l);
    desk_finish(&d, false);
    desk_close(&d, 0, NULL);
}

/* The worker killed outright takes its ranks with it. */
static void test_worker_killed(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    char rank[32];
    char script[64];
    snprintf(rank, sizeof(rank), "985.%ds", (int)getpid());
    snprintf(script, sizeof(script), "printf a >&9; exec sleep %s", rank);
    start(&d, &l, script);
    kill(d.worker, SIGKILL);
    life_await_end(&l);
    assert_false(desk_sees_process(rank));
    desk_reap(&d, SIGKILL);
}

/* Without the coordinator the ranks are stopped within the job's grace, and
 * the worker says why it left. */
static void test_coordinator_gone(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    char text[512];
    start(&d, &l,
          "trap '' TERM; printf a >&9; while :; do echo y; sleep 0.05; done");
    close(d.fd);
    d.fd = -1;
    life_await_end(&l);
    desk_close(&d, 75, text);
    assert_non_null(strstr(text, "gpulaunch-worker: node-0: lost the "
                                 "coordinator at 127.0.0.1:"));
}

/* The same in the self-test: with the end of its probe the worker leaves, and
 * has no ranks to look after any more. */
static void test_coordinator_gone_in_test(void **state)
{
    (void)state;
    struct desk d;
    char text[512], address[] = "127.0.0.1";
    desk_open(&d);
    desk_prepare(&d, 1, "true");
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = GPUL__SELF_TEST__LEVEL__QUICK;
    start.node_count = 2;
    start.address = address;
    start.deadline_ms = 60000;
    start.backend = GPUL__SELF_TEST__BACKEND__BACKEND_HOST;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    desk_send(&d, &frame);
    gpul_message_release(desk_expect(&d, GPUL__FRAME__BODY_PROBE_LISTENING));
    close(d.fd);
    d.fd = -1;
    desk_close(&d, 75, text);
    assert_non_null(strstr(text, "gpulaunch-worker: node-0: lost the "
                                 "coordinator at 127.0.0.1:"));
}

/* A coordinator that is there but silent is lost when the lease is over. */
static void test_coordinator_silent(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    char text[512];
    uint32_t usual_ms = desk_lease_ms;
    desk_lease_ms = 5000;
    start(&d, &l, "printf a >&9; exec sleep 984.5");
    desk_lease_ms = usual_ms;
    d.acknowledges = false;
    life_await_end(&l);
    desk_close(&d, 75, text);
    assert_non_null(strstr(text, ": no answer for 5 s\n"));
}

/* A signal to the worker stops its ranks; the coordinator hears of it. */
static void test_worker_signaled(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    char text[512];
    struct desk_exit end = {.rank = 0};
    start(&d, &l, "printf a >&9; exec sleep 983.5");
    kill(d.worker, SIGTERM);
    desk_expect_exits(&d, 1, &end);
    assert_int_equal(end.signal, SIGTERM);
    desk_expect_idle(&d, 0);
    life_await_end(&l);
    close(d.fd);
    d.fd = -1;
    desk_close(&d, 128 + SIGTERM, text);
    assert_string_equal(
        text, "gpulaunch-worker: node-0: stopped by signal 15 (SIGTERM)\n");
}

/* Finish ends at once what is still alive, and the output that nobody has
 * asked for does not hold it up. */
static void test_finish_at_once(void **state)
{
    (void)state;
    struct desk d;
    struct life l;
    start(&d, &l, "printf a >&9; trap '' TERM; while :; do echo yes; done");
    d.gives_credit = false;
    desk_finish(&d, false);
    life_await_end(&l);
    desk_close(&d, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_polite),
        cmocka_unit_test(test_stubborn),
        cmocka_unit_test(test_descendants),
        cmocka_unit_test(test_suspended),
        cmocka_unit_test(test_worker_killed),
        cmocka_unit_test(test_coordinator_gone),
        cmocka_unit_test(test_coordinator_gone_in_test),
        cmocka_unit_test(test_coordinator_silent),
        cmocka_unit_test(test_worker_signaled),
        cmocka_unit_test(test_finish_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
