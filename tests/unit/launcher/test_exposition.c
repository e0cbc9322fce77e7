/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "launcher/exposition.h"
#include "tests/lib/dossier_sample.h"

enum { BYTES_MAX = 1 << 20 };

static void expect_line(struct gpul_buf *out, const char *line)
{
    size_t count = 0;
    const char *at = gpul_buf_text(out);
    while ((at = strstr(at, line)) != NULL) {
        count++;
        at++;
    }
    if (count != 1) {
        fail_msg("%zu times %s in\n%s", count, line, gpul_buf_text(out));
    }
}

static void test_all_of_a_record(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    dossier_sample(&d);
    gpul_buf_init(&out, BYTES_MAX);
    assert_int_equal(exposition_draw(&out, &d), 0);
    expect_line(&out, "gpulaunch_record_info{verb=\"check\",version=\"1.2.3\","
                      "backend=\"host-tcp\",simulated=\"false\"} 1\n");
    expect_line(&out, "gpulaunch_record_is_complete 1\n");
    expect_line(&out, "gpulaunch_record_exit_code 20\n");
    expect_line(&out, "gpulaunch_check_findings{severity=\"unknown\"} 1\n");
    expect_line(&out, "gpulaunch_check_finding{id=\"VER-304\",severity="
                      "\"fail\",node=\"n2\"} 1\n");
    expect_line(&out, "gpulaunch_check_finding{id=\"RDMA-601\",severity="
                      "\"unknown\",node=\"\"} 1\n");
    expect_line(&out, "gpulaunch_scaling_efficiency_ratio{nodes=\"8\","
                      "scaling=\"weak\"} 0.79\n");
    expect_line(&out, "# TYPE gpulaunch_bus_bandwidth_bytes_per_second gauge");
    gpul_buf_release(&out);
    dossier_release(&d);
}

static void test_no_line_twice_and_no_quote_breaks_out(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
    run->version = "a\"b\\c";
    for (int i = 0; i < 2; i++) {
        struct dossier_finding *f = dossier_add(&d, DOSSIER_FINDING);
        f->id = "NET-110";
        f->severity = "fail";
        dossier_append(&d, &f->nodes, "a");
    }
    gpul_buf_init(&out, BYTES_MAX);
    assert_int_equal(exposition_draw(&out, &d), 0);
    expect_line(&out, "version=\"a\\\"b\\\\c\"");
    expect_line(&out, "gpulaunch_check_finding{id=\"NET-110\"");
    expect_line(&out, "gpulaunch_record_is_complete 0\n");
    assert_null(strstr(gpul_buf_text(&out), "exit_code"));
    gpul_buf_release(&out);
    dossier_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_record),
        cmocka_unit_test(test_no_line_twice_and_no_quote_breaks_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
