/* SPDX-License-Identifier: Apache-2.0 */
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

/* ---- stopping ------------------------------------------------------------ */

/* Stop: the signal, SIGKILL after the grace, and what will not die is given
 * up and named. */
static void test_stop_escalates(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_stop(&p, SIGINT, 1500), "stop_ranks 2");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 1500);
    assert_string_equal(play_wait(&p, 1500), "kill_ranks");
    play_wait(&p, 500);
    play_wait(&p, 2000);
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 500), "abandon discard_output");
    assert_string_equal(play_gone(&p, "77 stuck"), "");
    assert_string_equal(DRAINED(&p), "send(idle:77 stuck)");
    play_close(&p);
}

/* A second Stop may shorten the grace, never lengthen it. */
static void test_second_stop(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_stop(&p, SIGTERM, 1900);
    assert_string_equal(play_stop(&p, SIGTERM, 60000), "stop_ranks 15");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 1900);
    assert_string_equal(play_stop(&p, SIGTERM, 0), "kill_ranks");
    assert_string_equal(play_stop(&p, SIGKILL, 0), "");
    play_close(&p);
}

/* What the ranks left behind has a moment to end, then is stopped as they
 * would have been. */
static void test_leftovers(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    assert_int_equal(agent_next_deadline_ms(p.agent), p.now_ms + 500);
    assert_string_equal(play_wait(&p, 500), "stop_ranks 15");
    assert_string_equal(play_wait(&p, 1500), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    assert_string_equal(play_wait(&p, 500), "kill_ranks");
    assert_string_equal(play_gone(&p, NULL), "");
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* Idle waits for a slow reader after a natural end, but not for ever after
 * a Stop: then nobody may be reading. */
static void test_output_without_credit(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    play_exits(&p, 0, 2, 0);
    play_gone(&p, NULL);
    for (int i = 0; i < 100; i++) {
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
        play_ack(&p);
    }
    assert_string_equal(play_credit(&p, 500), "credit 500");
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "");
    play_wait(&p, 2000);
    play_wait(&p, 2000);
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat) discard_output");
    assert_string_equal(DRAINED(&p), "send(idle)");
    play_close(&p);
}

/* A Stop where nothing runs is answered with Idle. */
static void test_stop_idle(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 100), "send(idle)");
    assert_int_equal(agent_state(p.agent), AGENT_MEMBER);
    play_close(&p);
}

/* A signal to the agent stops the ranks with it, tells the coordinator, and
 * then leaves; the second one kills. */
static void test_signal(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_running(&p);
    assert_string_equal(play_signal(&p, SIGINT), "stop_ranks 2");
    assert_string_equal(play_signal(&p, SIGINT), "kill_ranks");
    assert_string_equal(play_exits(&p, 0, 2, 0), "send(exits:2)");
    play_gone(&p, NULL);
    assert_string_equal(
        DRAINED(&p), "send(idle) leave 130 \"stopped by signal 2 (SIGINT)\"");
    play_close(&p);
}

/* Before it is a member, a signal ends the agent at once. */
static void test_signal_early(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_wait(&p, 0);
    assert_string_equal(play_signal(&p, SIGTERM),
                        "leave 143 \"stopped by signal 15 (SIGTERM)\"");
    assert_string_equal(play_event(&p, AGENT_EVENT_CONNECTED, "10.0.0.1"), "");
    play_close(&p);
}

/* Finish while ranks live kills them first; logs are removed last, or kept. */
static void test_finish_while_running(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct play p;
        play_open(&p);
        play_to_running(&p);
        assert_string_equal(play_finish(&p, keeps),
                            "discard_output kill_ranks");
        play_gone(&p, NULL);
        assert_string_equal(DRAINED(&p),
                            keeps ? "send(idle) leave 0"
                                  : "send(idle) remove_logs leave 0");
        play_close(&p);
    }
}

/* ---- the self-test ------------------------------------------------------- */

/* The result goes out when the probe has ended, not before. */
static void test_probe(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    assert_string_equal(play_probe_start(&p), "start_probe(probe_start)");
    assert_string_equal(play_listening(&p), "send(probe_listening)");
    assert_string_equal(play_probe_connect(&p), "send_probes(probe_connect)");
    assert_string_equal(play_probe_result(&p), "");
    assert_int_equal(agent_state(p.agent), AGENT_PROBING);
    assert_string_equal(play_event(&p, AGENT_EVENT_PROBE_ENDED, "ended"),
                        "send(probe_result:coll:)");
    assert_int_equal(agent_state(p.agent), AGENT_ASSIGNED);
    assert_string_equal(play_launch(&p), "start_ranks");
    play_close(&p);
}

