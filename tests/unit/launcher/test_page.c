/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/page.h"
#include "tests/lib/dossier_sample.h"

enum { BYTES_MAX = 4 << 20 };

static char *draw(struct gpul_buf *out, const struct dossier *d)
{
    gpul_buf_init(out, BYTES_MAX);
    assert_int_equal(page_draw(out, d), 0);
    return (char *)(uintptr_t)gpul_buf_text(out);
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("the page lacks: %s", part);
    }
}

static void expect_not(const char *text, const char *part)
{
    if (strstr(text, part) != NULL) {
        fail_msg("the page has: %s", part);
    }
}

static void test_all_of_a_record(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    dossier_sample(&d);
    const char *text = draw(&out, &d);
    const char *file = getenv("GPULAUNCH_TEST_PAGE"); /* to look at it */
    if (file != NULL) {
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
    }
    expect(text, "Not passed, exit code 20");
    expect(text, "default-src 'none'");
    expect(text, "VER-304");
    expect(text, "driver 565.57 on n2, 570.86 on 7 nodes");
    expect(text, "timed out &lt;at 10.0.0.3:40001&gt;");
    expect(text, "<b>n5</b></td><td class=\"fail\">slow (send)");
    expect(text, "after 3 rounds");
    expect(text, "title=\"n1-&gt;n2 timed out\">&#215;");
    expect(text, "ceiling (TCP)");
    expect(text, "<polyline class=\"s0\" ");
    expect(text, "<polyline class=\"s1\" "); /* of 8 nodes, not of 2 */
    expect(text, "<b class=\"fail\">2</b>failed");
    expect(text, "64 nodes: 50 % (40 % to 60 %), extrapolated by a factor of");
    expect(text, "4096 nodes: no prediction: the fit is off by 31 %");
    expect(text, "not comparable");
    expect(text, "--token=***");
    expect_not(text, "hide");
    expect_not(text, "(SIMULATED)");
    dossier_release(&d);
    gpul_buf_release(&out);
}

/* Each count of nodes has a colour of its own, with a ceiling and without. */
static void test_no_ceilings(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    dossier_sample(&d);
    for (size_t i = 0; i < dossier_count(&d, DOSSIER_BANDWIDTH); i++) {
        struct dossier_bandwidth *b =
            (void *)(uintptr_t)dossier_at(&d, DOSSIER_BANDWIDTH, i);
        b->ceiling = (double)NAN;
        b->ceiling_kind = NULL;
    }
    const char *text = draw(&out, &d);
    expect(text, "<polyline class=\"s1\" ");
    expect_not(text, "ceiling (");
    dossier_release(&d);
    gpul_buf_release(&out);
}

static void test_no_findings_no_counts(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    dossier_add(&d, DOSSIER_RUN);
    struct dossier_end *end = dossier_add(&d, DOSSIER_END);
    end->exit_code = 0;
    dossier_count_findings(&d, end);
    const char *text = draw(&out, &d);
    expect(text, "Passed");
    expect_not(text, "class=\"tiles\"");
    dossier_release(&d);
    gpul_buf_release(&out);
}

/* Whatever stands in a record, it stays text, and nothing is fetched. */
static void test_hostile_texts_stay_text(void **state)
{
    (void)state;
    static const char hostile[] = "</td><script src=//x></script>\"'";
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
    run->verb = run->version = run->job_id = run->backend = hostile;
    struct dossier_node *node = dossier_add(&d, DOSSIER_NODE);
    node->name = node->host = node->address = node->interface = hostile;
    dossier_put(&d, &node->facts, hostile, hostile);
    dossier_put(&d, &node->unknown, hostile, hostile);
    dossier_append(&d, &node->rejected, hostile);
    struct dossier_finding *f = dossier_add(&d, DOSSIER_FINDING);
    f->id = f->severity = f->text = f->value = f->expected = hostile;
    f->remedy = hostile;
    dossier_append(&d, &f->nodes, hostile);
    struct dossier_pair *pair = dossier_add(&d, DOSSIER_PAIR);
    pair->a = pair->b = pair->rail = pair->error = hostile;
    struct dossier_verdict *v = dossier_add(&d, DOSSIER_VERDICT);
    v->what = v->state = v->direction = v->rail = v->text = hostile;
    struct dossier_bandwidth *b = dossier_add(&d, DOSSIER_BANDWIDTH);
    b->collective = b->scope = b->ceiling_kind = b->verdict = hostile;
    struct dossier_efficiency *e = dossier_add(&d, DOSSIER_EFFICIENCY);
    e->scaling = e->unit = e->note = hostile;
    struct dossier_fit *fit = dossier_add(&d, DOSSIER_FIT);
    fit->model = fit->note = hostile;
    struct dossier_prediction *p = dossier_add(&d, DOSSIER_PREDICTION);
    p->refused = hostile;
    struct dossier_end *end = dossier_add(&d, DOSSIER_END);
    end->message = end->reason = hostile;
    const char *text = draw(&out, &d);
    expect_not(text, "<script");
    expect_not(text, "//x>");
    expect(text, "&lt;script src=//x&gt;");
    dossier_release(&d);
    gpul_buf_release(&out);
}

static void test_what_is_cut_or_simulated_says_so(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
    run->verb = "check";
    run->is_simulated = true;
    const char *text = draw(&out, &d);
    expect(text, "<title>gpulaunch check (SIMULATED)</title>");
    expect(text, "it was cut short");
    expect_not(text, "Passed");
    dossier_release(&d);
    gpul_buf_release(&out);
}

/* The start of a run, whatever number stands in its record. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        int64_t unix_s;
        const char *text;
    } table[] = {
        {0, "soft\">1970-01-01 00:00 UTC, job "},
        {951782399, "soft\">2000-02-28 23:59 UTC, job "},
        {951868800, "soft\">2000-03-01 00:00 UTC, job "},
        {1709164800, "soft\">2024-02-29 00:00 UTC, job "},
        {1796119200, "soft\">2026-12-01 10:00 UTC, job "},
        {4107542400, "soft\">2100-03-01 00:00 UTC, job "},
        {253402300799, "soft\">9999-12-31 23:59 UTC, job "},
        {253402300800, "soft\">unknown, job "},
        {-1, "soft\">unknown, job "},
        {DOSSIER_UNKNOWN, "soft\">unknown, job "},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct dossier d;
        struct gpul_buf out;
        dossier_init(&d);
        struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
        run->verb = "check";
        run->started_unix_s = table[i].unix_s;
        expect(draw(&out, &d), table[i].text);
        dossier_release(&d);
        gpul_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_record),
        cmocka_unit_test(test_no_ceilings),
        cmocka_unit_test(test_no_findings_no_counts),
        cmocka_unit_test(test_hostile_texts_stay_text),
        cmocka_unit_test(test_what_is_cut_or_simulated_says_so),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
