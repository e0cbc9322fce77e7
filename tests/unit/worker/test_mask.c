/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/mask.h"

enum { WORDS = 3 };

/* Text in, the same text out, or another where there are several ways. */
static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        size_t count;
    } cases[] = {
        {"", "", 0},
        {"\n", "", 0},
        {"0\n", "0", 1},
        {"0-3,8", "0-3,8", 5},
        {"63-64", "63-64", 2},
        {"0,1,2,127,128-130\n", "0-2,127-130", 7},
        {"191", "191", 1},
        {"190-300", "190-191", 2}, /* what is beyond is not in the set */
        {"192", "", 0},
        {"5,5,4-6", "4-6", 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t mask[WORDS];
        struct gpul_buf out;
        gpul_buf_init(&out, 100);
        assert_true(mask_parse(mask, WORDS, cases[i].in));
        assert_int_equal(mask_count(mask, WORDS), cases[i].count);
        assert_int_equal(mask_format(&out, mask, WORDS), 0);
        assert_string_equal(gpul_buf_text(&out), cases[i].out);
        gpul_buf_release(&out);
    }
}

static void test_no_list(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "x",    "0-",   "-1", ",1",    "1,",   "3-1",
        "1,,2", "0 1",  " 0", "0\n\n", "0-3x", "99999999999999999999",
        "+1",   "0--1",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t mask[WORDS] = {7, 7, 7};
        assert_false(mask_parse(mask, WORDS, cases[i]));
        assert_true(mask_is_empty(mask, WORDS));
    }
}

static void test_sets(void **state)
{
    (void)state;
    uint64_t a[WORDS], b[WORDS];
    assert_true(mask_parse(a, WORDS, "0-9,100"));
    assert_true(mask_parse(b, WORDS, "5-15"));
    mask_meet(a, b, WORDS);
    assert_int_equal(mask_count(a, WORDS), 5);
    mask_join(a, b, WORDS);
    assert_int_equal(mask_count(a, WORDS), 11);
    mask_add(a, WORDS, 191);
    mask_add(a, WORDS, 192); /* beyond */
    assert_int_equal(mask_count(a, WORDS), 12);
    assert_true(mask_has(a, WORDS, 191));
    assert_false(mask_has(a, WORDS, 192));
    assert_false(mask_has(a, WORDS, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_list),
        cmocka_unit_test(test_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
