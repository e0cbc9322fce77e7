/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/rankset.h"
#include "common/rng.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_text(const struct gpul_rankset *s, const char *expected)
{
    struct gpul_buf text;
    gpul_buf_init(&text, 1000);
    assert_int_equal(gpul_rankset_format(&text, s), 0);
    assert_string_equal(gpul_buf_text(&text), expected);
    gpul_buf_release(&text);
}

/* Any order, overlap and repetition gives one canonical text. */
static void test_canonical(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"0", "0"},
        {"3,1,2", "1-3"},
        {"0,3-5", "0,3-5"},
        {"5,3-5,4,9-9", "3-5,9"},
        {"0-1,3-4,2", "0-4"},
        {"1-2,8-9,0-20", "0-20"},
        {"4294967295,4294967294", "4294967294-4294967295"},
        {"4294967295,0", "0,4294967295"},
    };
    struct gpul_rankset s;
    gpul_rankset_init(&s);
    assert_text(&s, "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(gpul_rankset_parse(&s, rows[i][0], NULL), 0);
        assert_text(&s, rows[i][1]);
    }
    gpul_rankset_release(&s);
}

/* A faulty text is refused with its column and leaves the set as it was. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "ranks \"\", column 1: a rank is missing"},
        {"1,", "ranks \"1,\", column 3: a rank is missing"},
        {"1, 2", "ranks \"1, 2\", column 3: a rank is missing"},
        {"1-", "ranks \"1-\", column 3: the end of the range is missing"},
        {"5-3", "ranks \"5-3\", column 4: the range runs backwards"},
        {"1-2-3", "ranks \"1-2-3\", column 4: unexpected character"},
        {"4294967296", "ranks \"4294967296\", column 11: a rank is missing"},
    };
    struct gpul_rankset s;
    gpul_rankset_init(&s);
    gpul_rankset_add(&s, 7, 7);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpul_error err = {0};
        assert_int_equal(gpul_rankset_parse(&s, rows[i][0], &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
        assert_text(&s, "7");
    }
    gpul_rankset_release(&s);
}

/* After any additions the set holds exactly what was added, in ranges that
 * neither touch nor overlap. */
static void test_against_bits(void **state)
{
    (void)state;
    enum { RANKS = 200 };
    struct gpul_rng rng;
    gpul_rng_init(&rng, 3);
    for (int round = 0; round < 300; round++) {
        struct gpul_rankset s;
        bool is_in[RANKS] = {false};
        uint64_t size = 0;
        gpul_rankset_init(&s);
        for (uint64_t n = gpul_rng_below(&rng, 40); n > 0; n--) {
            uint32_t first = (uint32_t)gpul_rng_below(&rng, RANKS - 8);
            uint32_t last = first + (uint32_t)gpul_rng_below(&rng, 8);
            assert_int_equal(gpul_rankset_add(&s, first, last), 0);
            memset(is_in + first, 1, last - first + 1);
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_int_equal(gpul_rankset_has(&s, rank), is_in[rank]);
            size += is_in[rank];
        }
        assert_int_equal(gpul_rankset_size(&s), size);
        size_t below = 0;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_int_equal(gpul_rankset_size_below(&s, rank), below);
            below += is_in[rank];
        }
        for (size_t i = 1; i < s.count; i++) {
            assert_true(s.ranges[i].first > s.ranges[i - 1].last + 1);
        }
        gpul_rankset_release(&s);
    }
}

/* The set of all ranks there can be has no overflow. */
static void test_everything(void **state)
{
    (void)state;
    struct gpul_rankset s;
    gpul_rankset_init(&s);
    assert_int_equal(gpul_rankset_parse(&s, "0-4294967295", NULL), 0);
    assert_true(gpul_rankset_size(&s) == 1ull << 32);
    assert_true(gpul_rankset_size_below(&s, UINT32_MAX) == UINT32_MAX);
    assert_true(gpul_rankset_has(&s, UINT32_MAX));
    gpul_rankset_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_against_bits),
        cmocka_unit_test(test_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
