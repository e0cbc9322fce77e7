/* SPDX-License-Identifier: Apache-2.0
 *
 * From what runs told to the record, and to the table.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/scalebook.h"
#include "launcher/scaletable.h"

enum { TEXT_BYTES = 1 << 16 };

static struct scaleplan plan_of(const char *counts, uint32_t repeats)
{
    struct scaleplan plan = {.repeats = repeats};
    assert_int_equal(
        scaleplan_parse_counts(plan.counts, &plan.count_count, counts, NULL),
        0);
    return plan;
}

static int take(struct scalebook *b, size_t i, struct scalebook_outcome *o,
                struct gpul_error *err)
{
    struct dossier nothing;
    struct scaleplan_run run = scaleplan_run_at(b->plan, i);
    dossier_init(&nothing);
    o->found = o->found != NULL ? o->found : &nothing;
    o->rank_count = o->rank_count > 0 ? o->rank_count : run.nodes;
    int rc = scalebook_take(b, &run, o, err);
    o->found = NULL;
    dossier_release(&nothing);
    return rc;
}

/* One line of rank 0, that of the job. */
static void take_line(struct scalebook *b, size_t i, const char *text)
{
    struct scalebook_rank rank = {.text = text, .step_s = (double)NAN};
    struct scalebook_outcome o = {.ranks = &rank, .rank_told = 1};
    assert_int_equal(take(b, i, &o, NULL), 0);
}

static void take_failure(struct scalebook *b, size_t i, int code)
{
    struct scalebook_outcome o = {.exit_code = code, .why = "it broke"};
    assert_int_equal(take(b, i, &o, NULL), 0);
}

static int finish(struct scalebook *b)
{
    const struct scalebook_end end = {.duration_s = 3};
    int code = scalebook_finish(b, &end);
    assert_false(b->record.is_failed);
    return code;
}

static const struct dossier_efficiency *row(const struct scalebook *b, size_t i)
{
    assert_true(i < dossier_count(&b->record, DOSSIER_EFFICIENCY));
    return dossier_at(&b->record, DOSSIER_EFFICIENCY, i);
}

static void assert_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-6 * expected)) {
        fail_msg("%.9g is not %.9g", actual, expected);
    }
}

static void expect_text(const struct scalebook *b, const char *part)
{
    struct gpul_buf out;
    gpul_buf_init(&out, TEXT_BYTES);
    assert_int_equal(
        scaletable_print(&out, &b->record, scalebook_source_text(b)), 0);
    if (strstr(gpul_buf_text(&out), part) == NULL) {
        fail_msg("it lacks \"%s\":\n%s", part, gpul_buf_text(&out));
    }
    gpul_buf_release(&out);
}

/* 100, 180 and 300 of 1, 2 and 4 nodes. */
static void test_lines(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,2,4", 3);
    static const char *const lines[] = {"100 img/s", "180", "300"};
    struct scalebook b;
    plan.predictions[0] = 8;
    plan.prediction_count = 1;
    scalebook_init(&b, &plan);
    for (size_t i = 0; i < 9; i++) {
        take_line(&b, i, lines[scaleplan_run_at(&plan, i).place]);
    }
    assert_int_equal(finish(&b), 0);
    assert_near(row(&b, 1)->efficiency, 0.9);
    assert_near(row(&b, 2)->efficiency, 0.75);
    assert_near(row(&b, 2)->throughput, 300);
    assert_string_equal(row(&b, 0)->unit, "img/s");
    assert_int_equal(dossier_count(&b.record, DOSSIER_SAMPLE), 9);
    const struct dossier_prediction *p =
        dossier_at(&b.record, DOSSIER_PREDICTION, 0);
    assert_null(p->refused);
    assert_true(p->efficiency_low < p->efficiency);
    assert_near(p->extrapolation, 2);
    assert_int_equal(p->from.count, 3);
    assert_string_equal(dossier_end(&b.record)->reason, "success");
    expect_text(&b, "\n     4      4       300.0       300.0 to 300.0      "
                    "0.750  0.75 to 0.75       -\n");
    expect_text(&b, "Throughput in img/s: the job's line");
    expect_text(&b, "Prediction for 8 nodes: efficiency 0.");
    scalebook_release(&b);
}

/* A count that failed always, one that failed once, and a reference that was
 * not given. */
