/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/eventqueue.h"

/* First in, first out, over the end of the ring many times. */
static void test_order(void **state)
{
    (void)state;
    struct eventqueue q = {0};
    struct waiting_event e;
    int in = 0;
    int out = 0;
    for (int round = 0; round < 20; round++) {
        while (q.count < EVENTQUEUE_MAX) {
            eventqueue_put(&q, AGENT_EVENT_SIGNAL, NULL)->signal = in++;
        }
        for (int i = 0; i < 5; i++) {
            assert_true(eventqueue_take(&q, &e));
            assert_int_equal(e.signal, out++);
        }
    }
    while (eventqueue_take(&q, &e)) {
        assert_int_equal(e.signal, out++);
    }
    assert_int_equal(in, out);
}

/* Each event starts clean, and its text is fit for the wire. */
static void test_contents(void **state)
{
    (void)state;
    struct eventqueue q = {0};
    struct waiting_event e;
    for (int i = 0; i < EVENTQUEUE_MAX; i++) {
        struct waiting_event *put =
            eventqueue_put(&q, AGENT_EVENT_PROBE_ENDED, "a\x01\xff");
        put->is_unclean = true;
        put->port_base = 9;
        assert_true(eventqueue_take(&q, &e));
        assert_string_equal(e.text, "a??");
        assert_true(e.is_unclean);
    }
    eventqueue_put(&q, AGENT_EVENT_TICK, NULL);
    assert_true(eventqueue_take(&q, &e));
    assert_int_equal(e.type, AGENT_EVENT_TICK);
    assert_string_equal(e.text, "");
    assert_false(e.is_unclean);
    assert_int_equal(e.port_base, 0);
    char longer[2 * EVENTQUEUE_TEXT_BYTES];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    eventqueue_put(&q, AGENT_EVENT_LOST, longer);
    assert_true(eventqueue_take(&q, &e));
    assert_int_equal(strlen(e.text), EVENTQUEUE_TEXT_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
