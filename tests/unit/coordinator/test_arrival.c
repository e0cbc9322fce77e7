/* SPDX-License-Identifier: Apache-2.0
 *
 * Late or slow, against ranks in numbers: each computes, enters, waits for the
 * last and leaves, and its clock shows something else than ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "common/stats.h"
#include "coordinator/arrival.h"
#include "tests/lib/memory.h"

enum {
    RANKS_MAX = 64,
    ITERATIONS_MAX = 40,
    SEED = 20261201,
    US = 1000,
    BEFORE = 1000 * US,  /* computing */
    TOGETHER = 400 * US, /* the collective, once all are there */
};

static struct {
    uint32_t ranks;
    uint32_t iterations;
    struct gpul_rng rng;
    int64_t before[ITERATIONS_MAX][RANKS_MAX]; /* more than BEFORE */
    int64_t after[RANKS_MAX];                  /* leaves so much later */
    int64_t together[ITERATIONS_MAX];          /* more than TOGETHER */
    int64_t clock_error[RANKS_MAX];            /* of the known offset */
    struct arrival_visit visits[ITERATIONS_MAX * RANKS_MAX];
    struct arrival_clock clocks[RANKS_MAX];
    struct arrival_report report;
} lab;

static int64_t draw(int64_t bound)
{
    return (int64_t)gpul_rng_below(&lab.rng, (uint64_t)bound);
}

/* Offsets of hours, known to a microsecond. */
static void begin(uint32_t ranks, uint32_t iterations, uint64_t seed)
{
    arrival_release(&lab.report);
    memset(&lab, 0, sizeof(lab));
    lab.ranks = ranks;
    lab.iterations = iterations;
    gpul_rng_init(&lab.rng, SEED + seed);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        lab.clocks[rank].offset_ns =
            draw(INT64_C(1) << 45) - (INT64_C(1) << 44);
        lab.clocks[rank].uncertainty_ns = US;
        lab.clocks[rank].is_known = true;
        lab.clock_error[rank] = draw(2 * US) - US;
        for (uint32_t i = 0; i < iterations; i++) {
            lab.before[i][rank] = draw(5 * US);
        }
    }
}

static void add_before(uint32_t rank, int64_t more)
{
    for (uint32_t i = 0; i < lab.iterations; i++) {
        lab.before[i][rank] += more;
    }
}

static void play(void)
{
    int64_t left[RANKS_MAX] = {0};
    for (uint32_t i = 0; i < lab.iterations; i++) {
        int64_t enter[RANKS_MAX];
        int64_t last = 0;
        for (uint32_t rank = 0; rank < lab.ranks; rank++) {
            enter[rank] = left[rank] + BEFORE + lab.before[i][rank];
            last = enter[rank] > last ? enter[rank] : last;
        }
        for (uint32_t rank = 0; rank < lab.ranks; rank++) {
            int64_t shown = lab.clocks[rank].offset_ns + lab.clock_error[rank];
            left[rank] =
                last + TOGETHER + lab.together[i] + lab.after[rank] + draw(US);
            lab.visits[i * lab.ranks + rank].enter_ns = enter[rank] + shown;
            lab.visits[i * lab.ranks + rank].leave_ns = left[rank] + shown;
        }
    }
}

static void judge(void)
{
    struct arrival_input in = {
        .ranks = lab.ranks,
        .iterations = lab.iterations,
        .visits = lab.visits,
        .clocks = lab.clocks,
    };
    arrival_release(&lab.report);
    assert_int_equal(arrival_judge(&lab.report, &in, NULL), 0);
}

static const struct arrival_rank *rank_of(uint32_t rank)
{
    return &lab.report.ranks[rank];
}

/* One rank is something, all others are something else. */
static void expect_states(uint32_t one, enum arrival_state state,
                          enum arrival_state others)
{
    for (uint32_t rank = 0; rank < lab.ranks; rank++) {
        enum arrival_state wanted = rank == one ? state : others;
        if (rank_of(rank)->state != wanted) {
            fail_msg("%u ranks, rank %u: state %d instead of %d (late %g, "
                     "left %g, waited %g)",
                     lab.ranks, rank, (int)rank_of(rank)->state, (int)wanted,
                     rank_of(rank)->late_ns, rank_of(rank)->left_late_ns,
                     rank_of(rank)->waited_ns);
        }
    }
}

