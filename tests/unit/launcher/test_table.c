/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "launcher/table.h"

static Gpul__SelfTestRow small = {
    .bytes = 8,
    .count = 2,
    .iterations = 20,
    .min_ns = 41210,
    .median_ns = 45000,
    .max_ns = 1234567,
    .algbw_gbps = 0.00018,
    .busbw_gbps = 0.00027,
};

static Gpul__SelfTestRow large = {
    .bytes = 268435456,
    .count = 67108864,
    .iterations = 5,
    .min_ns = 190000000,
    .median_ns = 201234567,
    .max_ns = 999999999999,
    .algbw_gbps = 1.334,
    .busbw_gbps = 2.001,
    .wrong_elements = 3,
};

static Gpul__SelfTestRow *rows[] = {&small, &large};

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        longest = n > longest ? n : longest;
        text += n + (text[n] == '\n');
    }
    return longest;
}

/* The full table has nccl-tests' columns, with units, within 80 columns. */
static void test_full(void **state)
{
    (void)state;
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(table_self_test(&out, rows, 2, 4, 80), 0);
    assert_string_equal(
        gpul_buf_text(&out),
        "# all-reduce, 4 nodes, slowest rank\n"
        "#    size    count  type redop     time      min      max  algbw  "
        "busbw #wrong\n"
        "#     (B)   (elem)                 (us)     (us)     (us) (GB/s) "
        "(GB/s)       \n"
        "        8        2 float   sum    45.00    41.21   1234.6   0.00   "
        "0.00      0\n"
        "268435456 67108864 float   sum 201234.6 190000.0 1000000000   1.33   "
        "2.00      3\n");
    assert_true(longest_line(gpul_buf_text(&out)) <= 80);
    gpul_buf_release(&out);
}

/* Below 78 columns the table keeps size, time, busbw and #wrong. */
static void test_narrow(void **state)
{
    (void)state;
    struct gpul_buf out;
    gpul_buf_init(&out, 4096);
    assert_int_equal(table_self_test(&out, rows, 2, 4, 40), 0);
    assert_string_equal(gpul_buf_text(&out),
                        "# all-reduce, 4 nodes, slowest rank\n"
                        "#    size       time   busbw #wrong\n"
                        "#     (B)       (us)  (GB/s)\n"
                        "        8      45.00    0.00      0\n"
                        "268435456   201234.6    2.00      3\n");
    gpul_buf_release(&out);
}

/* Without room the failure is reported. */
static void test_no_room(void **state)
{
    (void)state;
    struct gpul_buf out;
    gpul_buf_init(&out, 10);
    assert_int_not_equal(table_self_test(&out, rows, 2, 4, 80), 0);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
