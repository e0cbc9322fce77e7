/* SPDX-License-Identifier: Apache-2.0
 *
 * The offset of a clock from four times: within its own bound whatever the
 * network does to the two ways, and never more certain than that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "coordinator/clockskew.h"

enum { SEED = 20261201, US = 1000 };

static struct clockskew skew;
static struct clockskew_estimate estimate;

static void add(int64_t t0, int64_t t1, int64_t t2, int64_t t3)
{
    struct clockskew_exchange e = {t0, t1, t2, t3};
    assert_true(clockskew_add(&skew, &e));
}

static void refuse(int64_t t0, int64_t t1, int64_t t2, int64_t t3)
{
    struct clockskew_exchange e = {t0, t1, t2, t3};
    struct clockskew before = skew;
    assert_false(clockskew_add(&skew, &e));
    assert_memory_equal(&skew, &before, sizeof(skew));
}

static void begin(void)
{
    memset(&skew, 0, sizeof(skew));
}

static void test_formula(void **state)
{
    (void)state;
    begin();
    assert_false(clockskew_estimate(&estimate, &skew, 0));
    /* Its clock is 1000 ahead; 30 there, 10 back, 5 in between. */
    add(100, 1130, 1135, 145);
    assert_true(clockskew_estimate(&estimate, &skew, 145));
    assert_int_equal(estimate.offset_ns, 1010);
    assert_int_equal(estimate.uncertainty_ns, 20);
    /* An hour behind, alike both ways. */
    begin();
    add(0, -3600000000000 + 7, -3600000000000 + 7, 14);
    assert_true(clockskew_estimate(&estimate, &skew, 14));
    assert_int_equal(estimate.offset_ns, -3600000000000);
    assert_int_equal(estimate.uncertainty_ns, 7);
}

/* The least delay is believed, wherever it stands; the oldest goes. */
static void test_least_delay(void **state)
{
    (void)state;
    begin();
    add(0, 900, 900, 1000);
    add(1000, 1110, 1110, 1200);
    add(2000, 2010, 2010, 3000);
    assert_true(clockskew_estimate(&estimate, &skew, 3000));
    assert_int_equal(estimate.offset_ns, 10);
    assert_int_equal(estimate.uncertainty_ns, 100);
    for (int i = 0; i < CLOCKSKEW_KEPT - 1; i++) {
        add(3000, 3500, 3500, 4000);
    }
    assert_true(clockskew_estimate(&estimate, &skew, 4000));
    assert_int_equal(estimate.uncertainty_ns, 500);
}

/* 100 ppm of its age: after ten seconds a millisecond, so that a worse one
 * that is fresh is better. */
static void test_age(void **state)
{
    const int64_t later = 10000000000;
    (void)state;
    begin();
    add(0, 100, 100, 200);
    assert_true(clockskew_estimate(&estimate, &skew, 200 + later));
    assert_int_equal(estimate.uncertainty_ns, 100 + 1000 * US);
    add(later, later + 50 * US, later + 50 * US, later + 100 * US);
    assert_true(clockskew_estimate(&estimate, &skew, later + 100 * US));
    assert_int_equal(estimate.uncertainty_ns, 50 * US);
    /* A question about the past. */
    assert_true(clockskew_estimate(&estimate, &skew, 200));
    assert_int_equal(estimate.uncertainty_ns, 100);
}

static void test_impossible(void **state)
{
    (void)state;
    begin();
    refuse(100, 100, 100, 99);          /* an answer before its question */
    refuse(100, 200, 199, 300);         /* there before it came */
    refuse(0, 0, 101, 100);             /* stayed longer than we waited */
    refuse(INT64_MIN, 0, 0, INT64_MAX); /* beyond 64 bits, all of them */
    refuse(0, INT64_MIN, INT64_MAX, 10);
    refuse(-2, INT64_MAX, INT64_MAX, 10);
    refuse(10, INT64_MIN, INT64_MIN, 20);
    assert_false(clockskew_estimate(&estimate, &skew, 0));
    add(0, INT64_MAX, INT64_MAX, 0);
    assert_true(clockskew_estimate(&estimate, &skew, INT64_MIN));
    assert_int_equal(estimate.offset_ns, INT64_MAX);
}

static int64_t draw(struct gpul_rng *rng, int64_t bound)
{
    return (int64_t)gpul_rng_below(rng, (uint64_t)bound);
}

/* Any offset, any delays, a drift within the bound: the truth is within the
 * uncertainty. */
static void test_truth_is_within(void **state)
{
    struct gpul_rng rng;
    (void)state;
    gpul_rng_init(&rng, SEED);
    for (int i = 0; i < 2000; i++) {
        int64_t offset = draw(&rng, INT64_C(1) << 50) - (INT64_C(1) << 49);
        int64_t ppm =
            draw(&rng, 2 * CLOCKSKEW_DRIFT_PPM + 1) - CLOCKSKEW_DRIFT_PPM;
        int64_t now = 0;
        begin();
        for (int64_t k = 0; k < 1 + i % 20; k++) {
            int64_t there = draw(&rng, 200 * US);
            int64_t stay = draw(&rng, 50 * US);
            int64_t back = draw(&rng, 2000 * US);
            int64_t t0 = now + draw(&rng, INT64_C(1) << 30);
            int64_t t1 = t0 + there;
            now = t1 + stay + back;
            /* what its clock shows at that time of ours */
            add(t0, t1 + offset + t1 / 1000000 * ppm,
                t1 + stay + offset + (t1 + stay) / 1000000 * ppm, now);
        }
        assert_true(clockskew_estimate(&estimate, &skew, now));
        int64_t error =
            llabs(estimate.offset_ns - (offset + now / 1000000 * ppm));
        /* Whole millionths are drawn, so the drift comes in steps. */
        assert_true((uint64_t)error <=
                    estimate.uncertainty_ns + 2 * CLOCKSKEW_DRIFT_PPM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_least_delay),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_truth_is_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
