/* SPDX-License-Identifier: Apache-2.0
 *
 * A search allocates at its beginning or not at all: whichever allocation
 * fails, that is said and nothing is left; later nothing can fail, and the
 * memory stays what it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/pairsearch.h"
#include "tests/lib/memory.h"

enum { ALLOCATIONS_MAX = 100, NODES = 1000, BYTES_A_NODE = 1200 };

static void test_each_failure(void **state)
{
    struct pairsearch_config config = {.node_count = NODES};
    struct pairsearch *search;
    size_t n = 0;
    int rc;
    (void)state;
    do {
        struct gpul_error err = {0};
        memory_watch();
        memory_fail_at(++n);
        assert_true(n < ALLOCATIONS_MAX);
        rc = pairsearch_create(&search, &config, &err);
        assert_int_equal(err.status, rc);
        if (rc != 0) {
            assert_int_equal(rc, GPUL_ENOMEM);
            assert_null(search);
            assert_int_equal(memory_held(), 0);
        }
    } while (rc != 0);
    memory_fail_at(0);
    assert_true(n > 10);
    pairsearch_destroy(search);
    assert_int_equal(memory_held(), 0);
}

static void test_none_later(void **state)
{
    struct pairsearch_config config = {.node_count = NODES};
    struct pairsearch_measure m = {
        {.status = PAIRSEARCH_MEASURED, .bytes_per_s = 1e9},
        {.status = PAIRSEARCH_MEASURED, .bytes_per_s = 1e9},
    };
    struct pairsearch_round round;
    struct pairsearch_result result;
    struct pairsearch *search;
    (void)state;
    memory_watch();
    assert_int_equal(pairsearch_create(&search, &config, NULL), 0);
    size_t held = memory_held();
    assert_true(held <= NODES * BYTES_A_NODE);
    while (pairsearch_next(search, &round)) {
        for (uint32_t i = 0; i < round.count; i++) {
            m.a_to_b.bytes_per_s = 1e9 + (double)(i * 7919 % 1000) * 1e6;
            pairsearch_report(search, i, &m);
        }
        assert_int_equal(memory_held(), held);
    }
    pairsearch_result(search, &result);
    assert_int_equal(memory_peak(), held);
    pairsearch_destroy(search);
    assert_int_equal(memory_held(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_failure),
        cmocka_unit_test(test_none_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
