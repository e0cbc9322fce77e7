/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/dossier_diff.h"
#include "tests/lib/dossier_sample.h"

enum { BYTES_MAX = 1 << 20 };

static struct dossier a, b;
static struct gpul_buf out;

static int set_up(void **state)
{
    (void)state;
    dossier_init(&a);
    dossier_init(&b);
    dossier_sample(&a);
    dossier_sample(&b);
    gpul_buf_init(&out, BYTES_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dossier_release(&a);
    dossier_release(&b);
    gpul_buf_release(&out);
    return 0;
}

/* An item of `b`, to be changed. */
static void *item(enum dossier_type type, size_t i)
{
    return (void *)(uintptr_t)dossier_at(&b, type, i);
}

static void expect(const char *text)
{
    bool is_same = false;
    assert_int_equal(dossier_diff(&out, &is_same, &a, &b), 0);
    assert_int_equal(is_same, text[0] == '\0');
    assert_string_equal(gpul_buf_text(&out), text);
}

static void test_the_same(void **state)
{
    (void)state;
    struct dossier_node *node = item(DOSSIER_NODE, 0);
    assert_string_equal(node->facts.keys[1], "memory.available");
    node->facts.values[1] = "2";
    struct dossier_bandwidth *row = item(DOSSIER_BANDWIDTH, 0);
    row->busbw *= 1.04;
    struct dossier_finding *passed = item(DOSSIER_FINDING, 4);
    passed->text = "another text of what passes";
    expect("");
}

static void test_all_that_may_change(void **state)
{
    (void)state;
    struct dossier_node *node = item(DOSSIER_NODE, 2);
    node->facts.values[0] = "570.86";
    node->unknown.count = 0;
    struct dossier_node *last = item(DOSSIER_NODE, 7);
    last->name = "n9";
    struct dossier_finding *mended = item(DOSSIER_FINDING, 0);
    mended->severity = "pass";
    struct dossier_finding *f = dossier_add(&b, DOSSIER_FINDING);
    f->id = "HOST-501";
    f->severity = "fail";
    f->text = "/dev/shm is full";
    dossier_append(&b, &f->nodes, "n1");
    struct dossier_bandwidth *row = item(DOSSIER_BANDWIDTH, 8);
    row->busbw *= 0.5;
    struct dossier_efficiency *e = item(DOSSIER_EFFICIENCY, 3);
    e->efficiency = (double)NAN;
    struct dossier_end *end = item(DOSSIER_END, 0);
    end->exit_code = 0;
    end->reason = "success";
    expect("records\n"
           "~ exit code: 20 -> 0 (success)\n"
           "\n"
           "nodes\n"
           "- n7\n"
           "~ n2: gpu.driver: 565.57 -> 570.86\n"
           "- n2: rdma.devices: unknown\n"
           "+ n9\n"
           "\n"
           "findings\n"
           "- VER-304 fail n2: driver 565.57 on n2, 570.86 on 7 nodes\n"
           "+ HOST-501 fail n1: /dev/shm is full\n"
           "\n"
           "bus bandwidth\n"
           "~ all-reduce, 2 nodes, 128 MiB: 1.10 GB/s -> 0.549 GB/s (-50 %)\n"
           "\n"
           "scaling efficiency\n"
           "~ 8 nodes: 79 % -> unknown\n");
}

static void test_records_of_another_kind(void **state)
{
    (void)state;
    struct dossier_run *run = item(DOSSIER_RUN, 0);
    run->verb = "scale";
    run->is_simulated = true;
    b.lists[DOSSIER_END].count = 0;
    expect("records\n"
           "~ verb: check -> scale\n"
           "~ the second one is SIMULATED: its figures are none\n"
           "~ the second one was cut short\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_that_may_change, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_records_of_another_kind, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
