/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent joins, lives and goes from one generation to the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent_play.h"
#include "proto/limits.h"

#define DRAINED(p) play_event(p, AGENT_EVENT_OUTPUT_DRAINED, NULL)

/* ---- joining ------------------------------------------------------------- */

/* From the first dial to the end of a job whose ranks all end with 0. */
static void test_whole_life(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_exits(&p, 0, 1, 0), "send(exits:1)");
    assert_string_equal(play_exits(&p, 1, 1, 0), "send(exits:1)");
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(DRAINED(&p), "send(idle)");
    assert_int_equal(agent_state(p.agent), AGENT_MEMBER);
    assert_string_equal(play_finish(&p, false), "remove_logs leave 0");
    assert_int_equal(agent_next_deadline_ms(p.agent), UINT64_MAX);
    play_close(&p);
}

/* Tries to connect back off, are spread by the instance, and end. */
static void test_connect_bounded(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    unsigned tries = 0;
    const char *line = play_wait(&p, 0);
    assert_true(p.actions.items[0].bound_ms == UINT64_MAX);
    for (uint64_t last = 0; strcmp(line, "connect") == 0; tries++) {
        assert_string_equal(
            play_event(&p, AGENT_EVENT_LOST, "connection refused"), "");
        uint64_t wait = agent_next_deadline_ms(p.agent) - p.now_ms;
        assert_true(wait >= 25 && wait <= 5000);
        assert_true(tries == 0 || wait <= 4 * last);
        last = wait;
        line = play_wait(&p, wait);
    }
    assert_in_range(tries, 7, 14);
    assert_string_equal(line, "leave 40 \"no connection to the coordinator at "
                              "127.0.0.1:9 within 10 s: connection refused\"");
    assert_int_equal(p.now_ms, 11000);
    play_close(&p);
}

/* All addresses are tried before it waits, and then a little; not where one
 * has answered, since that is the coordinator. */
static void test_several_addresses(void **state)
{
    (void)state;
    struct play p;
    play_open_several(&p, 3);
    uint64_t last = 0;
    for (unsigned round = 0; round < 4; round++) {
        for (int i = 0; i < 3; i++) {
            assert_string_equal(play_wait(&p, 0), "connect");
            assert_int_equal(p.actions.items[0].bound_ms,
                             10000 / 3 * (round + 1));
            play_event(&p, AGENT_EVENT_LOST, "no answer");
        }
        uint64_t wait = agent_next_deadline_ms(p.agent) - p.now_ms;
        assert_true(wait >= 25u << round && wait <= 50u << round);
        assert_string_equal(play_wait(&p, wait - 1), "");
        p.now_ms++;
        last = wait;
    }
    assert_string_equal(play_wait(&p, 0), "connect");
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    play_event(&p, AGENT_EVENT_LOST, "wrong secret");
    assert_true(agent_next_deadline_ms(p.agent) >= p.now_ms + last);
    play_close(&p);
    play_open_several(&p, 2);
    assert_string_equal(play_wait(&p, 0), "connect");
    assert_int_equal(p.actions.items[0].bound_ms, GPUL_DIAL_MS);
    play_close(&p);
}

/* A coordinator that takes the connection and says nothing is named. */
static void test_no_welcome(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_int_equal(agent_next_deadline_ms(p.agent), 11000);
    assert_string_equal(play_wait(&p, 10000),
                        "leave 40 \"connected to the coordinator at "
                        "127.0.0.1:9, but it did not answer within 10 s\"");
    play_close(&p);
}

/* The same of one that does not even show its key; but what an earlier try
 * was told says more. */
static void test_no_key(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    assert_string_equal(play_event(&p, AGENT_EVENT_REACHED, NULL), "");
    assert_string_equal(play_wait(&p, 10000),
                        "leave 40 \"connected to the coordinator at "
                        "127.0.0.1:9, but it did not answer within 10 s\"");
    play_close(&p);
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    play_event(&p, AGENT_EVENT_LOST, "wrong secret");
    assert_string_equal(play_wait(&p, 50), "connect");
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    assert_string_equal(play_wait(&p, 10000),
                        "leave 40 \"no connection to the coordinator at "
                        "127.0.0.1:9 within 10 s: wrong secret\"");
    play_close(&p);
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    assert_string_equal(play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1"),
                        "send(hello)");
    play_close(&p);
}

