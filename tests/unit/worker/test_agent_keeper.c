/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent that follows another: ranks that its keeper holds, and the end of
 * the keeper. docs/supervision.md, "Attaching again".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"
#include "common/rng.h"
#include "proto/limits.h"

#define DRAINED(p) play_event(p, AGENT_EVENT_OUTPUT_DRAINED, NULL)

static const struct agent_held held = {
    .generation = 5, .attempt = 5, .grace_ms = 3000, .orphan_ms = 20000};

/* The generation of what play_assign sends next. */
static void begin_generation(struct play *p, uint32_t generation)
{
    p->generation = generation - 1;
}

static void to_assigned(struct play *p)
{
    begin_generation(p, held.generation);
    assert_string_equal(play_wait(p, 0), "connect");
    assert_string_equal(play_event(p, AGENT_EVENT_CONNECTED, "10.0.0.1"),
                        "send(hello:1:5)");
    assert_string_equal(play_welcome(p), "attached");
    assert_string_equal(play_job(p, GPUL__JOB__MODE__RUN), "");
    assert_string_equal(play_assign(p), "");
    assert_string_equal(play_roster(p), "renew_ports 20000");
    assert_int_equal(agent_state(p->agent), AGENT_ASSIGNED);
}

/* Held ranks are taken over without a lease being asked for; the job goes on
 * as if nothing had been. */
static void test_adopt(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    to_assigned(&p);
    assert_string_equal(play_launch(&p), "start_ranks");
    assert_int_equal(agent_attempt(p.agent), 5);
    assert_int_equal(agent_generation(p.agent), 5);
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(DRAINED(&p), "send(idle)");
    assert_string_equal(play_assign(&p), "lease_ports");
    play_close(&p);
}

/* All had ended already: the exits are told once more, then Idle. */
static void test_adopt_ended(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    assert_string_equal(play_gone(&p, "77 stuck"), "");
    to_assigned(&p);
    assert_string_equal(play_launch(&p), "start_ranks");
    assert_string_equal(play_exits(&p, 0, 2, 3), "send(exits:2)");
    assert_string_equal(play_gone(&p, "77 stuck"), "");
    assert_string_equal(DRAINED(&p), "send(idle:77 stuck)");
    assert_int_equal(agent_state(p.agent), AGENT_MEMBER);
    play_close(&p);
}

/* The coordinator says Stop right after Launch where one was under way. */
static void test_adopt_stop(void **state)
{
    (void)state;
    struct play p;
    struct agent_held stopped = held;
    stopped.signal = SIGTERM;
    play_open_held(&p, stopped);
    to_assigned(&p);
    assert_string_equal(play_launch(&p), "start_ranks");
    assert_string_equal(play_stop(&p, SIGTERM, 5000), "stop_ranks 15");
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 1000), "kill_ranks");
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    play_gone(&p, NULL);
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* A stop goes on while nobody answers: its end does not wait for a member. */
static void test_stop_goes_on(void **state)
{
    (void)state;
    struct play p;
    struct agent_held stopped = held;
    stopped.signal = SIGTERM;
    play_open_held(&p, stopped);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(play_wait(&p, 3000), "kill_ranks");
    assert_string_equal(play_wait(&p, GPUL_DRAIN_DEADLINE_MS / 2), "abandon");
    assert_string_equal(play_gone(&p, "77 stuck"), "");
    assert_int_equal(agent_state(p.agent), AGENT_HELLO);
    play_close(&p);
}

/* A stop before Launch: Idle is of the generation that is held. */
static void test_stop_before_launch(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    begin_generation(&p, held.generation + 1);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    play_welcome(&p);
    p.generation = held.generation;
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "stop_ranks 15");
    assert_string_equal(play_gone(&p, NULL), "send(idle)");
    assert_int_equal(agent_generation(p.agent), held.generation);
    play_close(&p);
}

