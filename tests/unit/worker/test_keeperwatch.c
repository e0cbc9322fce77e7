/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/keeperwatch.h"

enum { START_MS = 1000 };

static struct keeperwatch watch;

static int set_up(void **state)
{
    (void)state;
    keeperwatch_init(&watch, START_MS);
    return 0;
}

/* Look when it is due, `late_ms` later. */
static enum keeperwatch_due look_late(uint64_t late_ms)
{
    return keeperwatch_look(&watch, watch.at_ms + late_ms);
}

static void test_answers(void **state)
{
    (void)state;
    assert_int_equal(keeperwatch_look(&watch, START_MS), KEEPERWATCH_NOTHING);
    for (int i = 0; i < 10; i++) {
        uint64_t at_ms = watch.at_ms;
        assert_int_equal(look_late(0), KEEPERWATCH_ASK);
        assert_int_equal(watch.at_ms, at_ms + KEEPERWATCH_ANSWER_MS);
        keeperwatch_answered(&watch, at_ms + 7);
        assert_int_equal(watch.at_ms, at_ms + 7 + KEEPERWATCH_ASK_MS);
    }
}

/* Silence: killed, then given up; an answer in between changes nothing. */
static void test_silence(void **state)
{
    (void)state;
    assert_int_equal(look_late(0), KEEPERWATCH_ASK);
    assert_int_equal(keeperwatch_look(&watch, watch.at_ms - 1),
                     KEEPERWATCH_NOTHING);
    assert_int_equal(look_late(0), KEEPERWATCH_KILL);
    keeperwatch_answered(&watch, watch.at_ms - 1);
    assert_int_equal(look_late(0), KEEPERWATCH_GIVE_UP);
    assert_true(watch.at_ms == UINT64_MAX);
}

/* Whoever was stopped together with the keeper may not blame it. */
static void test_stall(void **state)
{
    (void)state;
    assert_int_equal(look_late(60000), KEEPERWATCH_ASK);
    assert_int_equal(look_late(60000), KEEPERWATCH_NOTHING);
    keeperwatch_answered(&watch, watch.at_ms - 1);
    assert_int_equal(look_late(0), KEEPERWATCH_ASK);
    assert_int_equal(look_late(60000), KEEPERWATCH_NOTHING);
    assert_int_equal(look_late(0), KEEPERWATCH_KILL);
}

/* An answer that nobody asked for is none. */
static void test_unasked(void **state)
{
    (void)state;
    keeperwatch_answered(&watch, START_MS + 1);
    assert_int_equal(watch.at_ms, START_MS + KEEPERWATCH_ASK_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_answers, set_up),
        cmocka_unit_test_setup(test_silence, set_up),
        cmocka_unit_test_setup(test_stall, set_up),
        cmocka_unit_test_setup(test_unasked, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