/* Where somebody reads it: at half of the time, what is in the way. */
static void test_half_time(void **state)
{
    (void)state;
    struct play p;
    play_open_telling(&p);
    assert_string_equal(play_wait(&p, 0), "connect");
    play_event(&p, AGENT_EVENT_LOST, "connection refused");
    play_wait(&p, 50);
    assert_int_equal(p.now_ms, 1050);
    assert_string_equal(
        play_wait(&p, 4950),
        "say \"the coordinator at 127.0.0.1:9 has not let this node in for "
        "5 s: connection refused; trying on for 5 s\"");
    assert_string_equal(play_wait(&p, 5000),
                        "leave 40 \"no connection to the coordinator at "
                        "127.0.0.1:9 within 10 s: connection refused\"");
    play_close(&p);
    play_open_telling(&p);
    play_to_member(&p);
    assert_string_equal(play_wait(&p, 5000), "send(heartbeat)");
    play_close(&p);
}

/* ... and at once what an answer says, the same one once. */
static void test_refusals_are_said(void **state)
{
    (void)state;
    struct play p;
    play_open_telling(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "wrong secret"),
                        "say \"wrong secret; trying on for 10 s\"");
    assert_string_equal(play_wait(&p, 50), "connect");
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "wrong secret"), "");
    assert_string_equal(play_wait(&p, 100), "connect");
    play_event(&p, AGENT_EVENT_REACHED, NULL);
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "another job"),
                        "say \"another job; trying on for 10 s\"");
    play_close(&p);
}

/* A connection that is lost before Welcome is tried again. */
static void test_lost_before_welcome(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "reset"), "");
    assert_string_equal(play_wait(&p, 50), "connect");
    assert_string_equal(play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1"),
                        "send(hello)");
    play_close(&p);
}

/* A refusal ends the worker with the coordinator's own words. */
static void test_refused(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1");
    assert_string_equal(
        play_refuse(&p, "the job is already running"),
        "disconnect leave 125 \"refused by the coordinator at 127.0.0.1:9: "
        "the job is already running\"");
    play_close(&p);
}

/* No ports: the coordinator hears why, and the agent stays to be told what
 * to do. */
static void test_no_ports(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    play_assign(&p);
    assert_string_equal(play_event(&p, AGENT_EVENT_PORTS, "all are taken"),
                        "send(ready:0all are taken)");
    assert_string_equal(play_stop(&p, SIGTERM, 0), "send(idle)");
    play_close(&p);
}

/* ---- liveness ------------------------------------------------------------ */

/* A beat every heartbeat_ms; each acknowledgement renews the lease. */
static void test_heartbeat(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 2000);
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
        assert_string_equal(play_ack(&p), "");
    }
    play_close(&p);
}

/* Silence over the lease is the loss of the coordinator. */
static void test_silence(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    }
    assert_string_equal(play_wait(&p, 1000),
                        "disconnect leave 75 \"lost the coordinator at "
                        "127.0.0.1:9: no answer for 15 s\"");
    play_close(&p);
}

/* Without the coordinator the ranks are stopped: TERM, the job's grace,
 * KILL; then the agent leaves, whatever its output. */
static void test_lost_while_running(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_event(&p, AGENT_EVENT_LOST, "reset"),
                        "disconnect discard_output stop_ranks 15");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 4000);
    assert_string_equal(play_wait(&p, 4000), "kill_ranks");
    assert_string_equal(play_exits(&p, 0, 2, 0), "");
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(
        DRAINED(&p), "leave 75 \"lost the coordinator at 127.0.0.1:9: reset\"");
    play_close(&p);
}

/* ---- generations --------------------------------------------------------- */

/* A second generation starts from MEMBER, with new ports. */
static void test_second_generation(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_exits(&p, 0, 1, 1);
    assert_string_equal(play_stop(&p, SIGTERM, 100), "stop_ranks 15");
    play_exits(&p, 1, 1, 1);
    play_gone(&p, NULL);
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_to_running(&p);
    assert_int_equal(agent_generation(p.agent), 2);
    assert_int_equal(agent_attempt(p.agent), 2);
    play_close(&p);
}