static void test_all_on_time(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks++) {
        begin(ranks, 20, ranks);
        play();
        judge();
        expect_states(0, ARRIVAL_ON_TIME, ARRIVAL_ON_TIME);
        assert_int_equal(lab.report.spike_count, 0);
        assert_false(lab.report.is_noisy);
        assert_true(lab.report.together_ns > TOGETHER - 10 * US);
        assert_true(lab.report.together_ns < TOGETHER + 10 * US);
    }
}

/* It computes longer. It is in the collective for the least time of all, and
 * the others are the victims. */
static void test_late(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks++) {
        uint32_t late = ranks / 3;
        begin(ranks, 20, ranks);
        add_before(late, 300 * US);
        play();
        judge();
        expect_states(late, ARRIVAL_LATE, ARRIVAL_VICTIM);
        assert_int_equal(rank_of(late)->last_count, 20);
        assert_true(rank_of(late)->before_more_ns > 290 * US);
        assert_int_equal(lab.report.late_count, 1);
        assert_int_equal(lab.report.slow_count, 0);
        assert_int_equal(lab.report.victim_count, ranks - 1);
        assert_true(lab.report.wait_ns > 290 * US);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            assert_true(rank == late || rank_of(rank)->inside_ns >
                                            rank_of(late)->inside_ns + 250e3);
        }
    }
}

/* It computes as fast as any, but is still at it when the others have left:
 * that it enters late next time is not what it does before. */
static void test_slow(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks++) {
        begin(ranks, 20, ranks);
        lab.after[1] = 200 * US;
        play();
        judge();
        expect_states(1, ARRIVAL_SLOW, ARRIVAL_VICTIM);
        assert_true(rank_of(1)->left_late_ns > 190 * US);
        assert_true(rank_of(1)->before_more_ns < 10 * US);
    }
}

static void test_late_and_slow(void **state)
{
    (void)state;
    begin(8, 20, 0);
    lab.after[5] = 200 * US;
    add_before(5, 300 * US);
    play();
    judge();
    expect_states(5, ARRIVAL_LATE_AND_SLOW, ARRIVAL_VICTIM);
    assert_int_equal(lab.report.late_count, 1);
    assert_int_equal(lab.report.slow_count, 1);
}

/* Half of the ranks are late: the others are the rule. */
static void test_half_late(void **state)
{
    (void)state;
    begin(8, 10, 0);
    for (uint32_t rank = 0; rank < 8; rank += 2) {
        add_before(rank, 300 * US);
    }
    play();
    judge();
    for (uint32_t rank = 0; rank < 8; rank++) {
        assert_int_equal(rank_of(rank)->state,
                         rank % 2 == 0 ? ARRIVAL_LATE : ARRIVAL_VICTIM);
    }
}

/* One iteration is enough for late; nothing is known of the time before. */
static void test_one_iteration(void **state)
{
    (void)state;
    begin(4, 1, 0);
    add_before(2, 300 * US);
    play();
    judge();
    expect_states(2, ARRIVAL_LATE, ARRIVAL_VICTIM);
    assert_true(rank_of(2)->before_ns == 0);
    assert_true(lab.report.cv == 0);
}

/* ---- clocks ---- */

/* 300 us late, by a clock that may be 500 us wrong. */
static void test_uncertain_clock(void **state)
{
    (void)state;
    begin(8, 20, 0);
    add_before(3, 300 * US);
    lab.clocks[3].uncertainty_ns = 500 * US;
    play();
    judge();
    assert_int_equal(rank_of(3)->state, ARRIVAL_UNKNOWN);
    assert_int_equal(lab.report.late_count, 0);
    assert_int_equal(lab.report.unknown_count, 1);
    assert_int_equal(rank_of(3)->last_count, 0);
    assert_int_equal(rank_of(0)->state, ARRIVAL_ON_TIME);
    /* By 600 us it is certain all the same. */
    add_before(3, 300 * US);
    play();
    judge();
    expect_states(3, ARRIVAL_LATE, ARRIVAL_VICTIM);
}