static void test_failures(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,2,4", 2);
    struct scalebook b;
    plan.predictions[0] = 8;
    plan.prediction_count = 1;
    scalebook_init(&b, &plan);
    take_failure(&b, 0, 9);
    take_line(&b, 1, "200");
    take_line(&b, 2, "360");
    take_failure(&b, 3, 7);
    take_line(&b, 4, "200");
    take_failure(&b, 5, 9);
    assert_int_equal(finish(&b), 9);
    assert_true(isnan(row(&b, 0)->efficiency));
    assert_true(isnan(row(&b, 0)->throughput));
    assert_int_equal(row(&b, 0)->repeats, 0);
    assert_int_equal(row(&b, 2)->reference_node_count, 2);
    assert_near(row(&b, 2)->efficiency, 0.9);
    assert_non_null(strstr(row(&b, 2)->note, "1 repeat gave no figure"));
    const struct dossier_prediction *p =
        dossier_at(&b.record, DOSSIER_PREDICTION, 0);
    assert_non_null(p->refused);
    assert_true(isnan(p->efficiency));
    assert_string_equal(dossier_end(&b.record)->reason, "no_figure");
    expect_text(&b, "  1 node, repeat 1: it broke\n");
    assert_null(strstr(p->refused, "no prediction"));
    expect_text(&b, "Prediction for 8 nodes: none: ");
    scalebook_release(&b);
}

/* Nothing was complete, not even the count of ranks. */
static void test_all_failed(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,2", 1);
    struct scalebook b;
    scalebook_init(&b, &plan);
    take_failure(&b, 0, 40);
    take_failure(&b, 1, 41);
    assert_int_equal(finish(&b), 40);
    assert_true(isnan(row(&b, 1)->efficiency));
    scalebook_release(&b);

    scalebook_init(&b, &plan);
    assert_int_equal(finish(&b), 0);
    assert_int_equal(dossier_count(&b.record, DOSSIER_EFFICIENCY), 0);
    scalebook_release(&b);
}

/* The reference that was asked for has no figure: throughputs only. */
static void test_no_reference(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,2", 1);
    struct scalebook b;
    plan.reference = 1;
    scalebook_init(&b, &plan);
    take_failure(&b, 0, 3);
    take_line(&b, 1, "200");
    assert_int_equal(finish(&b), 3);
    assert_near(row(&b, 1)->throughput, 200);
    assert_true(isnan(row(&b, 1)->efficiency));
    assert_int_equal(row(&b, 1)->reference_node_count, 1);
    scalebook_release(&b);
}

static void take_steps(struct scalebook *b, size_t i, double slow_s)
{
    struct scalebook_rank ranks[] = {
        {.rank = 0, .steps = 10, .step_s = 1},
        {.rank = 1, .steps = 10, .step_s = slow_s},
    };
    uint32_t nodes = scaleplan_run_at(b->plan, i).nodes;
    struct scalebook_outcome o = {.ranks = ranks, .rank_told = nodes};
    assert_int_equal(take(b, i, &o, NULL), 0);
}

/* Of the slowest; weak: each step does the work of all ranks. */
static void test_steps(void **state)
{
    (void)state;
    for (int is_strong = 0; is_strong < 2; is_strong++) {
        struct scaleplan plan = plan_of("1,2", 1);
        struct scalebook b;
        plan.is_strong = is_strong;
        scalebook_init(&b, &plan);
        take_steps(&b, 0, 0);
        take_steps(&b, 1, 2);
        assert_int_equal(finish(&b), 0);
        assert_near(row(&b, 0)->throughput, 10);
        assert_near(row(&b, 1)->throughput, is_strong ? 5 : 10);
        assert_near(row(&b, 1)->efficiency, is_strong ? 0.25 : 0.5);
        const struct dossier_sample *s =
            dossier_at(&b.record, DOSSIER_SAMPLE, 1);
        assert_int_equal(s->slowest_rank, 1);
        assert_near(s->step_s, 0.2);
        scalebook_release(&b);
    }
}

/* The slowest may be the one that told nothing. */
static void test_steps_missing(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("2", 2);
    struct scalebook b;
    scalebook_init(&b, &plan);
    take_steps(&b, 0, 2);
    struct scalebook_rank one = {.rank = 0, .steps = 10, .step_s = 1};
    struct scalebook_outcome o = {.ranks = &one, .rank_told = 1};
    assert_int_equal(take(&b, 1, &o, NULL), 0);
    assert_true(isnan(b.samples[1].rate));
    assert_non_null(strstr(b.samples[1].note, "not every rank"));
    assert_int_equal(finish(&b), 0);
    scalebook_release(&b);
}

