/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/buf.h"
#include "launcher/report.h"

static char text[] = "rank 1 on node local-1 (box) exited with code 7";
static char text_with_log[] =
    "rank 1 on node local-1 (box) exited with code 7; its log: /l/rank-1.err";
static char log_path[] = "/l/rank-1.err";
static char reason[] = "deadline";
static char empty[] = "";

/* The coordinator's sentence stands; the log is named once. */
static void test_sentence(void **state)
{
    (void)state;
    static const struct {
        char *text;
        char *log;
        int has_rank;
        const char *log_dir;
        const char *expected;
    } cases[] = {
        {text_with_log, log_path, 1, "/l", text_with_log},
        {text, log_path, 1, "/l", text_with_log},
        {text, empty, 1, "/l",
         "rank 1 on node local-1 (box) exited with code 7; logs: /l"},
        {text, empty, 1, "", text},
        {text, empty, 1, NULL, text},
        {text, empty, 0, "/l", text},
        {empty, empty, 0, "/l", "deadline"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Gpul__JobEnd end = GPUL__JOB_END__INIT;
        end.text = cases[i].text;
        end.log = cases[i].log;
        end.has_rank = cases[i].has_rank;
        end.reason = reason;
        struct gpul_buf out;
        gpul_buf_init(&out, 4096);
        assert_int_equal(report_sentence(&out, &end, cases[i].log_dir), 0);
        assert_string_equal(gpul_buf_text(&out), cases[i].expected);
        gpul_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
