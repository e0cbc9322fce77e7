/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/arena.h"
#include "coordinator/notices.h"
#include "coordinator/phase.h"
#include "coordinator/text.h"

/* What is too long is cut between characters, at the wire's bound. */
static void test_cut(void **state)
{
    (void)state;
    char longer[GPUL_TEXT_BYTES_MAX + 8];
    struct text t;
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    text_format(&t, "%s", longer);
    assert_int_equal(strlen(t.bytes), GPUL_TEXT_BYTES_MAX);
    /* A three-byte character across the bound goes as a whole. */
    memcpy(longer + GPUL_TEXT_BYTES_MAX - 1, "\xe2\x82\xac", 3);
    text_format(&t, "%s", longer);
    assert_int_equal(strlen(t.bytes), GPUL_TEXT_BYTES_MAX - 1);
    /* One that ends at the bound stays. */
    memcpy(longer + GPUL_TEXT_BYTES_MAX - 3, "\xe2\x82\xac", 3);
    longer[GPUL_TEXT_BYTES_MAX] = 'b';
    text_format(&t, "%s", longer);
    assert_int_equal(strlen(t.bytes), GPUL_TEXT_BYTES_MAX);
}

static void test_short(void **state)
{
    (void)state;
    struct text t;
    text_format(&t, "%s %d", "rank", 3);
    assert_string_equal(t.bytes, "rank 3");
}

/* Pieces keep their place and their alignment while others are added. */
static void test_arena(void **state)
{
    (void)state;
    enum { PIECES = 1000, BIG_BYTES = 200000 };
    struct arena a;
    uint64_t *pieces[PIECES];
    arena_init(&a);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < PIECES; i++) {
            pieces[i] = arena_alloc(&a, 3 + i % 500);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
            memset(pieces[i], (int)(i % 251), 3);
        }
        memset(arena_alloc(&a, BIG_BYTES), 0xff, BIG_BYTES);
        for (uint64_t i = 0; i < PIECES; i++) {
            assert_int_equal(*(uint8_t *)pieces[i], i % 251);
        }
        arena_clear(&a);
    }
    assert_null(arena_alloc(&a, SIZE_MAX));
    arena_release(&a);
}

/* Equal texts are said once, and no more than the bound in all. */
static void test_notices(void **state)
{
    (void)state;
    static struct notices n;
    char text[32];
    assert_true(notices_is_new(&n, "a"));
    assert_false(notices_is_new(&n, "a"));
    for (int i = 1; i < NOTICES_MAX; i++) {
        snprintf(text, sizeof(text), "notice %d", i);
        assert_true(notices_is_new(&n, text));
    }
    assert_false(notices_is_new(&n, "one too many"));
}

/* From every phase there is a way to the end, and never one back into a phase
 * before the places, but by a restart. */
static void test_phases(void **state)
{
    (void)state;
    for (unsigned from = PHASE_START; from < PHASE_OVER; from++) {
        unsigned next = 0;
        for (unsigned to = PHASE_START; to < PHASE_COUNT; to++) {
            if (phase_may_follow((enum phase)from, (enum phase)to)) {
                next++;
                assert_true(to > from || (from == PHASE_RESTARTING &&
                                          to == PHASE_ASSIGNING));
            }
        }
        assert_true(next > 0);
        assert_true(strlen(phase_name((enum phase)from)) > 0);
    }
    assert_false(phase_may_follow(PHASE_OVER, PHASE_OVER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),    cmocka_unit_test(test_short),
        cmocka_unit_test(test_arena),  cmocka_unit_test(test_notices),
        cmocka_unit_test(test_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
