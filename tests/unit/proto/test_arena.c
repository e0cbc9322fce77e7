/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "proto/arena.h"
#include "tests/lib/memory.h"

enum { ROUNDING_BYTES = 64 }; /* what malloc adds to one block */

/* Every object is aligned for its size, and none overlaps another. */
static void test_objects(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 8, 3, 16, 24, 4, 7, 40, 2, 104, 1, 4096, 12};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    uint8_t *objects[COUNT];
    struct gpul_arena a;
    gpul_arena_init(&a, 1u << 20, 0);
    for (size_t i = 0; i < COUNT; i++) {
        size_t alignment = sizes[i] & (~sizes[i] + 1);
        objects[i] = gpul_arena_alloc(&a, sizes[i]);
        assert_non_null(objects[i]);
        alignment = alignment > 16 ? 16 : alignment;
        assert_int_equal((uintptr_t)objects[i] % alignment, 0);
        memset(objects[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(objects[i][at], i);
        }
    }
    gpul_arena_release(&a);
}

/* The budget holds for any mix of sizes, headers included, and is used to
 * the last object that fits. */
static void test_budget(void **state)
{
    (void)state;
    const size_t budgets[] = {0, 1, 100, 1000, 10000, 1000000};
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        for (size_t n = 1; n < 5000; n = n * 3 + 1) {
            struct gpul_arena a;
            size_t taken = 0;
            memory_watch();
            gpul_arena_init(&a, budgets[i], 0);
            while (gpul_arena_alloc(&a, n) != NULL) {
                taken += n;
            }
            assert_int_equal(a.status, GPUL_ELIMIT);
            assert_in_range(memory_peak(), taken,
                            budgets[i] + budgets[i] / 8 + ROUNDING_BYTES);
            assert_true(n * 4 > budgets[i] || taken >= budgets[i] / 2);
            gpul_arena_release(&a);
            assert_int_equal(memory_held(), 0);
        }
    }
}

/* A size that no budget covers does not overflow on the way. */
static void test_absurd_size(void **state)
{
    (void)state;
    struct gpul_arena a;
    gpul_arena_init(&a, 1000, 0);
    assert_non_null(gpul_arena_alloc(&a, 1));
    assert_null(gpul_arena_alloc(&a, SIZE_MAX));
    assert_null(gpul_arena_alloc(&a, SIZE_MAX - 15));
    assert_int_equal(a.status, GPUL_ELIMIT);
    gpul_arena_release(&a);
}

/* Without memory the status says so, and what was there stays. */
static void test_no_memory(void **state)
{
    (void)state;
    struct gpul_arena a;
    gpul_arena_init(&a, 1u << 20, 0);
    char *kept = gpul_arena_alloc(&a, 400);
    assert_non_null(kept);
    memory_watch();
    memory_fail_at(1);
    assert_null(gpul_arena_alloc(&a, 400));
    assert_int_equal(a.status, GPUL_ENOMEM);
    assert_non_null(gpul_arena_alloc(&a, 16));
    memset(kept, 1, 400);
    gpul_arena_release(&a);
}

/* As protobuf-c uses it: freeing one object changes nothing. */
static void test_allocator(void **state)
{
    (void)state;
    struct gpul_arena a;
    gpul_arena_init(&a, 1000, 0);
    ProtobufCAllocator allocator = gpul_arena_allocator(&a);
    char *object = allocator.alloc(allocator.allocator_data, 5);
    memcpy(object, "kept", 5);
    allocator.free(allocator.allocator_data, object);
    assert_string_equal(object, "kept");
    gpul_arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),     cmocka_unit_test(test_budget),
        cmocka_unit_test(test_absurd_size), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
