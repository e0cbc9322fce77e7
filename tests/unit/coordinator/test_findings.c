/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/findings.h"

static int add(struct findings *f, const char *id,
               Gpul__Finding__Severity severity, const char *text)
{
    const struct finding finding = {
        .id = id, .severity = severity, .text = text};
    return findings_add(f, &finding);
}

#define ADD(f, id, severity, text)                                             \
    assert_int_equal(add(f, id, GPUL__FINDING__SEVERITY__##severity, text), 0)

/* What each id stands for. */
static void test_codes(void **state)
{
    (void)state;
    assert_int_equal(finding_code("DATA-801"), 21);
    assert_int_equal(finding_code("NET-110"), 20);
    assert_int_equal(finding_code("PERF-701"), 30);
    assert_int_equal(finding_code("PERF-709"), 125);
    assert_int_equal(finding_code("HOST-701"), 20);
}

/* 21 before 20 before 30 before 125; doubts count when that is asked for. */
static void test_worst(void **state)
{
    (void)state;
    struct findings f = {0};
    assert_int_equal(findings_code(&f, true), 0);
    ADD(&f, "HOST-502", PASS, "a");
    assert_int_equal(findings_code(&f, true), 0);
    ADD(&f, "PERF-705", UNKNOWN, "b");
    assert_int_equal(findings_code(&f, false), 0);
    assert_int_equal(findings_code(&f, true), 20);
    assert_string_equal(findings_cause(&f, OUTCOME_CHECK_FAILED)->id,
                        "PERF-705");
    assert_null(findings_cause(&f, OUTCOME_SUCCESS));
    ADD(&f, "PERF-709", FAIL, "c");
    assert_int_equal(findings_code(&f, false), 125);
    ADD(&f, "PERF-701", FAIL, "d");
    assert_int_equal(findings_code(&f, false), 30);
    assert_int_equal(findings_code(&f, true), 20);
    ADD(&f, "NET-110", FAIL, "e");
    assert_int_equal(findings_code(&f, false), 20);
    ADD(&f, "DATA-801", FAIL, "f");
    assert_int_equal(findings_code(&f, false), 21);
    assert_string_equal(findings_cause(&f, OUTCOME_WRONG_DATA)->text, "f");
    assert_string_equal(findings_cause(&f, OUTCOME_SLOW)->text, "d");
    findings_release(&f);
}

/* A generation that is begun anew finds the same again. */
static void test_twice(void **state)
{
    (void)state;
    struct findings f = {0};
    Gpul__FindingCounts counts;
    Gpul__Finding **page;
    ADD(&f, "NET-110", FAIL, "a -> b");
    ADD(&f, "NET-110", FAIL, "a -> b");
    ADD(&f, "NET-110", FAIL, "b -> a");
    ADD(&f, "NET-110", WARN, "a -> b");
    findings_fill(&f, &counts);
    assert_int_equal(counts.failed, 2);
    assert_int_equal(counts.warned, 1);
    assert_int_equal(findings_next(&f, &page, 2), 2);
    assert_string_equal(page[1]->text, "b -> a");
    assert_int_equal(findings_next(&f, &page, 2), 1);
    assert_int_equal(findings_next(&f, &page, 2), 0);
    findings_release(&f);
}

/* What finds no room is counted; passes leave room for what matters. */
static void test_bounds(void **state)
{
    (void)state;
    struct findings f = {0};
    Gpul__FindingCounts counts;
    char text[32];
    for (unsigned i = 0; i < GPUL_CHECK_FINDINGS_MAX; i++) {
        snprintf(text, sizeof(text), "%u", i);
        ADD(&f, "HOST-502", PASS, text);
    }
    for (unsigned i = 0; i < GPUL_CHECK_FINDINGS_MAX; i++) {
        snprintf(text, sizeof(text), "%u", i);
        ADD(&f, "NET-110", FAIL, text);
    }
    findings_fill(&f, &counts);
    assert_int_equal(f.count, GPUL_CHECK_FINDINGS_MAX);
    assert_int_equal(counts.passed, GPUL_CHECK_FINDINGS_MAX);
    assert_int_equal(counts.failed, GPUL_CHECK_FINDINGS_MAX);
    assert_int_equal(counts.untold, GPUL_CHECK_FINDINGS_MAX);
    findings_release(&f);
}

/* Texts over their bound are cut between two characters. */
static void test_cut(void **state)
{
    (void)state;
    struct findings f = {0};
    static char longer[GPUL_TEXT_BYTES_MAX + 8];
    memset(longer, 'x', sizeof(longer) - 1);
    memcpy(longer + GPUL_TEXT_BYTES_MAX - 1, "\xc3\xa4", 2);
    ADD(&f, "NET-110", FAIL, longer);
    assert_int_equal(strlen(f.items[0]->text), GPUL_TEXT_BYTES_MAX - 1);
    assert_string_equal(f.items[0]->remedy, "");
    findings_release(&f);
}

static void test_fold(void **state)
{
    (void)state;
    char out[GPUL_CHECK_NODES_BYTES_MAX + 1];
    static char names[2000][24];
    const char *list[2000];
    for (int i = 0; i < 2000; i++) {
        snprintf(names[i], sizeof(names[i]), "n%dx%d", i * 7, i * i);
        list[i] = names[i];
    }
    finding_fold(out, list, 0);
    assert_string_equal(out, "");
    static const char *const three[] = {"a7", "a8", "b"};
    finding_fold(out, three, 3);
    assert_string_equal(out, "a[7-8],b");
    finding_fold(out, list, 2000); /* as many as fit */
    assert_in_range(strlen(out), 100, GPUL_CHECK_NODES_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes), cmocka_unit_test(test_worst),
        cmocka_unit_test(test_twice), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_cut),   cmocka_unit_test(test_fold),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
