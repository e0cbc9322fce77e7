/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "launcher/junit.h"
#include "tests/lib/dossier_sample.h"

enum { BYTES_MAX = 1 << 20 };

static void expect(struct gpul_buf *out, const char *part)
{
    if (strstr(gpul_buf_text(out), part) == NULL) {
        fail_msg("no %s in\n%s", part, gpul_buf_text(out));
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
    assert_int_equal(junit_draw(&out, &d), 0);
    /* 5 findings, 1 verdict, 18 bandwidths: 12 of them too small */
    expect(&out, "name=\"gpulaunch check\" tests=\"24\" failures=\"3\" "
                 "errors=\"0\" skipped=\"13\" time=\"12.500\"");
    expect(&out, "classname=\"gpulaunch.check.finding\" name=\"VER-304 n2\">"
                 "<failure message=\"driver 565.57 on n2, 570.86 on 7 nodes "
                 "-&gt; install driver 570.86 on n2\"/>");
    expect(&out, "name=\"RDMA-601\"><skipped message=\"could not be read\"/>");
    expect(&out, "name=\"HOST-502 n0\"><system-out>memlock is 8192 kB");
    expect(&out, "name=\"HOST-501\"/>");
    expect(&out, "name=\"node n5 on eth0\"><failure message=\"0.3 GB/s with");
    expect(&out, "name=\"all-reduce 16777216 bytes, 8 nodes, world\"/>");
    gpul_buf_release(&out);
    dossier_release(&d);
}

static void test_a_record_that_was_cut_is_an_error(void **state)
{
    (void)state;
    struct dossier d;
    struct gpul_buf out;
    dossier_init(&d);
    struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
    run->verb = "check";
    gpul_buf_init(&out, BYTES_MAX);
    assert_int_equal(junit_draw(&out, &d), 0);
    expect(&out, "tests=\"1\" failures=\"0\" errors=\"1\"");
    expect(&out, "<error message=\"the record has no end");
    gpul_buf_release(&out);
    dossier_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_record),
        cmocka_unit_test(test_a_record_that_was_cut_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