static void refused(const struct scaleplan *plan, struct scalebook_outcome *o,
                    const char *part)
{
    struct gpul_error err = {0};
    struct scalebook b;
    scalebook_init(&b, plan);
    assert_int_equal(take(&b, 0, o, &err), GPUL_EINVAL);
    assert_non_null(strstr(err.text, part));
    assert_non_null(strstr(b.samples[0].note, part));
    scalebook_release(&b);
}

static void test_refusals(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("4", 1);
    struct metricline_figure half[] = {{0, 1}, {1, 1}};
    struct scalebook_rank word = {.rank = 2, .text = "fast"};
    struct scalebook_outcome nothing = {0};
    struct scalebook_outcome words = {.ranks = &word, .rank_told = 1};
    struct scalebook_outcome some = {.figures = half, .figure_count = 2};
    refused(&plan, &nothing, "--metric REGEX");
    refused(&plan, &words, "rank 2 wrote \"fast\"");
    plan.metric = "(x)";
    refused(&plan, &nothing, "no line of a rank");
    refused(&plan, &some, "2 of 4 ranks");
}

static void test_time(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,2", 1);
    struct scalebook b;
    plan.is_strong = true;
    scalebook_init(&b, &plan);
    struct scalebook_outcome one = {.run_s = 8}, two = {.run_s = 5};
    assert_int_equal(take(&b, 0, &one, NULL), 0);
    assert_int_equal(take(&b, 1, &two, NULL), 0);
    assert_int_equal(finish(&b), 0);
    assert_near(row(&b, 1)->efficiency, 0.8);
    assert_string_equal(row(&b, 1)->unit, "runs/s");
    scalebook_release(&b);
}

/* An all-reduce of 1 ms and 10 GB/s of busbw, `slower` times as slow. */
static void add_rows(struct dossier *d, double ranks, double slower)
{
    double factor = 2 * (ranks - 1) / ranks;
    for (int64_t bytes = 1 << 20; bytes <= 1 << 26; bytes *= 4) {
        struct dossier_bandwidth *r = dossier_add(d, DOSSIER_BANDWIDTH);
        assert_non_null(r);
        r->collective = "all-reduce";
        r->scope = "world";
        r->verdict = "unknown";
        r->bytes = bytes;
        r->median_s = slower * (1e-3 + factor * (double)bytes / 10e9);
        r->busbw = factor * (double)bytes / r->median_s;
    }
}

/* The run in the middle counts; the largest size stands beside the count; the
 * fit finds what the rows were made of. */
static void test_bandwidth(void **state)
{
    (void)state;
    struct scaleplan plan = plan_of("1,4", 3);
    static const double slower[] = {1, 1, 3, 1, 1, 0.5};
    struct scalebook b;
    scalebook_init(&b, &plan);
    for (size_t i = 0; i < 6; i++) {
        struct dossier found;
        struct scalebook_rank rank = {.text = "5"};
        struct scalebook_outcome o = {
            .ranks = &rank, .rank_told = 1, .found = &found};
        dossier_init(&found);
        if (scaleplan_run_at(&plan, i).nodes == 4) {
            add_rows(&found, 4, slower[i]);
        }
        assert_int_equal(take(&b, i, &o, NULL), 0);
        dossier_release(&found);
    }
    assert_int_equal(finish(&b), 0);
    assert_int_equal(dossier_count(&b.record, DOSSIER_BANDWIDTH), 4);
    assert_true(isnan(row(&b, 0)->busbw));
    double bytes = 1 << 26;
    assert_near(row(&b, 1)->busbw, 1.5 * bytes / (1e-3 + 1.5 * bytes / 10e9));
    assert_true(row(&b, 1)->is_comparable);
    const struct dossier_fit *fit = dossier_at(&b.record, DOSSIER_FIT, 0);
    assert_int_equal(fit->node_count, 4);
    assert_string_equal(fit->parameters.keys[2], "busbw_bytes_per_second");
    assert_near(fit->parameters.values[0], 1e-3);
    assert_near(fit->parameters.values[2], 10e9);
    assert_true(fit->is_usable);
    scalebook_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_failures),
        cmocka_unit_test(test_all_failed), cmocka_unit_test(test_no_reference),
        cmocka_unit_test(test_steps),      cmocka_unit_test(test_steps_missing),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_time),
        cmocka_unit_test(test_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