/* What an older epoch or generation says is not heard. */
static void test_stale(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    p.generation = 5;
    play_to_assigned(&p);
    p.generation = 5;
    assert_string_equal(play_launch(&p), "");
    assert_string_equal(play_stop(&p, SIGTERM, 0), "");
    p.generation = 6;
    p.epoch = PLAY_EPOCH - 1;
    assert_string_equal(play_launch(&p), "");
    assert_string_equal(play_finish(&p, true), "");
    p.epoch = PLAY_EPOCH;
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A message that does not fit where the agent is ends the connection. */
static void test_out_of_place(void **state)
{
    (void)state;
    static const struct {
        const char *(*speak)(struct play *p);
        const char *name;
    } table[] = {
        {play_welcome, "welcome"},         {play_roster, "roster"},
        {play_probe_start, "probe_start"}, {play_scout, "probe_start"},
        {play_launch, "launch"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char expected[160];
        struct play p;
        play_open(&p);
        play_to_member(&p);
        snprintf(expected, sizeof(expected),
                 "send(leave:clean) disconnect leave 125 \"the coordinator at "
                 "127.0.0.1:9 sent "
                 "%s out of place\"",
                 table[i].name);
        assert_string_equal(table[i].speak(&p), expected);
        play_close(&p);
    }
}

/* A launch of a generation that was never assigned is a fault too. */
static void test_ahead(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    p.generation++;
    play_launch(&p);
    assert_string_equal(
        p.line, "send(leave:clean) disconnect leave 125 \"the coordinator at "
                "127.0.0.1:9 sent launch out of place\"");
    play_close(&p);
}

/* A roster that contradicts what the node holds is refused with the numbers,
 * and a place outside the world likewise. */
static void test_bad_place(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    play_assign(&p);
    play_ports(&p, 30000);
    assert_string_equal(
        play_roster(&p),
        "send(leave:clean) disconnect leave 125 \"the coordinator at "
        "127.0.0.1:9 sent a bad "
        "roster: the roster gives this node ranks 0+2 and port 20000, it has "
        "0+2 and 30000\"");
    play_close(&p);

    play_open(&p);
    play_to_member(&p);
    Gpul__Assign assign;
    gpul__assign__init(&assign);
    assign.node_count = 1;
    assign.node_rank = 1;
    assign.rank_count = 1;
    assign.world_size = 1;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_ASSIGN;
    frame.assign = &assign;
    p.generation = 1;
    assert_string_equal(
        play_frame(&p, &frame),
        "send(leave:clean) disconnect leave 125 \"the coordinator at "
        "127.0.0.1:9 sent a place that is not in the world\"");
    play_close(&p);
}

/* ---- the rest ------------------------------------------------------------ */

/* Exits that do not fit one frame go in several, all of them. */
static void test_many_exits(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_exits(&p, 0, 2 * GPUL_EXITS_MAX + 1, 1);
    char expected[64];
    snprintf(expected, sizeof(expected), "send(exits:%u exits:%u exits:1)",
             GPUL_EXITS_MAX, GPUL_EXITS_MAX);
    assert_string_equal(p.line, expected);
    play_close(&p);
}

/* Mode ENV: Launch asks for the report; Stop is answered as always. */
static void test_env_mode(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_member(&p);
    play_job(&p, GPUL__JOB__MODE__ENV);
    play_to_assigned(&p);
    assert_string_equal(play_launch(&p), "report_env");
    assert_string_equal(play_exits(&p, 0, 1, 1), "send(exits:1)");
    assert_string_equal(play_stop(&p, SIGTERM, 0), "send(idle)");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_life),
        cmocka_unit_test(test_connect_bounded),
        cmocka_unit_test(test_several_addresses),
        cmocka_unit_test(test_no_welcome),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_half_time),
        cmocka_unit_test(test_refusals_are_said),
        cmocka_unit_test(test_lost_before_welcome),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_ports),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_lost_while_running),
        cmocka_unit_test(test_second_generation),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_out_of_place),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_bad_place),
        cmocka_unit_test(test_many_exits),
        cmocka_unit_test(test_env_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
