/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/patience.h"

enum { LIMIT_MS = 10000 };

/* The limit runs from the first look on, and anew from each byte. */
static void test_limit(void **state)
{
    (void)state;
    struct patience p;
    patience_init(&p, LIMIT_MS);
    assert_true(p.deadline_ms == UINT64_MAX);
    assert_false(patience_look(&p, true, 500, 1000));
    assert_true(p.deadline_ms == 11000);
    assert_false(patience_look(&p, true, 500, 10999));
    assert_false(patience_look(&p, true, 501, 11000)); /* it reads */
    assert_true(p.deadline_ms == 21000);
    assert_false(patience_look(&p, true, 501, 20999));
    assert_true(patience_look(&p, true, 501, 21000));
}

/* Nobody is waited for where nothing waits; what comes then is another wait. */
static void test_nothing_waits(void **state)
{
    (void)state;
    struct patience p;
    patience_init(&p, LIMIT_MS);
    assert_false(patience_look(&p, true, 500, 1000));
    assert_false(patience_look(&p, false, 500, 50000));
    assert_true(p.deadline_ms == UINT64_MAX);
    assert_false(patience_look(&p, true, 500, 60000));
    assert_true(p.deadline_ms == 70000);
    assert_true(patience_look(&p, true, 500, 70000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_nothing_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
