/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/pattern.h"

/* The closed form equals the sum written out, also past the rank period. */
static void test_sum_is_the_sum(void **state)
{
    (void)state;
    static const uint64_t indexes[] = {0,    1,    12,   16,         18,
                                       4198, 4199, 4200, 1000000007, 1u << 26};
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        double sum = 0;
        for (uint32_t n = 1; n <= 400; n++) {
            sum += (double)pattern_value(n - 1, indexes[i]);
            assert_true((double)pattern_sum(n, indexes[i]) == sum);
        }
    }
}

/* At the largest world every partial sum is still a whole float32. */
static void test_sum_is_exact_at_the_limit(void **state)
{
    (void)state;
    float sum = 0;
    uint64_t largest_index = 13 * 17 * 19 - 1; /* 12 + 16 + 18 */
    for (uint32_t rank = 0; rank < PATTERN_RANKS_MAX; rank++) {
        float before = sum;
        sum += pattern_value(rank, largest_index);
        assert_true(sum - before == pattern_value(rank, largest_index));
    }
    assert_true(sum == pattern_sum(PATTERN_RANKS_MAX, largest_index));
    assert_true(sum <= 16777216.0f);
}

/* Every contribution is at least 1, and that of a neighbour differs. */
static void test_values_tell_ranks_apart(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 300; rank++) {
        for (uint64_t i = 0; i < 100; i++) {
            assert_true(pattern_value(rank, i) >= 1);
            assert_true(pattern_value(rank, i) != pattern_value(rank + 1, i));
        }
    }
}

/* A filled buffer holds the values, and nothing past its end is touched. */
static void test_fill(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 3, 4198, 4199, 4200, 20001};
    float data[20002];
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        data[counts[c]] = -1;
        pattern_fill(data, counts[c], 81);
        for (uint64_t i = 0; i < counts[c]; i++) {
            assert_true(data[i] == pattern_value(81, i));
        }
        assert_true(data[counts[c]] == -1);
    }
}

static void fill_sum(float *data, uint64_t count, uint32_t n)
{
    for (uint64_t i = 0; i < count; i++) {
        data[i] = pattern_sum(n, i);
    }
}

/* A right result has no wrong element, whatever its length. */
static void test_check_accepts_the_sum(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 4199, 4200, 20001};
    float data[20001];
    for (uint32_t n = 2; n <= 200; n += 33) {
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            struct pattern_verdict verdict;
            fill_sum(data, counts[c], n);
            pattern_check(&verdict, data, counts[c], n);
            assert_int_equal(verdict.wrong_elements, 0);
            assert_int_equal(verdict.first_wrong_index, 0);
        }
    }
}

/* Each wrong element is counted, and the lowest one is named. */
static void test_check_counts_and_names(void **state)
{
    (void)state;
    static const struct {
        uint64_t wrong[3];
        size_t n;
    } cases[] = {
        {{0}, 1},    {{20000}, 1},    {{4198}, 1},
        {{4199}, 1}, {{12, 4199}, 2}, {{5000, 4999, 20000}, 3},
    };
    float data[20001];
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct pattern_verdict verdict;
        uint64_t lowest = UINT64_MAX;
        fill_sum(data, 20001, 7);
        for (size_t i = 0; i < cases[c].n; i++) {
            uint32_t bits;
            float *element = &data[cases[c].wrong[i]];
            memcpy(&bits, element, sizeof(bits));
            bits ^= 1; /* the lowest bit of the float */
            memcpy(element, &bits, sizeof(bits));
            if (cases[c].wrong[i] < lowest) {
                lowest = cases[c].wrong[i];
            }
        }
        pattern_check(&verdict, data, 20001, 7);
        assert_int_equal(verdict.wrong_elements, cases[c].n);
        assert_int_equal(verdict.first_wrong_index, lowest);
    }
}

/* A not-a-number is a wrong element, not an unordered comparison. */
static void test_check_sees_nan(void **state)
{
    (void)state;
    struct pattern_verdict verdict;
    float data[10];
    uint32_t nan_bits = 0x7fc00000;
    fill_sum(data, 10, 3);
    memcpy(&data[6], &nan_bits, sizeof(nan_bits));
    pattern_check(&verdict, data, 10, 3);
    assert_int_equal(verdict.wrong_elements, 1);
    assert_int_equal(verdict.first_wrong_index, 6);
}

/* A sum that lacks a rank, has one twice or sits in a neighbour's place is
 * wrong at nearly every element. */
static void test_check_sees_wrong_sums(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static const uint64_t shifts[] = {1, 64, 1024, 65536, 1u << 20, 1u << 26};
    struct pattern_verdict verdict;
    float data[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        data[i] = pattern_sum(4, i) - pattern_value(2, i);
    }
    pattern_check(&verdict, data, COUNT, 4);
    assert_int_equal(verdict.wrong_elements, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        data[i] += pattern_value(3, i);
    }
    pattern_check(&verdict, data, COUNT, 4);
    assert_int_equal(verdict.wrong_elements, COUNT);
    for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            data[i] = pattern_sum(4, i + shifts[s]);
        }
        pattern_check(&verdict, data, COUNT, 4);
        assert_true(verdict.wrong_elements > COUNT / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_is_the_sum),
        cmocka_unit_test(test_sum_is_exact_at_the_limit),
        cmocka_unit_test(test_values_tell_ranks_apart),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_check_accepts_the_sum),
        cmocka_unit_test(test_check_counts_and_names),
        cmocka_unit_test(test_check_sees_nan),
        cmocka_unit_test(test_check_sees_wrong_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
