/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever happens to an agent, in any order: it comes to an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>

#include <cmocka.h>

#include "agent_play.h"
#include "common/rng.h"

#define DRAINED(p) play_event(p, AGENT_EVENT_OUTPUT_DRAINED, NULL)

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
    uint64_t draw = gpul_rng_below(rng, 28);
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
    case 16:
        play_pass_signal(p, few(rng) > 1 ? SIGTSTP : SIGCONT);
        break;
    case 18:
        play_link_start(p);
        break;
    case 19:
        play_link_peers(p);
        break;
    case 17:
        play_input(p, "abc", few(rng) == 0);
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
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