/* One that is on time, but nobody can tell. */
static void test_all_uncertain(void **state)
{
    (void)state;
    begin(8, 20, 0);
    for (uint32_t rank = 0; rank < 8; rank++) {
        lab.clocks[rank].uncertainty_ns = 100 * US;
    }
    play();
    judge();
    expect_states(0, ARRIVAL_UNKNOWN, ARRIVAL_UNKNOWN);
}

/* Without an offset a rank is unknown and the others are not; its times on
 * its own clock stand. */
static void test_unknown_clock(void **state)
{
    (void)state;
    begin(8, 20, 0);
    add_before(2, 300 * US);
    lab.clocks[6].is_known = false;
    play();
    judge();
    assert_int_equal(rank_of(6)->state, ARRIVAL_UNKNOWN);
    assert_true(rank_of(6)->inside_ns > TOGETHER);
    assert_int_equal(rank_of(2)->state, ARRIVAL_LATE);
    assert_int_equal(rank_of(0)->state, ARRIVAL_VICTIM);
    for (uint32_t rank = 0; rank < 8; rank++) {
        lab.clocks[rank].is_known = false;
    }
    judge();
    expect_states(0, ARRIVAL_UNKNOWN, ARRIVAL_UNKNOWN);
    assert_int_equal(lab.report.unknown_count, 8);
}

static void test_missing_times(void **state)
{
    (void)state;
    begin(4, 10, 0);
    add_before(1, 300 * US);
    play();
    for (uint32_t i = 0; i < 10; i++) {
        lab.visits[i * 4 + 3] = (struct arrival_visit){0, 0};
        if (i % 2 == 0) {
            lab.visits[i * 4 + 1] = (struct arrival_visit){0, 0};
        }
    }
    judge();
    assert_int_equal(rank_of(3)->state, ARRIVAL_UNKNOWN);
    assert_int_equal(rank_of(3)->iterations, 0);
    assert_int_equal(rank_of(1)->state, ARRIVAL_LATE);
    assert_int_equal(rank_of(1)->iterations, 5);
}

/* ---- spikes and noise ---- */

static void expect_spike(uint32_t index, enum arrival_spike_kind kind,
                         uint32_t iteration, uint32_t rank)
{
    assert_true(index < lab.report.spike_count);
    assert_int_equal(lab.report.spikes[index].kind, kind);
    assert_int_equal(lab.report.spikes[index].iteration, iteration);
    assert_int_equal(lab.report.spikes[index].rank, rank);
    assert_true(lab.report.spikes[index].factor > ARRIVAL_SPIKE_FACTOR);
}

static void test_spikes(void **state)
{
    (void)state;
    begin(8, 20, 0);
    lab.together[4] = 2 * TOGETHER;
    lab.before[7][3] += 2 * BEFORE;
    for (uint32_t rank = 0; rank < 8; rank++) {
        lab.before[11][rank] += 3 * BEFORE;
    }
    play();
    judge();
    assert_int_equal(lab.report.spike_count, 3);
    expect_spike(0, ARRIVAL_SPIKE_SHARED, 4, 0);
    expect_spike(1, ARRIVAL_SPIKE_RANK, 7, 3);
    expect_spike(2, ARRIVAL_SPIKE_SHARED, 11, 0);
    /* Once late is not late. */
    expect_states(0, ARRIVAL_ON_TIME, ARRIVAL_ON_TIME);
    assert_int_equal(rank_of(3)->last_count, 1);
}

/* Those beyond the list are counted. */
static void test_many_spikes(void **state)
{
    (void)state;
    begin(32, 40, 0);
    for (uint32_t i = 1; i < 31; i++) {
        lab.before[i][i] += 2 * BEFORE;
    }
    play();
    judge();
    assert_int_equal(lab.report.spike_count, 30);
    expect_spike(ARRIVAL_SPIKES_MAX - 1, ARRIVAL_SPIKE_RANK, ARRIVAL_SPIKES_MAX,
                 ARRIVAL_SPIKES_MAX);
}

