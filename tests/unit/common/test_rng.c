/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rng.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The published algorithm, computed by an independent implementation. */
static void test_known_numbers(void **state)
{
    (void)state;
    static const uint64_t expected[2][3] = {
        {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u},
        {0xb3f2af6d0fc710c5u, 0x853b559647364ceau, 0x92f89756082a4514u}};
    for (uint64_t seed = 0; seed < 2; seed++) {
        struct gpul_rng r;
        gpul_rng_init(&r, seed);
        for (size_t i = 0; i < 3; i++) {
            assert_true(gpul_rng_next(&r) == expected[seed][i]);
        }
    }
}

/* Every value below the bound comes up about equally often. */
static void test_below(void **state)
{
    (void)state;
    struct gpul_rng r;
    unsigned int seen[7] = {0};
    gpul_rng_init(&r, 42);
    for (int i = 0; i < 70000; i++) {
        seen[gpul_rng_below(&r, 7)]++;
    }
    for (size_t i = 0; i < COUNT(seen); i++) {
        assert_in_range(seen[i], 9500, 10500);
    }
    assert_int_equal(gpul_rng_below(&r, 1), 0);
    /* Just over half the range: without rejection a third would be biased. */
    uint64_t bound = (1ull << 63) + 1;
    for (int i = 0; i < 1000; i++) {
        assert_true(gpul_rng_below(&r, bound) < bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
