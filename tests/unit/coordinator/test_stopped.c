/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/stopped.h"

static char text[GPUL_STOPPED_RANKS_BYTES_MAX + 1];

static void test_ranges(void **state)
{
    (void)state;
    struct stopped s = {0};
    stopped_format(&s, text);
    assert_string_equal(text, "");
    assert_int_equal(stopped_reset(&s, 130), 0);
    static const uint32_t ranks[] = {64, 0, 129, 63, 5, 65, 63, 130, 9999};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        stopped_add(&s, ranks[i]);
    }
    stopped_format(&s, text);
    assert_string_equal(text, "0,5,63-65,129");
    assert_int_equal(s.count, 6);
    assert_int_equal(stopped_reset(&s, 2), 0);
    stopped_add(&s, 0);
    stopped_add(&s, 1);
    stopped_format(&s, text);
    assert_string_equal(text, "0-1");
    stopped_release(&s);
    assert_int_equal(s.count, 0);
}

/* Too many for a text: it ends between two ranges, the count goes on. */
static void test_bounds(void **state)
{
    (void)state;
    struct stopped s = {0};
    assert_int_equal(stopped_reset(&s, 1u << 20), 0);
    for (uint32_t rank = 0; rank < 1u << 20; rank += 2) {
        stopped_add(&s, rank);
    }
    stopped_format(&s, text);
    assert_int_equal(s.count, 1u << 19);
    assert_in_range(strlen(text), GPUL_STOPPED_RANKS_BYTES_MAX - 8,
                    GPUL_STOPPED_RANKS_BYTES_MAX);
    assert_memory_equal(text, "0,2,4,6,8,10,", 13);
    assert_true(text[strlen(text) - 1] != ',');
    stopped_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
