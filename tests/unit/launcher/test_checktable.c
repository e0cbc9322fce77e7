/* SPDX-License-Identifier: Apache-2.0
 *
 * What a check has told, kept and printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/checkdossier.h"
#include "launcher/checktable.h"

static Gpul__Finding finding(const char *id, Gpul__Finding__Severity severity,
                             const char *nodes, const char *text)
{
    Gpul__Finding f = GPUL__FINDING__INIT;
    f.id = (char *)(uintptr_t)id;
    f.severity = severity;
    f.nodes = (char *)(uintptr_t)nodes;
    f.text = (char *)(uintptr_t)text;
    return f;
}

static void tell(struct checkbook *book, Gpul__Finding *f)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__FINDINGS;
    event.findings = &f;
    event.n_findings = 1;
    checkbook_event(book, &event);
}

static void tell_fact(struct checkbook *book, const char *node,
                      const char *value)
{
    Gpul__Fact fact = GPUL__FACT__INIT;
    Gpul__Fact *facts[] = {&fact};
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__FACTS;
    event.node_name = (char *)(uintptr_t)node;
    fact.key = (char *)(uintptr_t) "os.kernel";
    fact.value = (char *)(uintptr_t)value;
    event.facts = facts;
    event.n_facts = 1;
    checkbook_event(book, &event);
}

static void fill(struct checkbook *book)
{
    Gpul__Finding pass = finding("HOST-501", GPUL__FINDING__SEVERITY__PASS, "",
                                 "shared memory is fine");
    Gpul__Finding warn = finding("NET-120", GPUL__FINDING__SEVERITY__WARN,
                                 "node[1-3]", "the name is 127.0.0.1");
    Gpul__Finding fail =
        finding("NET-110", GPUL__FINDING__SEVERITY__FAIL, "node[1,3]",
                "node1 -> node3 (10.0.0.3, eth0): timed out; node3 -> node1 "
                "works, and so do all the others");
    fail.value = (char *)(uintptr_t) "1500";
    fail.expected = (char *)(uintptr_t) "9000";
    fail.remedy = (char *)(uintptr_t) "open the ports";
    tell(book, &pass);
    tell(book, &warn);
    tell(book, &fail);
}

static void end(struct record *r, uint32_t code, const char *reason)
{
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    Gpul__FindingCounts counts = GPUL__FINDING_COUNTS__INIT;
    counts.passed = 40;
    counts.warned = 1;
    counts.failed = code != 0;
    end.exit_code = code;
    end.reason = (char *)(uintptr_t)reason;
    end.text = (char *)(uintptr_t) "it was so";
    end.findings = &counts;
    assert_int_equal(record_end(r, &end, 0), 0);
}

static void expect(const struct checktable *t, const char *expected)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 20);
    assert_int_equal(checktable_print(&out, t), 0);
    assert_string_equal(gpul_buf_text(&out), expected);
    gpul_buf_release(&out);
}

/* The worst first, whatever order they came in; no line over the width. */
static void test_table(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct record record = {0};
    fill(&book);
    end(&record, 20, "check_failed");
    struct checktable t = {.book = &book,
                           .record = &record,
                           .node_count = 4,
                           .exit_code = 20,
                           .width = 60};
    expect(&t,
           "FAIL    NET-110  node[1,3]\n"
           "    node1 -> node3 (10.0.0.3, eth0): timed out; node3 ->\n"
           "      node1 works, and so do all the others\n"
           "    found 1500, expected 9000\n"
           "    -> open the ports\n"
           "WARN    NET-120  node[1-3]\n"
           "    the name is 127.0.0.1\n"
           "FAILED  4 nodes: 1 failed, 0 unknown, 1 warning, 40 passed; exit "
           "code 20\n"
           "    begin with NET-110 on node[1,3]\n");
    record_release(&record);
    checkbook_release(&book);
}

static void test_passed(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct record record = {.is_simulated = true};
    Gpul__Finding pass = finding("HOST-501", GPUL__FINDING__SEVERITY__PASS, "",
                                 "shared memory is fine");
    tell(&book, &pass);
    end(&record, 0, "success");
    struct checktable t = {.book = &book,
                           .record = &record,
                           .node_count = 1,
                           .has_color = true,
                           .has_passes = true};
    expect(&t, "\x1b[32mPASS\x1b[0m    HOST-501\n"
               "    shared memory is fine\n"
               "SIMULATED \x1b[32mPASSED\x1b[0m  1 node: 0 failed, 0 unknown, "
               "1 warning, 40 passed; exit code 0\n");
    record_release(&record);
    checkbook_release(&book);
}

/* What ended it is said; without the coordinator's counts they are made here.
 */
static void test_early(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct record record = {0};
    Gpul__JobEnd lost = GPUL__JOB_END__INIT;
    lost.exit_code = 75;
    lost.reason = (char *)(uintptr_t) "coordinator_lost";
    lost.text = (char *)(uintptr_t) "the coordinator was lost";
    Gpul__Finding warn =
        finding("NET-120", GPUL__FINDING__SEVERITY__WARN, "a", "loopback");
    tell(&book, &warn);
    assert_int_equal(record_end(&record, &lost, 0), 0);
    struct checktable t = {
        .book = &book, .record = &record, .node_count = 2, .exit_code = 75};
    expect(&t, "WARN    NET-120  a\n"
               "    loopback\n"
               "ENDED EARLY  2 nodes: 0 failed, 0 unknown, 1 warning, 0 "
               "passed; exit code 75\n"
               "    the coordinator was lost\n");
    record_release(&record);
    checkbook_release(&book);
}

/* A check that is begun anew asks again: the last facts count. */
static void test_dossier(void **state)
{
    (void)state;
    struct checkbook book = {0};
    struct record record = {0};
    struct plan plan = {.verb = PLAN_DOCTOR, .node_count = 1};
    struct dossier d;
    Gpul__Member member = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&member};
    Gpul__Event assigned = GPUL__EVENT__INIT;
    member.node_name = (char *)(uintptr_t) "a";
    assigned.kind = GPUL__EVENT__KIND__ASSIGNED;
    assigned.members = members;
    assigned.n_members = 1;
    record_event(&record, &assigned, 1);
    fill(&book);
    tell_fact(&book, "a", "6.1");
    tell_fact(&book, "a", "6.2");
    end(&record, 20, "check_failed");
    dossier_init(&d);
    const struct checkdossier source = {.plan = &plan,
                                        .record = &record,
                                        .book = &book,
                                        .job_id = "j1",
                                        .exit_code = 20};
    checkdossier_fill(&d, &source);
    assert_false(d.is_failed);
    assert_string_equal(dossier_run(&d)->verb, "doctor");
    const struct dossier_node *node = dossier_find_node(&d, "a");
    assert_int_equal(node->facts.count, 1);
    assert_string_equal(node->facts.values[0], "6.2");
    assert_int_equal(dossier_count(&d, DOSSIER_FINDING), 3);
    const struct dossier_finding *f = dossier_at(&d, DOSSIER_FINDING, 0);
    assert_string_equal(f->severity, "fail");
    assert_int_equal(f->nodes.count, 2);
    assert_string_equal(f->nodes.items[1], "node3");
    assert_int_equal(dossier_end(&d)->passes, 40);
    dossier_release(&d);
    record_release(&record);
    checkbook_release(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_passed),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_dossier),
    };
    return cmocka_run_group_tests_name("checktable", tests, NULL, NULL);
}
