/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/ceiling.h"
#include "common/rng.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIB (1024.0 * 1024)

/* Large enough to tell. */
static struct gpul_bandwidth_case at(double busbw, double ceiling,
                                     enum gpul_link kind)
{
    return (struct gpul_bandwidth_case){.busbw_gbps = busbw,
                                        .ceiling_gbps = ceiling,
                                        .kind = kind,
                                        .bytes = 1024 * MIB,
                                        .needed_bytes = 540 * MIB};
}

/* Both sides of each bound. */
static void test_default_shares(void **state)
{
    (void)state;
    static const struct {
        enum gpul_link kind;
        double busbw;
        enum gpul_bandwidth_verdict expected;
    } cases[] = {
        {GPUL_NVLINK, 320, GPUL_BANDWIDTH_PASS},
        {GPUL_NVLINK, 319.9, GPUL_BANDWIDTH_WARN},
        {GPUL_NVLINK, 280, GPUL_BANDWIDTH_WARN},
        {GPUL_NVLINK, 279.9, GPUL_BANDWIDTH_FAIL},
        {GPUL_RDMA, 320, GPUL_BANDWIDTH_PASS},
        {GPUL_RDMA, 260, GPUL_BANDWIDTH_WARN},
        {GPUL_RDMA, 259.9, GPUL_BANDWIDTH_FAIL},
        {GPUL_PCIE, 259.9, GPUL_BANDWIDTH_FAIL},
        {GPUL_TCP, 200, GPUL_BANDWIDTH_PASS},
        {GPUL_TCP, 100, GPUL_BANDWIDTH_WARN},
        {GPUL_TCP, 99.9, GPUL_BANDWIDTH_FAIL},
        {GPUL_LINK_NONE, 279.9, GPUL_BANDWIDTH_FAIL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gpul_bandwidth_case c = at(cases[i].busbw, 400, cases[i].kind);
        assert_int_equal(gpul_judge_bandwidth(&c), cases[i].expected);
    }
}

static void assert_text(const struct gpul_bandwidth_case *c,
                        const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 512);
    assert_int_equal(gpul_bandwidth_verdict_text(&out, c), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

static void test_words(void **state)
{
    (void)state;
    struct gpul_bandwidth_case c = at(395, 400, GPUL_RDMA);
    assert_text(&c, "pass: 99 % of the ceiling of 400.0 GB/s (RDMA)");
    c.busbw_gbps = 300;
    assert_text(&c, "warn: 75 % of the ceiling of 400.0 GB/s (RDMA), good from "
                    "80 %");
    c.busbw_gbps = 36.94;
    assert_text(&c, "fail: 9 % of the ceiling of 400.0 GB/s (RDMA), 65 % at "
                    "least");
    c.bytes = MIB;
    assert_text(&c, "inconclusive: message of 1 MiB too small (needs S_90 = "
                    "540 MiB)");
    c.needed_bytes = 0;
    assert_text(&c, "unknown: low, but only a fit over several sizes tells "
                    "whether a message of 1 MiB is large enough");
    c.ceiling_gbps = 0;
    assert_text(&c, "unknown: no ceiling is known of what connects the "
                    "devices, and no threshold is given");
    c.busbw_gbps = 0;
    assert_text(&c, "unknown: no bandwidth was measured");
    c = at(9.9, 12.5, GPUL_TCP);
    c.needed_bytes = 2048 * MIB;
    c.threshold_gbps = 12.25;
    c.busbw_gbps = 5;
    assert_text(&c, "inconclusive: message of 1 GiB too small (needs S_90 = "
                    "2 GiB)");
    c.bytes = c.needed_bytes;
    assert_text(&c, "fail: 5.00 GB/s below the threshold of 12.25 GB/s");
    c.needed_bytes = 1e300;
    assert_text(&c, "inconclusive: message of 2 GiB too small (needs S_90 = "
                    "more than 16 EiB)");
    c = at(482.3, 450, GPUL_NVLINK);
    assert_text(&c, "pass: 107 % of the ceiling of 450.0 GB/s (NVLink): the "
                    "links can carry more than is known of them");
}

/* Somebody's own threshold: reached or not, but never above what the links
 * can do. */
static void test_threshold(void **state)
{
    (void)state;
    struct gpul_bandwidth_case c = at(381.8, 400, GPUL_RDMA);
    c.threshold_gbps = 380;
    assert_text(&c, "pass: 381.8 GB/s reaches the threshold of 380.0 GB/s");
    c.threshold_gbps = 390;
    assert_text(&c, "fail: 381.8 GB/s below the threshold of 390.0 GB/s");
    c.bytes = MIB;
    assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_INCONCLUSIVE);
    c.threshold_gbps = 400; /* hard, but not impossible */
    assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_INCONCLUSIVE);
    c.threshold_gbps = 420;
    assert_text(&c, "bad test: threshold of 420.0 GB/s above the ceiling of "
                    "400.0 GB/s (RDMA)");
    /* What was reached is possible, whatever is known of the links. */
    c.busbw_gbps = 421;
    assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_PASS);
    c.ceiling_gbps = 0;
    c.bytes = 1024 * MIB;
    c.busbw_gbps = 419;
    assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_FAIL);
}

