/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/error.h"

/* Contents grow up to the maximum and not one byte past it. */
static void test_maximum(void **state)
{
    (void)state;
    struct gpul_buf b;
    gpul_buf_init(&b, 100);
    assert_int_equal(gpul_buf_append(&b, "0123456789", 10), 0);
    assert_non_null(gpul_buf_extend(&b, 90));
    assert_int_equal(b.used, 100);
    assert_int_equal(gpul_buf_append(&b, "x", 1), GPUL_ELIMIT);
    assert_true(b.is_failed);
    assert_int_equal(b.used, 100);
    assert_memory_equal(b.data, "0123456789", 10);
    gpul_buf_release(&b);
}

/* A failed append marks the buffer and leaves the contents as they were. */
static void test_failure_keeps_contents(void **state)
{
    (void)state;
    struct gpul_buf b;
    gpul_buf_init(&b, 8);
    gpul_buf_append_text(&b, "abc");
    assert_int_equal(gpul_buf_appendf(&b, "%s", "too long"), GPUL_ELIMIT);
    assert_string_equal(gpul_buf_text(&b), "abc");
    gpul_buf_clear(&b);
    assert_false(b.is_failed);
    assert_int_equal(b.used, 0);
    gpul_buf_release(&b);
}

/* Formatting and consuming from the front. */
static void test_format_and_consume(void **state)
{
    (void)state;
    struct gpul_buf b;
    gpul_buf_init(&b, 1000);
    assert_int_equal(gpul_buf_appendf(&b, "%s:%d", "host", 29500), 0);
    assert_string_equal(gpul_buf_text(&b), "host:29500");
    gpul_buf_consume(&b, 5);
    assert_string_equal(gpul_buf_text(&b), "29500");
    gpul_buf_consume(&b, 5);
    assert_string_equal(gpul_buf_text(&b), "");
    gpul_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_failure_keeps_contents),
        cmocka_unit_test(test_format_and_consume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
