/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>

#include <cmocka.h>

#include "coordinator/guests.h"
#include "proto/limits.h"

enum { CONNS = 300, MAX = GPUL_GUESTS_OF_NAME_MAX };

static struct guests g;

static int set_up(void **state)
{
    (void)state;
    return guests_init(&g, CONNS);
}

static int tear_down(void **state)
{
    (void)state;
    guests_release(&g);
    return 0;
}

/* The oldest of the name gives way, in turn. */
static void test_oldest_first(void **state)
{
    (void)state;
    for (uint32_t conn = 0; conn < CONNS; conn++) {
        uint32_t oldest = guests_enter(&g, conn, "node1");
        assert_int_equal(oldest, conn < MAX ? GUESTS_NONE : conn - MAX);
    }
}

/* Many nodes at once are in nobody's way. */
static void test_names_apart(void **state)
{
    (void)state;
    char name[32];
    for (uint32_t conn = 0; conn < CONNS; conn++) {
        snprintf(name, sizeof(name), "node%u", conn / MAX);
        assert_int_equal(guests_enter(&g, conn, name), GUESTS_NONE);
    }
}

/* Who has said Hello, or has gone, counts no more: the first, the last, one
 * between, and one that is none. */
static void test_leave(void **state)
{
    (void)state;
    for (uint32_t conn = 0; conn < MAX; conn++) {
        assert_int_equal(guests_enter(&g, conn, "node1"), GUESTS_NONE);
    }
    guests_leave(&g, 0);
    guests_leave(&g, 0);
    guests_leave(&g, 2);
    guests_leave(&g, MAX - 1);
    guests_leave(&g, CONNS - 1);
    assert_int_equal(guests_enter(&g, 0, "node1"), GUESTS_NONE);
    assert_int_equal(guests_enter(&g, 2, "node1"), GUESTS_NONE);
    assert_int_equal(guests_enter(&g, MAX - 1, "node1"), GUESTS_NONE);
    assert_int_equal(guests_enter(&g, 9, "node1"), 1);
    assert_int_equal(guests_enter(&g, 8, "node1"), 0);
}

/* One line a second, with the count since the last. */
static void test_line(void **state)
{
    (void)state;
    assert_int_equal(guests_refused(&g, 5000), 1);
    assert_int_equal(guests_refused(&g, 5000), 0);
    assert_int_equal(guests_refused(&g, 5000 + GPUL_STRANGER_LINE_MS - 1), 0);
    assert_int_equal(guests_refused(&g, 5000 + GPUL_STRANGER_LINE_MS), 3);
    assert_int_equal(guests_refused(&g, 5000 + GPUL_STRANGER_LINE_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_oldest_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_line, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
