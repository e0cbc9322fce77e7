/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ends of a trial on a line of a test's making: so many bytes a
 * microsecond, so long on the way, under a virtual clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/trial.h"

enum { QUEUE = 4096, PIECE = 16 << 10, RUN_MS = 200 };
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define STEP_NS (5 * US)

/* One direction: pieces in flight, each with the time when it is there. */
struct lane {
    struct {
        uint8_t *bytes;
        size_t n;
        uint64_t at_ns;
    } pieces[QUEUE];
    size_t head;
    size_t count;
    uint64_t free_ns; /* when the line can take the next piece */
};

struct line {
    struct trial ends[2]; /* 0 dials */
    struct lane lanes[2]; /* 0: from 0 to 1 */
    uint64_t now_ns;
    uint64_t delay_ns;
    double bytes_per_us;
};

static void line_open(struct line *l, double bytes_per_us, uint64_t delay_ns)
{
    struct trial_plan plan = {.is_dialler = true,
                              .token = 7,
                              .self = 3,
                              .peer = 5,
                              .run_ms = RUN_MS,
                              .bytes_max = UINT64_C(1) << 40};
    memset(l, 0, sizeof(*l));
    l->now_ns = 1000 * MS;
    l->delay_ns = delay_ns;
    l->bytes_per_us = bytes_per_us;
    trial_init(&l->ends[0], &plan, l->now_ns);
    plan.is_dialler = false;
    plan.self = 5;
    plan.peer = 3;
    trial_init(&l->ends[1], &plan, l->now_ns);
}

static void line_close(struct line *l)
{
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < l->lanes[i].count; k++) {
            free(l->lanes[i].pieces[(l->lanes[i].head + k) % QUEUE].bytes);
        }
    }
}

/* What end i has to say, as far as the line takes it. */
static void line_send(struct line *l, int i)
{
    struct lane *lane = &l->lanes[i];
    const uint8_t *bytes;
    size_t n = trial_output(&l->ends[i], &bytes);
    if (n == 0 || lane->count == QUEUE || lane->free_ns > l->now_ns) {
        return;
    }
    n = n < PIECE ? n : PIECE;
    size_t at = (lane->head + lane->count++) % QUEUE;
    lane->free_ns = lane->free_ns > l->now_ns - STEP_NS ? lane->free_ns
                                                        : l->now_ns - STEP_NS;
    lane->free_ns += (uint64_t)((double)n * US / l->bytes_per_us);
    lane->pieces[at].bytes = malloc(n);
    lane->pieces[at].n = n;
    lane->pieces[at].at_ns = lane->free_ns + l->delay_ns;
    memcpy(lane->pieces[at].bytes, bytes, n);
    trial_wrote(&l->ends[i], n, l->now_ns);
}

/* What has arrived at the other end of lane i. */
static void line_deliver(struct line *l, int i)
{
    struct lane *lane = &l->lanes[i];
    struct trial *to = &l->ends[1 - i];
    while (lane->count > 0 && lane->pieces[lane->head].at_ns <= l->now_ns) {
        trial_input(to, lane->pieces[lane->head].bytes,
                    lane->pieces[lane->head].n, l->now_ns);
        free(lane->pieces[lane->head].bytes);
        lane->head = (lane->head + 1) % QUEUE;
        lane->count--;
    }
}

static void line_step(struct line *l)
{
    for (int i = 0; i < 2; i++) {
        for (int pieces = 0; pieces < 4; pieces++) {
            line_send(l, i);
        }
        line_deliver(l, i);
        if (trial_next_ns(&l->ends[i]) <= l->now_ns) {
            trial_tick(&l->ends[i], l->now_ns);
        }
    }
    l->now_ns += STEP_NS;
}

/* To the end of both, or for so long. */
static void line_run(struct line *l, uint64_t ms)
{
    uint64_t end_ns = l->now_ns + ms * MS;
    while (l->now_ns < end_ns &&
           !(trial_is_over(&l->ends[0]) && trial_is_over(&l->ends[1]))) {
        line_step(l);
    }
}

static void assert_rate(struct line *l, double bytes_per_us)
{
    Gpul__TrialWay way;
    gpul__trial_way__init(&way);
    trial_fill(&l->ends[1], &way);
    assert_int_equal(way.failure, GPUL__TRIAL_WAY__FAILURE__NONE);
    assert_true(way.ns >= RUN_MS * MS);
    double rate = (double)way.bytes / ((double)way.ns / US);
    assert_true(rate > 0.95 * bytes_per_us && rate < 1.05 * bytes_per_us);
}

/* 20 Mbit/s, 1 and 25 Gbit/s; the rate is that of the line. */
static void test_rates(void **state)
{
    (void)state;
    static const double rates[] = {2.5, 125, 3125};
    for (size_t i = 0; i < 3; i++) {
        struct line l;
        line_open(&l, rates[i], 20 * US);
        line_run(&l, 3000);
        assert_int_equal(l.ends[0].state, TRIAL_OVER);
        assert_int_equal(l.ends[1].state, TRIAL_OVER);
        assert_rate(&l, rates[i]);
        line_close(&l);
    }
}

