/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/ending.h"

enum { GRACE_MS = 30000, START_MS = 1000000 };

/* One step of a story: an event at a time, and what must follow. */
struct beat {
    enum ending_event event;
    uint64_t at_ms; /* after the start */
    unsigned actions;
    enum ending_phase phase;
    uint64_t deadline_ms; /* after the start; UINT64_MAX: none */
};

static void play(uint32_t timeout_ms, const struct beat *beats, size_t count)
{
    struct ending e;
    ending_init(&e, START_MS, timeout_ms, GRACE_MS);
    for (size_t i = 0; i < count; i++) {
        const struct beat *b = &beats[i];
        unsigned actions = ending_step(&e, b->event, START_MS + b->at_ms);
        assert_int_equal(actions, b->actions);
        assert_int_equal(e.phase, b->phase);
        assert_true(e.deadline_ms == (b->deadline_ms == UINT64_MAX
                                          ? UINT64_MAX
                                          : START_MS + b->deadline_ms));
    }
}

#define PLAY(timeout_ms, ...)                                                  \
    do {                                                                       \
        static const struct beat beats[] = {__VA_ARGS__};                      \
        play(timeout_ms, beats, sizeof(beats) / sizeof(beats[0]));             \
    } while (0)

/* A job that ends well: its processes leave by themselves. */
static void test_success(void **state)
{
    (void)state;
    PLAY(0, {ENDING_TICK, 5, 0, ENDING_WORKING, UINT64_MAX},
         {ENDING_JOB_END, 10, ENDING_TERM_ABSENT, ENDING_LEAVING, 5010},
         {ENDING_DESK_LOST, 11, 0, ENDING_LEAVING, 5010},
         {ENDING_WORKERS_GONE, 12, 0, ENDING_LEAVING, 5010},
         {ENDING_ALL_GONE, 13, 0, ENDING_GONE, UINT64_MAX});
}

/* Processes that stay are told to go, then killed, then given up. */
static void test_stubborn(void **state)
{
    (void)state;
    PLAY(0, {ENDING_JOB_END, 0, ENDING_TERM_ABSENT, ENDING_LEAVING, 5000},
         {ENDING_TICK, 4999, 0, ENDING_LEAVING, 5000},
         {ENDING_TICK, 5000, ENDING_TERM_WORKERS | ENDING_TERM_COORDINATOR,
          ENDING_TOLD, 8000},
         {ENDING_TICK, 8000, ENDING_KILL_ALL, ENDING_KILLING, 13000},
         {ENDING_TICK, 13000, 0, ENDING_GONE, UINT64_MAX});
}

/* First signal: grace. Second: none. Third: everything is killed. */
static void test_signals(void **state)
{
    (void)state;
    PLAY(0, {ENDING_SIGNAL, 0, ENDING_CANCEL, ENDING_STOPPING, 45000},
         {ENDING_SIGNAL, 10, ENDING_CANCEL_NOW, ENDING_STOPPING, 15010},
         {ENDING_SIGNAL, 20, ENDING_KILL_ALL, ENDING_KILLING, 5020},
         {ENDING_SIGNAL, 30, 0, ENDING_KILLING, 5020},
         {ENDING_ALL_GONE, 40, 0, ENDING_GONE, UINT64_MAX});
}

/* A cancelled job that the coordinator ends goes the usual way. */
static void test_cancel(void **state)
{
    (void)state;
    PLAY(0, {ENDING_SIGNAL, 0, ENDING_CANCEL, ENDING_STOPPING, 45000},
         {ENDING_JOB_END, 900, ENDING_TERM_ABSENT, ENDING_LEAVING, 5900},
         {ENDING_SIGNAL, 950, 0, ENDING_LEAVING, 5900},
         {ENDING_SIGNAL, 960, ENDING_KILL_ALL, ENDING_KILLING, 5960});
}

/* A coordinator that does not stop a cancelled job is not waited for. */
static void test_deaf_coordinator(void **state)
{
    (void)state;
    PLAY(0, {ENDING_SIGNAL, 0, ENDING_CANCEL, ENDING_STOPPING, 45000},
         {ENDING_TICK, 45000, ENDING_LOSE_DESK | ENDING_KILL_ALL,
          ENDING_KILLING, 50000});
}

/* Without a coordinator the workers are told to stop, within the grace. */
static void test_lost_coordinator(void **state)
{
    (void)state;
    PLAY(0, {ENDING_DESK_LOST, 0, ENDING_TERM_WORKERS, ENDING_ORPHANED, 45000},
         {ENDING_DESK_LOST, 1, 0, ENDING_ORPHANED, 45000},
         {ENDING_TICK, 45000, ENDING_KILL_ALL, ENDING_KILLING, 50000});
    PLAY(0, {ENDING_DESK_LOST, 0, ENDING_TERM_WORKERS, ENDING_ORPHANED, 45000},
         {ENDING_SIGNAL, 1, 0, ENDING_ORPHANED, 45000},
         {ENDING_SIGNAL, 2, ENDING_KILL_ALL, ENDING_KILLING, 5002});
}

/* When all workers have gone, a silent coordinator gets a bound. */
static void test_silent_coordinator(void **state)
{
    (void)state;
    PLAY(0, {ENDING_WORKERS_GONE, 0, 0, ENDING_WORKING, 20000},
         {ENDING_TICK, 20000, ENDING_LOSE_DESK | ENDING_KILL_ALL,
          ENDING_KILLING, 25000});
}

/* Behind the job's own time limit stands one of the front end. */
static void test_timeout(void **state)
{
    (void)state;
    PLAY(60000, {ENDING_TICK, 60000, 0, ENDING_WORKING, 105000},
         {ENDING_TICK, 105000, ENDING_LOSE_DESK | ENDING_KILL_ALL,
          ENDING_KILLING, 110000});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_stubborn),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_deaf_coordinator),
        cmocka_unit_test(test_lost_coordinator),
        cmocka_unit_test(test_silent_coordinator),
        cmocka_unit_test(test_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