/* The coordinator has gone on meanwhile: nothing is held any more. */
static void test_next_generation(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    play_gone(&p, NULL);
    begin_generation(&p, held.generation + 1);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    play_welcome(&p);
    play_job(&p, GPUL__JOB__MODE__RUN);
    assert_string_equal(play_assign(&p), "lease_ports");
    assert_string_equal(play_ports(&p, 20000), "send(ready:20000)");
    assert_string_equal(play_roster(&p), "");
    assert_string_equal(play_launch(&p), "start_ranks");
    play_exits(&p, 0, 2, 0);
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* No two generations run on a node at once. */
static void test_wrong_generation(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    begin_generation(&p, held.generation + 1);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    play_welcome(&p);
    play_job(&p, GPUL__JOB__MODE__RUN);
    assert_string_equal(play_assign(&p),
                        "send(leave:unknown) disconnect stop_ranks 15");
    assert_string_equal(
        play_gone(&p, NULL),
        "leave 125 \"the coordinator at 127.0.0.1:9 sent a new generation "
        "while ranks of another run here\"");
    play_close(&p);
}

/* Nobody there: the ranks run for the orphan time-out, then are stopped. */
static void test_orphaned(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    uint64_t end_ms = p.now_ms + held.orphan_ms;
    const char *line = play_wait(&p, 0);
    while (strcmp(line, "connect") == 0) {
        play_event(&p, AGENT_EVENT_LOST, "connection refused");
        line = play_wait(&p, agent_next_deadline_ms(p.agent) - p.now_ms);
    }
    assert_int_equal(p.now_ms, end_ms);
    assert_string_equal(line, "stop_ranks 15");
    assert_string_equal(play_wait(&p, held.grace_ms), "kill_ranks");
    assert_string_equal(play_gone(&p, NULL),
                        "leave 75 \"no connection to the coordinator at "
                        "127.0.0.1:9 within 20 s: connection refused\"");
    play_close(&p);
}

/* The coordinator does not want the node any more. */
static void test_refused(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(play_refuse(&p, "this node is lost"),
                        "disconnect stop_ranks 15");
    assert_string_equal(play_gone(&p, NULL),
                        "leave 125 \"refused by the coordinator at "
                        "127.0.0.1:9: this node is lost\"");
    play_close(&p);
}

/* A signal while it joins: no Idle from one that is no member. */
static void test_signal(void **state)
{
    (void)state;
    struct play p;
    play_open_held(&p, held);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(play_signal(&p, SIGTERM), "stop_ranks 15");
    assert_string_equal(play_welcome(&p), "");
    assert_string_equal(play_gone(&p, NULL),
                        "leave 143 \"stopped by signal 15 (SIGTERM)\"");
    play_close(&p);
}

/* ---- the end of the keeper ----------------------------------------------- */

/* Its ranks are dead: the coordinator hears that they will not be back. */
static void test_keeper_lost(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_keeper_lost(&p, NULL),
                        "send(leave:clean) discard_output");
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "");
    assert_string_equal(DRAINED(&p),
                        "leave 75 \"the keeper of this node ended, and its "
                        "ranks were killed\"");
    play_close(&p);
}

static void test_keeper_lost_unclean(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_stop(&p, SIGTERM, 1000);
    assert_string_equal(play_keeper_lost(&p, "77 stuck"),
                        "send(leave:77 stuck) discard_output");
    assert_string_equal(DRAINED(&p),
                        "leave 75 \"the keeper of this node ended, and its "
                        "ranks were killed\"");
    play_close(&p);
}

/* Probes are the agent's own: they are waited for. */
static void test_keeper_lost_probing(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_string_equal(play_keeper_lost(&p, NULL),
                        "send(leave:clean) kill_probes");
    assert_string_equal(play_probe_ended(&p, 0, "killed"),
                        "leave 75 \"the keeper of this node ended\"");
    play_close(&p);
}

static void test_keeper_lost_early(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(play_keeper_lost(&p, NULL),
                        "leave 75 \"the keeper of this node ended\"");
    play_close(&p);
}

/* ---- every order --------------------------------------------------------- */

static void one_event(struct play *p, uint64_t choice)
{
    switch (choice) {
    case 0:
        play_event(p, AGENT_EVENT_CONNECTED, "10.0.0.1");
        break;
    case 1:
        play_event(p, AGENT_EVENT_LOST, "reset");
        break;
    case 2:
        play_welcome(p);
        break;
    case 3:
        play_job(p, GPUL__JOB__MODE__RUN);
        break;
    case 4:
        play_assign(p);
        break;
    case 5:
        play_roster(p);
        break;
    case 6:
        play_launch(p);
        break;
    case 7:
        play_exits(p, 0, 1, 0);
        break;
    case 8:
        play_gone(p, "77 stuck");
        break;
    case 9:
        DRAINED(p);
        break;
    case 10:
        play_stop(p, SIGTERM, 100);
        break;
    case 11:
        play_signal(p, SIGTERM);
        break;
    case 12:
        play_keeper_lost(p, NULL);
        break;
    default:
        play_wait(p, 700);
    }
}

/* No order of events trips an assertion, and each ends: once the ranks are
 * gone and someone wants the agent out, it leaves. */
static void test_any_order(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 99);
    for (int round = 0; round < 3000; round++) {
        struct play p;
        struct agent_held some = held;
        some.signal = (int)gpul_rng_below(&rng, 2) * SIGTERM;
        play_open_held(&p, some);
        begin_generation(&p, held.generation + (uint32_t)round % 2);
        play_wait(&p, 0);
        for (int i = 0; i < 30 && !p.has_left; i++) {
            bool is_likely = gpul_rng_below(&rng, 3) > 0;
            one_event(&p,
                      is_likely ? (uint64_t)i % 10 : gpul_rng_below(&rng, 14));
        }
        for (int i = 0; i < 3 && !p.has_left; i++) {
            play_signal(&p, SIGTERM);
            play_gone(&p, NULL);
            DRAINED(&p);
        }
        assert_true(p.has_left);
        play_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_adopt_ended),
        cmocka_unit_test(test_adopt_stop),
        cmocka_unit_test(test_stop_goes_on),
        cmocka_unit_test(test_stop_before_launch),
        cmocka_unit_test(test_next_generation),
        cmocka_unit_test(test_wrong_generation),
        cmocka_unit_test(test_orphaned),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_keeper_lost),
        cmocka_unit_test(test_keeper_lost_unclean),
        cmocka_unit_test(test_keeper_lost_probing),
        cmocka_unit_test(test_keeper_lost_early),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