/* Without a figure, or with nothing to compare it with, nothing passes and
 * nothing fails. */
static void test_unknown_is_no_verdict(void **state)
{
    (void)state;
    static const double not_known[] = {0, -1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT(not_known); i++) {
        struct gpul_bandwidth_case c = at(not_known[i], 400, GPUL_RDMA);
        assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_UNKNOWN);
        assert_true(gpul_ceiling_percent(&c) == 0);
        c = at(300, not_known[i], GPUL_RDMA);
        assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_UNKNOWN);
        assert_true(gpul_ceiling_percent(&c) == 0);
        c = at(100, 400, GPUL_RDMA);
        c.needed_bytes = not_known[i];
        assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_UNKNOWN);
        c = at(100, 400, GPUL_RDMA);
        c.bytes = not_known[i] > 1 ? NAN : not_known[i];
        assert_int_equal(gpul_judge_bandwidth(&c), GPUL_BANDWIDTH_INCONCLUSIVE);
    }
    assert_string_equal(
        gpul_bandwidth_verdict_name((enum gpul_bandwidth_verdict)99),
        "unknown");
}

static int rank_of(enum gpul_bandwidth_verdict verdict)
{
    return verdict == GPUL_BANDWIDTH_PASS   ? 2
           : verdict == GPUL_BANDWIDTH_WARN ? 1
                                            : 0;
}

/* More bandwidth is never judged worse. */
static void test_monotonic(void **state)
{
    (void)state;
    struct gpul_rng rng;
    gpul_rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        double ceiling = 1 + (double)gpul_rng_below(&rng, 1000);
        double less = (double)gpul_rng_below(&rng, 1200);
        struct gpul_bandwidth_case c =
            at(less, ceiling, (enum gpul_link)gpul_rng_below(&rng, 5));
        int before = rank_of(gpul_judge_bandwidth(&c));
        c.busbw_gbps += (double)gpul_rng_below(&rng, 100);
        assert_true(rank_of(gpul_judge_bandwidth(&c)) >= before);
    }
}

/* 4 nodes of 8 GPUs with a card of 400 Gb/s each, as published: 381.8 GB/s is
 * not 95 % of 400 but 74 % of what the cards carry. */
static void test_published_run(void **state)
{
    (void)state;
    struct gpul_fabric fabric = {
        32, 4, {.nics_gbps = 400, .nics_kind = GPUL_RDMA, .nics = 8}};
    struct gpul_bandwidth_case c = at(381.8, 0, GPUL_LINK_NONE);
    c.ceiling_gbps = gpul_ceiling_gbps(&c.kind, GPUL_ALL_REDUCE, &fabric);
    assert_text(&c, "warn: 74 % of the ceiling of 516.7 GB/s (RDMA), good from "
                    "80 %");
    double wire = gpul_wire_gbps(381.8, GPUL_ALL_REDUCE, &fabric);
    assert_true(fabs(wire - 36.9) < 0.05 && lround(100 * wire / 50) == 74);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_shares),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_unknown_is_no_verdict),
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_published_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
