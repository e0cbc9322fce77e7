/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "coordinator/trials.h"

#define GBPS(x) ((x)*1e9)
#define MS UINT64_C(1000000)

/* So many GB/s, and so busy. */
static struct trial_way receiving(double gbps, uint8_t busy_percent)
{
    return (struct trial_way){.bytes = (uint64_t)(gbps * 1e9 * 0.2),
                              .ns = 200 * MS,
                              .busy_percent = busy_percent};
}

static struct trial_way sending(uint32_t rtt_count, uint64_t lone,
                                uint64_t again, uint8_t busy_percent)
{
    return (struct trial_way){.rtt_count = rtt_count,
                              .lone_retransmits = lone,
                              .retransmits = again,
                              .segments = 1000,
                              .busy_percent = busy_percent};
}

static struct pairsearch_figure figure(struct trial_way from,
                                       struct trial_way to, double reference)
{
    struct pairsearch_figure out;
    trial_figure(&out, &from, &to, reference);
    return out;
}

static void assert_near(double got, double wanted)
{
    assert_true(got > wanted * 0.999 - 1e-9 && got < wanted * 1.001 + 1e-9);
}

static void test_rate(void **state)
{
    (void)state;
    struct pairsearch_figure f =
        figure(sending(256, 0, 0, 10), receiving(1.25, 20), GBPS(9));
    assert_int_equal(f.status, PAIRSEARCH_MEASURED);
    assert_near(f.bytes_per_s, GBPS(1.25));
    assert_near(f.loss, 0);
}

/* What is sent again on a full queue is no loss; on an idle line it is. Where
 * there were too few round trips to know, what was sent again counts. */
static void test_loss(void **state)
{
    (void)state;
    struct trial_way to = receiving(0.01, 1);
    assert_near(figure(sending(256, 0, 90, 0), to, 0).loss, 0);
    assert_near(figure(sending(256, 1, 90, 0), to, 0).loss, 0.09);
    assert_near(figure(sending(9, 0, 90, 0), to, 0).loss, 0.09);
    struct trial_way unknown = sending(256, 0, 0, 0);
    unknown.segments = 0;
    assert_true(figure(unknown, to, 0).loss < 0);
}

/* Processors that were busy all the time set the pace, not the link, unless it
 * is far below the others. One that waited for the network explains nothing. */
static void test_busy(void **state)
{
    (void)state;
    struct pairsearch_figure f =
        figure(sending(256, 0, 0, 60), receiving(0.5, 60), GBPS(1));
    assert_int_equal(f.status, PAIRSEARCH_MEASURED);
    assert_near(f.bytes_per_s, GBPS(1));
    f = figure(sending(256, 0, 0, 60), receiving(2, 60), GBPS(1));
    assert_near(f.bytes_per_s, GBPS(1));
    f = figure(sending(256, 0, 0, 60), receiving(0.09, 60), GBPS(1));
    assert_int_equal(f.status, PAIRSEARCH_UNKNOWN);
    f = figure(sending(256, 0, 0, 60), receiving(0.5, 20), GBPS(1));
    assert_int_equal(f.status, PAIRSEARCH_MEASURED);
    assert_near(f.bytes_per_s, GBPS(0.5));
    f = figure(sending(256, 0, 0, 90), receiving(0.5, 90), 0);
    assert_near(f.bytes_per_s, GBPS(0.5));
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        Gpul__TrialWay__Failure sending;
        Gpul__TrialWay__Failure receiving;
        enum pairsearch_status status;
    } cases[] = {
        {GPUL__TRIAL_WAY__FAILURE__REFUSED, GPUL__TRIAL_WAY__FAILURE__NO_CALLER,
         PAIRSEARCH_REFUSED},
        {GPUL__TRIAL_WAY__FAILURE__UNREACHABLE,
         GPUL__TRIAL_WAY__FAILURE__NO_CALLER, PAIRSEARCH_REFUSED},
        {GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION,
         GPUL__TRIAL_WAY__FAILURE__NO_CALLER, PAIRSEARCH_REFUSED},
        {GPUL__TRIAL_WAY__FAILURE__WRONG_PEER,
         GPUL__TRIAL_WAY__FAILURE__NO_CALLER, PAIRSEARCH_REFUSED},
        {GPUL__TRIAL_WAY__FAILURE__STALLED, GPUL__TRIAL_WAY__FAILURE__STALLED,
         PAIRSEARCH_TIMEOUT},
        {GPUL__TRIAL_WAY__FAILURE__BROKEN, GPUL__TRIAL_WAY__FAILURE__BROKEN,
         PAIRSEARCH_TIMEOUT},
        {GPUL__TRIAL_WAY__FAILURE__NONE, GPUL__TRIAL_WAY__FAILURE__NO_CALLER,
         PAIRSEARCH_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trial_way from = {.failure = (uint8_t)cases[i].sending};
        struct trial_way to = {.failure = (uint8_t)cases[i].receiving};
        assert_int_equal(figure(from, to, GBPS(1)).status, cases[i].status);
    }
    /* What was measured counts, however it ended. */
    struct trial_way from = {.failure = GPUL__TRIAL_WAY__FAILURE__STALLED};
    struct trial_way to = receiving(0.001, 0);
    to.failure = GPUL__TRIAL_WAY__FAILURE__STALLED;
    assert_int_equal(figure(from, to, GBPS(1)).status, PAIRSEARCH_MEASURED);
}

