/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on elements, with the two floats of 16 bits held to the
 * definition of their rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/doubles/nccl_reduce.h"

static uint16_t add_halves(uint16_t a, uint16_t b, int type)
{
    reduce_add(&a, &b, 1, type, NCCL_SUM);
    return a;
}

/* Sums of small integers are exact in every type. */
static void test_sums(void **state)
{
    int8_t i8[] = {100, -100}, i8b[] = {27, -28};
    int64_t i64[] = {1, -5}, i64b[] = {INT64_C(1) << 40, 3};
    double f64[] = {0.5, 1e300}, f64b[] = {0.25, 1e300};

    (void)state;
    reduce_add(i8, i8b, 2, NCCL_INT8, NCCL_SUM);
    assert_int_equal(i8[0], 127);
    assert_int_equal(i8[1], -128);
    reduce_add(i64, i64b, 2, NCCL_INT64, NCCL_SUM);
    assert_true(i64[0] == (INT64_C(1) << 40) + 1 && i64[1] == -2);
    reduce_add(f64, f64b, 2, NCCL_FLOAT64, NCCL_SUM);
    assert_true(f64[0] > 0.74 && f64[0] < 0.76 && f64[1] > 1.9e300);
}

/* Each operation, with signs. */
static void test_operations(void **state)
{
    static const struct {
        int op;
        int32_t result;
    } cases[] = {{NCCL_SUM, -4},
                 {NCCL_PROD, -21},
                 {NCCL_MAX, 3},
                 {NCCL_MIN, -7},
                 {NCCL_AVG, -4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t a = 3, b = -7;
        reduce_add(&a, &b, 1, NCCL_INT32, cases[i].op);
        assert_int_equal(a, cases[i].result);
        reduce_finish(&a, 1, NCCL_INT32, cases[i].op, 2);
        assert_int_equal(a, cases[i].op == NCCL_AVG ? -2 : cases[i].result);
    }
}

/* Every finite half plus zero is itself: both ways lose nothing. */
static void test_every_half(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t half = (uint16_t)bits;
        if ((half & 0x7fff) == 0) /* the sign of a zero is the sum's */
            continue;
        if ((half & 0x7c00) != 0x7c00)
            assert_int_equal(add_halves(half, 0, NCCL_FLOAT16), half);
        if ((half & 0x7f80) != 0x7f80)
            assert_int_equal(add_halves(half, 0, NCCL_BFLOAT16), half);
    }
}

/* Ties go to even, too much becomes infinite, what is no number stays none. */
static void test_rounding(void **state)
{
    (void)state;
    /* 2048 + 1 lies between 2048 and 2050; 2050 + 1 between 2050 and 2052 */
    assert_int_equal(add_halves(0x6800, 0x3c00, NCCL_FLOAT16), 0x6800);
    assert_int_equal(add_halves(0x6801, 0x3c00, NCCL_FLOAT16), 0x6802);
    /* 65504 + 15 is still the largest, 65504 + 16 no more */
    assert_int_equal(add_halves(0x7bff, 0x4b80, NCCL_FLOAT16), 0x7bff);
    assert_int_equal(add_halves(0x7bff, 0x4c00, NCCL_FLOAT16), 0x7c00);
    /* 2^-24 + 2^-24 */
    assert_int_equal(add_halves(0x0001, 0x0001, NCCL_FLOAT16), 0x0002);
    assert_int_equal(add_halves(0x7c00, 0xfc00, NCCL_FLOAT16) & 0x7fff, 0x7e00);
    /* 256 + 1 and 258 + 1 in bfloat16 */
    assert_int_equal(add_halves(0x4380, 0x3f80, NCCL_BFLOAT16), 0x4380);
    assert_int_equal(add_halves(0x4381, 0x3f80, NCCL_BFLOAT16), 0x4382);
}

/* A type that the double has not has no size. */
static void test_types(void **state)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 0, 0};

    (void)state;
    for (int type = 0; type < 12; type++)
        assert_int_equal(reduce_bytes(type), bytes[type]);
    assert_int_equal(reduce_bytes(-1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),       cmocka_unit_test(test_operations),
        cmocka_unit_test(test_every_half), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