/* The sender knows the round trips; a far peer gets longer. */
static void test_round_trips(void **state)
{
    (void)state;
    struct line l;
    Gpul__TrialWay way;
    line_open(&l, 125, 20 * MS);
    line_run(&l, 10000);
    gpul__trial_way__init(&way);
    trial_fill(&l.ends[0], &way);
    assert_in_range(way.rtt_count, 1, 3); /* no new one after 60 ms */
    assert_in_range(way.rtt_min_ns, 40 * MS, 41 * MS);
    assert_in_range(way.rtt_median_ns, way.rtt_min_ns, 41 * MS);
    assert_int_equal(way.bytes, 0);
    assert_in_range(l.ends[1].ns, 400 * MS, 420 * MS);
    assert_in_range(l.ends[1].start_ns - l.ends[1].flow_ns, 400 * MS, 420 * MS);
    line_close(&l);
    line_open(&l, 125, 10 * US);
    line_run(&l, 10000);
    gpul__trial_way__init(&way);
    trial_fill(&l.ends[0], &way);
    assert_int_equal(way.rtt_count, TRIAL_PINGS_MAX);
    assert_in_range(way.rtt_median_ns, 20 * US, 60 * US);
    line_close(&l);
}

/* A fast line is left alone after bytes_max. */
static void test_bytes_max(void **state)
{
    (void)state;
    struct line l;
    line_open(&l, 3125, 20 * US);
    l.ends[1].plan.bytes_max = 1 << 20;
    line_run(&l, 3000);
    assert_int_equal(l.ends[1].state, TRIAL_OVER);
    assert_in_range(l.ends[1].bytes, 1 << 20, 2 << 20);
    assert_in_range(l.ends[1].ns, 1, 10 * MS);
    line_close(&l);
}

/* A flow that stalls is not measured as nothing: it goes on until a byte has
 * come, or the time is over. */
static void test_stall(void **state)
{
    (void)state;
    struct line l;
    line_open(&l, 125, 20 * US);
    line_run(&l, 40);
    assert_int_equal(l.ends[1].state, TRIAL_FLOW);
    line_close(&l);
    trial_tick(&l.ends[1], l.now_ns + 60 * MS);
    assert_true(l.ends[1].start_ns != 0);
    trial_tick(&l.ends[1], l.now_ns + 600 * MS);
    assert_false(l.ends[1].is_measured);
    trial_timeout(&l.ends[1]);
    Gpul__TrialWay way;
    gpul__trial_way__init(&way);
    trial_fill(&l.ends[1], &way);
    assert_int_equal(way.failure, GPUL__TRIAL_WAY__FAILURE__STALLED);
    assert_int_equal(way.bytes, 0);
    assert_int_equal(way.ns, 0);
    assert_string_equal(way.text,
                        "connected, but the data did not come in time");
}

static void test_closed(void **state)
{
    (void)state;
    struct line l;
    line_open(&l, 125, 20 * US);
    line_run(&l, 40);
    line_close(&l);
    trial_closed(&l.ends[0], "Broken pipe");
    assert_int_equal(l.ends[0].state, TRIAL_FAILED);
    assert_int_equal(l.ends[0].failure, GPUL__TRIAL_WAY__FAILURE__BROKEN);
    assert_string_equal(l.ends[0].text, "Broken pipe");
    trial_timeout(&l.ends[0]); /* the first cause stays */
    assert_int_equal(l.ends[0].failure, GPUL__TRIAL_WAY__FAILURE__BROKEN);
}

/* Another token, another node, another program. */
static void test_wrong_peer(void **state)
{
    (void)state;
    const struct linkhello wrong[] = {
        {.token = 8, .from = 3, .to = 5},
        {.token = 7, .from = 4, .to = 5},
        {.token = 7, .from = 3, .to = 6},
    };
    for (size_t i = 0; i < 4; i++) {
        struct line l;
        uint8_t bytes[LINKHELLO_BYTES] = {0};
        const uint8_t *out;
        if (i < 3) {
            linkhello_write(bytes, &wrong[i]);
        }
        line_open(&l, 125, 0);
        trial_input(&l.ends[1], bytes, sizeof(bytes), l.now_ns);
        assert_int_equal(l.ends[1].failure,
                         GPUL__TRIAL_WAY__FAILURE__WRONG_PEER);
        assert_int_equal(trial_output(&l.ends[1], &out), 0);
    }
}

/* Whatever a peer says, byte by byte or all at once, it does no harm: of any
 * thousand bytes behind a good hello something comes that is not agreed. */
static void test_nonsense(void **state)
{
    (void)state;
    static const uint8_t words[] = {'P', 'R', 'D', 'S', 'E', 'B', 0, 255};
    for (unsigned seed = 0; seed < 4000; seed++) {
        struct line l;
        uint8_t bytes[LINKHELLO_BYTES + 1000];
        const struct linkhello hello = {.token = 7,
                                        .from = seed % 2 == 0 ? 3 : 5,
                                        .to = seed % 2 == 0 ? 5 : 3};
        srand(seed);
        line_open(&l, 125, 0);
        struct trial *t = &l.ends[seed % 2 == 0];
        linkhello_write(bytes, &hello);
        for (size_t i = LINKHELLO_BYTES; i < sizeof(bytes); i++) {
            bytes[i] = words[(unsigned)rand() % sizeof(words)];
        }
        for (size_t at = 0; at < sizeof(bytes);) {
            size_t n = seed % 3 == 0 ? 1 : sizeof(bytes) - at;
            const uint8_t *out;
            trial_input(t, bytes + at, n, l.now_ns);
            l.now_ns += 60 * MS;
            trial_tick(t, l.now_ns);
            size_t wanted = rand() % 2 == 0 ? trial_output(t, &out) : 0;
            if (wanted > 0) {
                trial_wrote(t, wanted, l.now_ns);
            }
            at += n;
        }
        Gpul__TrialWay way;
        gpul__trial_way__init(&way);
        trial_fill(t, &way);
        assert_true(t->state != TRIAL_OVER || seed % 3 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_bytes_max), cmocka_unit_test(test_stall),
        cmocka_unit_test(test_closed),    cmocka_unit_test(test_wrong_peer),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