static void test_median(void **state)
{
    (void)state;
    double rates[] = {5, 1, 4, 2};
    assert_near(trial_median(rates, 0), 0);
    assert_near(trial_median(rates, 1), 5);
    assert_near(trial_median(rates, 4), 3);
    assert_near(trial_median(rates, 3), 2);
}

/* Both ends speak of a failure: the one that dialled is heard. A text of a node
 * may be longer than a row takes, and is cut between two characters. */
static void test_row(void **state)
{
    (void)state;
    struct trial_side a = {.receiving = receiving(1.5, 0)};
    struct trial_side b = {.receiving = {0}};
    Gpul__PairRow row;
    char error[GPUL_EVIDENCE_BYTES_MAX + 1];
    a.sending.text = text_copy("connection refused");
    a.sending.rtt_ns = 0;
    b.sending = sending(256, 0, 3, 0);
    b.sending.rtt_ns = 5000;
    b.receiving.text = text_copy("nobody has called");
    gpul__pair_row__init(&row);
    trial_row(&row, error, &a, &b);
    assert_near(row.a_to_b_gbps, 0);
    assert_near(row.b_to_a_gbps, 1.5);
    assert_int_equal(row.rtt_ns, 5000);
    assert_int_equal(row.segments, 1000);
    assert_int_equal(row.retransmits, 3);
    assert_string_equal(row.error, "a to b: connection refused");
    trial_side_clear(&a);
    trial_side_clear(&b);

    char longest[GPUL_TEXT_BYTES_MAX + 1];
    memset(longest, 0, sizeof(longest));
    for (size_t i = 0; i + 1 < GPUL_TEXT_BYTES_MAX; i += 2) {
        memcpy(longest + i, "\xc3\xa4", 2);
    }
    a.sending.text = text_copy(longest);
    trial_row(&row, error, &a, &b);
    assert_in_range(strlen(row.error), GPUL_EVIDENCE_BYTES_MAX - 1,
                    GPUL_EVIDENCE_BYTES_MAX);
    assert_int_equal((uint8_t)row.error[strlen(row.error) - 1], 0xa4);
    trial_side_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),   cmocka_unit_test(test_loss),
        cmocka_unit_test(test_busy),   cmocka_unit_test(test_failures),
        cmocka_unit_test(test_median), cmocka_unit_test(test_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
