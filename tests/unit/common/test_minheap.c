/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/minheap.h"
#include "common/rng.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Take the earliest item out; false if there is none. */
static bool pop(struct gpul_minheap *h, uint64_t *key, uint32_t *id)
{
    if (!gpul_minheap_peek(h, key, id)) {
        return false;
    }
    gpul_minheap_remove(h, *id);
    return true;
}

/* Items come out by key, equal keys by id. */
static void test_order(void **state)
{
    (void)state;
    static const struct gpul_minheap_item in[] = {
        {30, 0}, {10, 1}, {20, 2}, {10, 3}, {UINT64_MAX, 4}, {0, 5}};
    static const uint32_t order[] = {5, 1, 3, 2, 0, 4};
    struct gpul_minheap h;
    assert_int_equal(gpul_minheap_init(&h, COUNT(in)), 0);
    for (size_t i = 0; i < COUNT(in); i++) {
        gpul_minheap_set(&h, in[i].id, in[i].key);
    }
    uint64_t key;
    uint32_t id;
    for (size_t i = 0; i < COUNT(order); i++) {
        assert_true(pop(&h, &key, &id));
        assert_int_equal(id, order[i]);
        assert_true(key == in[id].key);
    }
    assert_false(gpul_minheap_peek(&h, &key, &id));
    gpul_minheap_release(&h);
}

/* A heap without ids is empty, and removing what is absent does nothing. */
static void test_empty(void **state)
{
    (void)state;
    struct gpul_minheap h;
    uint64_t key;
    uint32_t id;
    assert_int_equal(gpul_minheap_init(&h, 0), 0);
    assert_false(gpul_minheap_peek(&h, &key, &id));
    gpul_minheap_release(&h);
    assert_int_equal(gpul_minheap_init(&h, 2), 0);
    gpul_minheap_set(&h, 1, 7);
    gpul_minheap_remove(&h, 0);
    assert_true(gpul_minheap_peek(&h, &key, &id));
    assert_int_equal(id, 1);
    gpul_minheap_release(&h);
}

enum { IDS = 64 };

/* What the heap should say, by looking at every id. */
static bool slow_peek(const uint64_t *keys, const bool *is_in, uint32_t *id)
{
    bool is_found = false;
    for (uint32_t i = 0; i < IDS; i++) {
        if (is_in[i] && (!is_found || keys[i] < keys[*id])) {
            *id = i;
            is_found = true;
        }
    }
    return is_found;
}

/* After any mix of inserts, moves and removals the heap agrees with a plain
 * search. */
static void test_against_search(void **state)
{
    (void)state;
    struct gpul_rng rng;
    struct gpul_minheap h;
    uint64_t keys[IDS] = {0};
    bool is_in[IDS] = {false};
    gpul_rng_init(&rng, 1);
    assert_int_equal(gpul_minheap_init(&h, IDS), 0);
    for (int step = 0; step < 20000; step++) {
        uint32_t id = (uint32_t)gpul_rng_below(&rng, IDS);
        is_in[id] = gpul_rng_below(&rng, 3) > 0;
        if (is_in[id]) {
            keys[id] = gpul_rng_below(&rng, 40);
            gpul_minheap_set(&h, id, keys[id]);
        } else {
            gpul_minheap_remove(&h, id);
        }
        uint64_t key = 0;
        uint32_t heap_id = 0;
        uint32_t slow_id = 0;
        bool is_some = slow_peek(keys, is_in, &slow_id);
        assert_int_equal(gpul_minheap_peek(&h, &key, &heap_id), is_some);
        assert_int_equal(heap_id, slow_id);
        assert_true(!is_some || key == keys[slow_id]);
    }
    gpul_minheap_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_against_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