/* A probe that dies says nothing itself: the agent says it, with the phase. */
static void test_probe_dies(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_string_equal(play_event(&p, AGENT_EVENT_PROBE_ENDED, "signal 11"),
                        "send(probe_result:init:signal 11)");
    assert_string_equal(play_probe_connect(&p), "");
    play_close(&p);
}

/* A probe that hangs is killed 2 s after its deadline. */
static void test_probe_hangs(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    play_probe_connect(&p);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(play_wait(&p, 2000), "send(heartbeat)");
    }
    assert_string_equal(play_wait(&p, 2000), "send(heartbeat) kill_probes");
    assert_string_equal(
        play_event(&p, AGENT_EVENT_PROBE_ENDED, "signal 9"),
        "send(probe_result:coll:it did not end in time and was killed)");
    play_close(&p);
}

/* Stop during the self-test kills the probe; its result is of no interest.
 * One that cannot be killed is given up and named. */
static void test_stop_probe(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_to_assigned(&p);
    play_probe_start(&p);
    assert_string_equal(play_stop(&p, SIGTERM, 1000), "kill_probes");
    play_wait(&p, 5000);
    assert_non_null(strstr(p.line, "abandon"));
    char name[] = "5 gpulaunch-worker";
    char *list[] = {name};
    struct agent_event ended = {.type = AGENT_EVENT_PROBE_ENDED,
                                .text = name,
                                .unclean = list,
                                .unclean_count = 1};
    assert_string_equal(play_step(&p, &ended), "send(idle:5 gpulaunch-worker)");
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
                 "disconnect leave 125 \"the coordinator at 127.0.0.1:9 sent "
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
    assert_string_equal(p.line, "disconnect leave 125 \"the coordinator at "
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
        "disconnect leave 125 \"the coordinator at 127.0.0.1:9 sent a bad "
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
    assert_string_equal(play_frame(&p, &frame),
                        "disconnect leave 125 \"the coordinator at "
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

/* ---- any order ----------------------------------------------------------- */

/* What the edge promises: each request is answered in the end. */
struct edge {
    bool is_dialing;
    uint64_t probes; /* a bit each */
    bool has_ranks;
    bool has_output;
};

static void note_requests(struct edge *e, const struct play *p)
{
    for (size_t i = 0; i < p->actions.count; i++) {
        switch (p->actions.items[i].type) {
        case AGENT_CONNECT:
            e->is_dialing = true;
            break;
        case AGENT_START_PROBE:
            e->probes |= UINT64_C(1) << p->actions.items[i].probe;
            break;
        case AGENT_START_RANKS:
            e->has_ranks = true;
            e->has_output = true;
            break;
        default:
            break;
        }
    }
}

static uint32_t few(struct gpul_rng *rng)
{
    return (uint32_t)gpul_rng_below(rng, 4);
}

/* In the self-test, over host memory and on three devices. */
static void the_test_goes_on(struct play *p, struct gpul_rng *rng)
{
    switch (gpul_rng_below(rng, 14)) {
    case 0:
        play_probe_start(p);
        break;
    case 1:
        play_probe_connect(p);
        break;
    case 2:
        play_listening(p);
        break;
    case 3:
        play_probe_result(p);
        break;
    case 4:
        play_scout(p);
        break;
    case 5:
        play_facts(p, 3, few(rng) * 400);
        break;
    case 6:
        play_no_facts(p, "no driver");
        break;
    case 7:
        play_probe_begin(p, 3);
        break;
    case 8:
        play_probe_ids(p);
        break;
    case 9:
        play_probe_id(p, few(rng));
        break;
    case 10:
        play_phase(p, few(rng), (Gpul__ProbePhase__Phase)(1 + few(rng)));
        break;
    case 11:
        play_device_result(p, few(rng), few(rng) > 0 ? "" : "bad");
        break;
    default:
        play_probe_ended(p, few(rng), "signal 9");
    }
}

static void something_happens(struct play *p, struct gpul_rng *rng)
{
    uint64_t draw = gpul_rng_below(rng, 24);
    switch (draw) {
    case 0:
        play_event(p, AGENT_EVENT_CONNECTED, "10.0.0.1");
        break;
    case 1:
        play_welcome(p);
        break;
    case 2:
        play_job(p, GPUL__JOB__MODE__RUN);
        break;
    case 3:
        play_assign(p);
        break;
    case 4:
        play_ports(p, 20000);
        break;
    case 5:
        play_roster(p);
        break;
    case 6:
        play_launch(p);
        break;
    case 7:
        play_exits(p, 0, 1, 1);
        break;
    case 8:
        play_gone(p, "9 name");
        break;
    case 9:
        DRAINED(p);
        break;
    case 10:
        play_stop(p, SIGTERM, 100);
        break;
    case 11:
        play_credit(p, 10);
        break;
    case 12:
        play_ack(p);
        break;
    case 13:
        p->generation = p->generation > 0 ? p->generation - 1 : 0;
        play_launch(p);
        break;
    case 14:
    case 15:
        play_wait(p, draw * 10);
        break;
    default:
        the_test_goes_on(p, rng);
    }
}

/* A way to the middle of a self-test on devices. */
static void play_to_probing(struct play *p, struct gpul_rng *rng)
{
    play_to_assigned(p);
    play_scout(p);
    play_facts(p, 3, 0);
    play_probe_ended(p, 0, "ended");
    play_probe_begin(p, 3);
    for (uint32_t i = 0; i < 3 && few(rng) > 0; i++) {
        play_device_result(p, i, "");
        play_probe_ended(p, i, "ended");
    }
}

/* The edge answers what is open, time passes, the coordinator has gone: the
 * agent must leave within the bounds of its deadlines. */
static void bring_to_an_end(struct play *p, struct edge *e)
{
    play_event(p, AGENT_EVENT_LOST, "reset");
    play_signal(p, SIGTERM);
    for (int i = 0; i < 50 && !p->has_left; i++) {
        note_requests(e, p);
        if (e->probes != 0) {
            uint32_t probe = (uint32_t)__builtin_ctzll(e->probes);
            play_probe_ended(p, probe, "signal 9");
            e->probes &= e->probes - 1;
        } else if (e->has_ranks) {
            play_gone(p, NULL);
            e->has_ranks = false;
        } else if (e->has_output) {
            DRAINED(p);
        }
        uint64_t next = agent_next_deadline_ms(p->agent);
        if (!p->has_left && next != UINT64_MAX) {
            play_wait(p, next > p->now_ms ? next - p->now_ms : 0);
        }
    }
    assert_true(p->has_left);
}

/* No order of events trips an assertion, and from wherever it leads the way
 * out is open. */
static void test_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct gpul_rng rng;
        struct play p;
        struct edge edge = {0};
        gpul_rng_init(&rng, seed);
        play_open(&p);
        uint64_t start = gpul_rng_below(&rng, 5);
        if (start == 1) {
            play_to_member(&p);
        } else if (start == 2) {
            play_to_assigned(&p);
        } else if (start == 3) {
            play_to_running(&p);
        } else if (start == 4) {
            play_to_probing(&p, &rng);
            edge.probes = 7;
        }
        note_requests(&edge, &p);
        for (int i = 0; i < 40 && !p.has_left; i++) {
            something_happens(&p, &rng);
            note_requests(&edge, &p);
            uint64_t next = agent_next_deadline_ms(p.agent);
            assert_true(next == UINT64_MAX || next + 200 > p.now_ms);
        }
        bring_to_an_end(&p, &edge);
        play_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_life),
        cmocka_unit_test(test_connect_bounded),
        cmocka_unit_test(test_no_welcome),
        cmocka_unit_test(test_lost_before_welcome),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_ports),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_lost_while_running),
        cmocka_unit_test(test_stop_escalates),
        cmocka_unit_test(test_second_stop),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_output_without_credit),
        cmocka_unit_test(test_stop_idle),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_signal_early),
        cmocka_unit_test(test_finish_while_running),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_dies),
        cmocka_unit_test(test_probe_hangs),
        cmocka_unit_test(test_stop_probe),
        cmocka_unit_test(test_second_generation),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_out_of_place),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_bad_place),
        cmocka_unit_test(test_many_exits),
        cmocka_unit_test(test_env_mode),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
