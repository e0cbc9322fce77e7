/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent through whole jobs, again and again, each time with another
 * allocation that fails: the step says so, or does without, and nothing is
 * left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>

#include <cmocka.h>

#include "agent_play.h"
#include "tests/lib/memory.h"

enum { ALLOCATIONS_MAX = 1000, ACTS_MAX = 32 };

typedef void (*act_fn)(struct play *p);

static void dial(struct play *p)
{
    play_wait(p, 0);
}

static void connected(struct play *p)
{
    play_event(p, AGENT_EVENT_CONNECTED, "10.0.0.1");
}

static void welcome(struct play *p)
{
    play_welcome(p);
}

static void job(struct play *p)
{
    play_job(p, GPUL__JOB__MODE__RUN);
}

static void assign(struct play *p)
{
    play_assign(p);
}

static void ports(struct play *p)
{
    play_ports(p, 20000);
}

static void roster(struct play *p)
{
    play_roster(p);
}

static void probe_start(struct play *p)
{
    play_probe_start(p);
}

static void listening(struct play *p)
{
    play_listening(p);
}

static void probe_connect(struct play *p)
{
    play_probe_connect(p);
}

static void probe_result(struct play *p)
{
    play_probe_result(p);
}

static void probe_over(struct play *p)
{
    play_probe_ended(p, 0, "it ended");
}

static void scout(struct play *p)
{
    play_scout(p);
}

static void facts(struct play *p)
{
    play_facts(p, 2, 0);
}

static void begin(struct play *p)
{
    play_probe_begin(p, 2);
}

static void id(struct play *p)
{
    play_probe_id(p, 0);
}

static void ids(struct play *p)
{
    play_probe_ids(p);
}

static void phase(struct play *p)
{
    play_phase(p, 0, GPUL__PROBE_PHASE__PHASE__INIT);
}

static void result_0(struct play *p)
{
    play_device_result(p, 0, "");
}

static void result_1(struct play *p)
{
    play_device_result(p, 1, "a fault");
}

static void probe_1_over(struct play *p)
{
    play_probe_ended(p, 1, "it ended");
}

static void launch(struct play *p)
{
    play_launch(p);
}

static void input(struct play *p)
{
    play_input(p, "line\n", true);
}

static void user_signal(struct play *p)
{
    play_pass_signal(p, SIGUSR1);
}

static void exits(struct play *p)
{
    play_exits(p, 0, 2, 3);
}

static void stop(struct play *p)
{
    play_stop(p, SIGTERM, 1000);
}

static void grace_over(struct play *p)
{
    play_wait(p, 1000);
}

static void gone(struct play *p)
{
    play_gone(p, "4711 python");
}

static void drained(struct play *p)
{
    play_event(p, AGENT_EVENT_OUTPUT_DRAINED, NULL);
}

static void finish(struct play *p)
{
    play_finish(p, true);
}

static void lost(struct play *p)
{
    play_event(p, AGENT_EVENT_LOST, "reset");
}

static void keeper_lost(struct play *p)
{
    play_keeper_lost(p, "4711 python");
}

/* Returns what the first step that failed gave. */
static int play(const act_fn *acts, size_t fail_at)
{
    struct play p;
    memory_watch();
    play_open(&p);
    p.may_fail = true;
    memory_fail_at(fail_at);
    for (size_t i = 0; i < ACTS_MAX && acts[i] != NULL && p.status == 0; i++) {
        acts[i](&p);
        assert_true(p.status == 0 || p.status == GPUL_ENOMEM);
    }
    memory_fail_at(0);
    play_close(&p);
    assert_int_equal(memory_held(), 0);
    return p.status;
}

static void fail_each_allocation(const act_fn *acts)
{
    size_t told = 0, done_without = 0;
    assert_int_equal(play(acts, 0), 0);
    for (size_t n = 1; n < ALLOCATIONS_MAX; n++) {
        int rc = play(acts, n);
        told += rc != 0;
        done_without += rc == 0;
    }
    /* A job has far fewer allocations than were tried: the rest passed. */
    assert_in_range(told, 5, 200);
    assert_true(done_without > 0);
}

static void test_run(void **state)
{
    (void)state;
    static const act_fn acts[ACTS_MAX] = {
        dial,         connected,  welcome,     job,       assign,
        ports,        roster,     probe_start, listening, probe_connect,
        probe_result, probe_over, launch,      input,     user_signal,
        exits,        gone,       drained,     finish,
    };
    fail_each_allocation(acts);
}

static void test_run_on_gpus(void **state)
{
    (void)state;
    static const act_fn acts[ACTS_MAX] = {
        dial,   connected, welcome,  job,        assign,     ports,
        roster, scout,     facts,    probe_over, begin,      id,
        ids,    phase,     result_0, result_1,   probe_over, probe_1_over,
        launch, exits,     gone,     drained,    finish,
    };
    fail_each_allocation(acts);
}

static void test_stop(void **state)
{
    (void)state;
    static const act_fn acts[ACTS_MAX] = {
        dial,   connected, welcome,    job,   assign, ports,   roster,
        launch, stop,      grace_over, exits, gone,   drained, finish,
    };
    fail_each_allocation(acts);
}

/* The coordinator goes, and the keeper. */
static void test_losses(void **state)
{
    (void)state;
    static const act_fn coordinator[ACTS_MAX] = {
        dial,    connected, lost,   grace_over, connected,
        welcome, job,       assign, ports,      roster,
        launch,  lost,      exits,  gone,       drained,
    };
    static const act_fn keeper[ACTS_MAX] = {
        dial,  connected, welcome, job,         assign,
        ports, roster,    launch,  keeper_lost,
    };
    fail_each_allocation(coordinator);
    fail_each_allocation(keeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_run_on_gpus),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
