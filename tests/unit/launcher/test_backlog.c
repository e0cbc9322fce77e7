/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/backlog.h"
#include "launcher/ledger.h"

/* First in, first out, with bytes of their own. */
static void test_backlog(void **state)
{
    (void)state;
    struct backlog b = {0};
    uint8_t bytes[] = "first";
    struct backlog_item item = {.kind = BACKLOG_OUTPUT,
                                .rank = 7,
                                .node_rank = 3,
                                .stream = 1,
                                .bytes = bytes,
                                .n = 5};
    struct backlog_item got;
    assert_true(backlog_is_empty(&b));
    assert_false(backlog_pop(&b, &got));
    assert_true(backlog_push(&b, &item));
    assert_int_equal(b.bytes, 5);
    memset(bytes, 'x', sizeof(bytes));
    item = (struct backlog_item){.kind = BACKLOG_FINISH};
    assert_true(backlog_push(&b, &item));
    assert_true(backlog_pop(&b, &got));
    assert_int_equal(got.kind, BACKLOG_OUTPUT);
    assert_int_equal(got.rank, 7);
    assert_int_equal(got.node_rank, 3);
    assert_int_equal(got.stream, 1);
    assert_int_equal(got.n, 5);
    assert_memory_equal(got.bytes, "first", 5);
    assert_false(backlog_is_empty(&b));
    assert_true(backlog_pop(&b, &got));
    assert_int_equal(got.kind, BACKLOG_FINISH);
    assert_true(backlog_is_empty(&b));
    assert_true(backlog_push(&b, &item));
    assert_false(backlog_is_empty(&b));
    backlog_release(&b);
    assert_true(backlog_is_empty(&b));
}

/* Items of all sizes, pushed and popped in turns, over many blocks. */
static void test_sizes(void **state)
{
    (void)state;
    enum { COUNT = 3000, LARGEST = 100000 };
    struct backlog b = {0};
    struct backlog_item got;
    uint8_t *bytes = malloc(LARGEST);
    assert_non_null(bytes);
    uint32_t popped = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        struct backlog_item item = {.kind = BACKLOG_OUTPUT,
                                    .rank = i,
                                    .bytes = bytes,
                                    .n =
                                        i % 100 == 0 ? LARGEST : i * 7919 % 40};
        memset(bytes, (int)(i % 256), item.n);
        assert_true(backlog_push(&b, &item));
        for (uint32_t k = 0; k < i % 3 && backlog_pop(&b, &got); k++) {
            assert_int_equal(got.rank, popped++);
            assert_true(got.n == 0 || got.bytes[got.n - 1] == got.rank % 256);
        }
    }
    while (backlog_pop(&b, &got)) {
        assert_int_equal(got.rank, popped++);
        assert_true(got.n == 0 || got.bytes[0] == got.rank % 256);
    }
    assert_int_equal(popped, COUNT);
    assert_int_equal(b.bytes, 0);
    backlog_release(&b);
    free(bytes);
}

/* Each entry comes back once, in order, when its position is reached. */
static void test_ledger(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct ledger l = {0};
    struct ledger_entry entry;
    uint32_t taken = 0;
    assert_false(ledger_take(&l, UINT64_MAX, &entry));
    for (uint32_t i = 0; i < COUNT; i++) {
        entry = (struct ledger_entry){10 * i, i, i};
        assert_true(ledger_add(&l, &entry));
        while (ledger_take(&l, i % 3 == 0 ? 5 * i : 0, &entry)) {
            assert_int_equal(entry.node_rank, taken++);
            assert_true(entry.position <= 5 * i);
        }
    }
    assert_true(l.capacity <= 1024);
    while (ledger_take(&l, UINT64_MAX, &entry)) {
        assert_int_equal(entry.node_rank, taken++);
    }
    assert_int_equal(taken, COUNT);
    ledger_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
