/* SPDX-License-Identifier: Apache-2.0
 *
 * Pair trials on their way from events into a record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "launcher/checkdossier.h"

static char a[] = "n0";
static char b[] = "n1";
static char error[] = "a to b: connection refused";

/* One page of a round of `need` trials, `have` of them told by now. */
static void tell_pairs(struct checkbook *book, uint32_t round, uint32_t have,
                       uint32_t need)
{
    Gpul__PairRow row = GPUL__PAIR_ROW__INIT;
    Gpul__PairRow *rows[] = {&row};
    Gpul__Event event = GPUL__EVENT__INIT;
    row.round = round;
    row.a = a;
    row.b = b;
    row.error = error;
    row.b_to_a_gbps = 1.5;
    row.rtt_ns = 20000;
    row.segments = 1000;
    row.retransmits = 25;
    event.kind = GPUL__EVENT__KIND__PAIRS;
    event.pairs = rows;
    event.n_pairs = 1;
    event.have = have;
    event.need = need;
    checkbook_event(book, &event);
}

static void tell_verdict(struct checkbook *book, bool is_path)
{
    char direction[] = "send";
    char text[] = "it is slow";
    Gpul__PairVerdict verdict = GPUL__PAIR_VERDICT__INIT;
    Gpul__PairVerdict *verdicts[] = {&verdict};
    Gpul__Event event = GPUL__EVENT__INIT;
    verdict.what = is_path ? GPUL__PAIR_VERDICT__WHAT__PATH
                           : GPUL__PAIR_VERDICT__WHAT__NODE;
    verdict.a = a;
    if (is_path) {
        verdict.b = b;
    }
    verdict.state = is_path ? GPUL__PAIR_VERDICT__STATE__CONGESTED
                            : GPUL__PAIR_VERDICT__STATE__SLOW;
    verdict.direction = direction;
    verdict.rounds = 2;
    verdict.text = text;
    event.kind = GPUL__EVENT__KIND__VERDICTS;
    event.verdicts = verdicts;
    event.n_verdicts = 1;
    checkbook_event(book, &event);
}

/* What was not measured is no figure. */
static void test_pairs(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct dossier d;
    tell_pairs(&book, 1, 1, 1);
    dossier_init(&d);
    checkdossier_pairs(&d, &book);
    assert_int_equal(dossier_count(&d, DOSSIER_PAIR), 1);
    const struct dossier_pair *p = dossier_at(&d, DOSSIER_PAIR, 0);
    assert_int_equal(p->round, 1);
    assert_null(p->rail);
    assert_string_equal(p->a, "n0");
    assert_string_equal(p->b, "n1");
    assert_true(isnan(p->a_to_b));
    assert_true(p->b_to_a > 1.49e9 && p->b_to_a < 1.51e9);
    assert_true(p->round_trip_s > 19e-6 && p->round_trip_s < 21e-6);
    assert_true(p->retransmit_ratio > 0.024 && p->retransmit_ratio < 0.026);
    assert_string_equal(p->error, "a to b: connection refused");
    dossier_release(&d);
    checkbook_release(&book);
}

static void test_verdicts(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct dossier d;
    tell_verdict(&book, false);
    tell_verdict(&book, true);
    dossier_init(&d);
    checkdossier_pairs(&d, &book);
    assert_int_equal(dossier_count(&d, DOSSIER_VERDICT), 2);
    const struct dossier_verdict *v = dossier_at(&d, DOSSIER_VERDICT, 0);
    assert_string_equal(v->what, "node");
    assert_int_equal(v->nodes.count, 1);
    assert_string_equal(v->state, "slow");
    assert_string_equal(v->direction, "send");
    assert_int_equal(v->rounds, 2);
    v = dossier_at(&d, DOSSIER_VERDICT, 1);
    assert_string_equal(v->what, "path");
    assert_int_equal(v->nodes.count, 2);
    assert_string_equal(v->nodes.items[1], "n1");
    assert_string_equal(v->state, "congested");
    dossier_release(&d);
    checkbook_release(&book);
}

/* A check that is begun anew measures anew; a second page does not. */
static void test_anew(void **state)
{
    (void)state;
    struct checkbook book = {0};
    tell_pairs(&book, 1, 1, 2);
    tell_pairs(&book, 1, 2, 2);
    tell_pairs(&book, 2, 1, 1);
    tell_verdict(&book, false);
    assert_int_equal(book.trial_count, 4);
    tell_pairs(&book, 1, 1, 2);
    assert_int_equal(book.trial_count, 1);
    checkbook_release(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