static void test_noisy(void **state)
{
    (void)state;
    for (int64_t percent = 2; percent <= 80; percent += 78) {
        begin(4, 40, 0);
        for (uint32_t i = 0; i < 40; i++) {
            lab.together[i] = draw(TOGETHER) * percent / 100;
        }
        play();
        judge();
        assert_int_equal(lab.report.is_noisy, percent == 80);
        assert_true((lab.report.cv > GPUL_NOISY_VARIATION) == (percent == 80));
    }
}

/* ---- bounds ---- */

static int64_t draw_nonsense(void)
{
    static const int64_t values[] = {0,         1,         -1,
                                     INT64_MIN, INT64_MAX, INT64_C(1) << 62};
    return values[draw(sizeof(values) / sizeof(values[0]))];
}

static void test_nonsense(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        begin(1 + (uint32_t)seed % 9, 1 + (uint32_t)seed % 7, seed);
        for (uint32_t k = 0; k < lab.ranks * lab.iterations; k++) {
            lab.visits[k].enter_ns = draw_nonsense();
            lab.visits[k].leave_ns = draw_nonsense();
        }
        for (uint32_t rank = 0; rank < lab.ranks; rank++) {
            lab.clocks[rank].offset_ns = draw_nonsense();
            lab.clocks[rank].uncertainty_ns = (uint64_t)draw_nonsense();
        }
        judge();
        for (uint32_t rank = 0; rank < lab.ranks; rank++) {
            assert_true(rank_of(rank)->iterations <= lab.iterations);
            assert_true(rank_of(rank)->uncertainty_ns >= 0);
        }
    }
}

static void expect_refusal(uint32_t ranks, uint32_t iterations, int status,
                           const char *text)
{
    struct arrival_input in = {.ranks = ranks, .iterations = iterations};
    struct gpul_error err = {0};
    arrival_release(&lab.report);
    assert_int_equal(arrival_judge(&lab.report, &in, &err), status);
    assert_string_equal(err.text, text);
    arrival_release(&lab.report);
}

static void test_limits(void **state)
{
    (void)state;
    expect_refusal(0, 5, GPUL_EINVAL, "5 iterations of 0 ranks");
    expect_refusal(5, 0, GPUL_EINVAL, "0 iterations of 5 ranks");
    expect_refusal(UINT32_MAX, UINT32_MAX, GPUL_ELIMIT,
                   "4294967295 iterations of 4294967295 ranks: 4194304 times "
                   "at most");
    expect_refusal(4097, 1024, GPUL_ELIMIT,
                   "1024 iterations of 4097 ranks: 4194304 times at most");
}

static void test_no_memory(void **state)
{
    struct arrival_input in = {.ranks = 4,
                               .iterations = 10,
                               .visits = lab.visits,
                               .clocks = lab.clocks};
    size_t n = 0;
    int rc;
    (void)state;
    begin(4, 10, 0);
    play();
    arrival_release(&lab.report);
    do {
        struct gpul_error err = {0};
        memory_watch();
        memory_fail_at(++n);
        rc = arrival_judge(&lab.report, &in, &err);
        assert_int_equal(err.status, rc);
        arrival_release(&lab.report);
        assert_int_equal(memory_held(), 0);
        assert_true(rc == 0 || rc == GPUL_ENOMEM);
    } while (rc != 0 && n < 10);
    memory_fail_at(0);
    assert_int_equal(n, 5);
}

static int teardown(void **state)
{
    (void)state;
    arrival_release(&lab.report);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_on_time),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_late_and_slow),
        cmocka_unit_test(test_half_late),
        cmocka_unit_test(test_one_iteration),
        cmocka_unit_test(test_uncertain_clock),
        cmocka_unit_test(test_all_uncertain),
        cmocka_unit_test(test_unknown_clock),
        cmocka_unit_test(test_missing_times),
        cmocka_unit_test(test_spikes),
        cmocka_unit_test(test_many_spikes),
        cmocka_unit_test(test_noisy),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
