/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "proto/limits.h"
#include "worker/inputqueue.h"

enum { WINDOW = GPUL_INPUT_WINDOW_BYTES_MAX };

static void assert_credit(struct inputqueue *q, uint64_t bytes, bool is_closed)
{
    uint64_t told = 0;
    bool closed = false;
    bool is_told = inputqueue_credit(q, &told, &closed);
    assert_int_equal(is_told, bytes > 0 || is_closed);
    if (is_told) {
        assert_int_equal(told, bytes);
        assert_int_equal(closed, is_closed);
    }
}

static void assert_next(const struct inputqueue *q, uint32_t reader,
                        const char *text)
{
    const uint8_t *bytes = NULL;
    size_t n = inputqueue_next(q, reader, &bytes);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(n > 0 ? (const void *)bytes : "", text, n);
}

/* Bytes come before the ranks are there, are read by each at its own pace,
 * and credited when the slowest has read them. */
static void test_two_paces(void **state)
{
    (void)state;
    struct inputqueue q;
    inputqueue_init(&q);
    assert_int_equal(inputqueue_put(&q, "hello ", 6, false), 0);
    assert_credit(&q, 0, false);
    assert_int_equal(inputqueue_open(&q, 2), 0);
    assert_int_equal(inputqueue_put(&q, "world", 5, false), 0);
    assert_next(&q, 0, "hello world");
    inputqueue_took(&q, 0, 11);
    assert_next(&q, 0, "");
    assert_credit(&q, 0, false);
    inputqueue_took(&q, 1, 6);
    assert_next(&q, 1, "world");
    assert_credit(&q, 0, false); /* little, and more to come */
    inputqueue_took(&q, 1, 5);
    assert_credit(&q, 11, false);
    assert_credit(&q, 0, false);
    assert_false(inputqueue_is_done(&q, 0));
    assert_int_equal(inputqueue_put(&q, "", 0, true), 0);
    assert_true(inputqueue_is_done(&q, 0));
    inputqueue_close(&q, 0);
    assert_credit(&q, 0, false);
    inputqueue_close(&q, 1);
    assert_credit(&q, 0, true);
    assert_credit(&q, 0, false);
    inputqueue_release(&q);
}

/* Who has closed holds up nobody, and the last one swallows the rest. */
static void test_closed(void **state)
{
    (void)state;
    struct inputqueue q;
    inputqueue_init(&q);
    assert_int_equal(inputqueue_open(&q, 2), 0);
    assert_int_equal(inputqueue_put(&q, "abc", 3, false), 0);
    inputqueue_took(&q, 0, 3);
    inputqueue_close(&q, 1);
    assert_credit(&q, 3, false);
    assert_int_equal(inputqueue_put(&q, "de", 2, false), 0);
    inputqueue_close(&q, 0);
    assert_next(&q, 0, "");
    assert_credit(&q, 2, true);
    assert_int_equal(inputqueue_put(&q, "fgh", 3, false), 0);
    assert_credit(&q, 0, false);
    /* New ranks begin anew. */
    inputqueue_clear(&q);
    assert_int_equal(inputqueue_put(&q, "x", 1, true), 0);
    assert_int_equal(inputqueue_open(&q, 1), 0);
    assert_next(&q, 0, "x");
    inputqueue_took(&q, 0, 1);
    assert_true(inputqueue_is_done(&q, 0));
    assert_credit(&q, 1, false);
    inputqueue_release(&q);
}

/* Nobody here reads. */
static void test_nobody(void **state)
{
    (void)state;
    struct inputqueue q;
    inputqueue_init(&q);
    assert_int_equal(inputqueue_put(&q, "abc", 3, false), 0);
    assert_int_equal(inputqueue_open(&q, 0), 0);
    assert_credit(&q, 3, true);
    inputqueue_release(&q);
}

/* Two windows are held, as a retry may bring them, and no more; nothing comes
 * behind the end. */
static void test_limits(void **state)
{
    (void)state;
    struct inputqueue q;
    uint8_t *data = calloc(1, 2 * WINDOW);
    inputqueue_init(&q);
    assert_int_equal(inputqueue_open(&q, 1), 0);
    assert_int_equal(inputqueue_put(&q, data, 2 * WINDOW, false), 0);
    assert_int_equal(inputqueue_put(&q, data, 1, false), GPUL_ELIMIT);
    inputqueue_took(&q, 0, 1);
    assert_int_equal(inputqueue_put(&q, data, 1, true), 0);
    assert_int_equal(inputqueue_put(&q, "", 0, true), GPUL_ELIMIT);
    inputqueue_release(&q);
    free(data);
}

/* Whatever the order: every byte once, in order, credit for each, and never
 * more held than was sent without credit. */
static void test_random(void **state)
{
    enum { READERS = 3, TOTAL = 8 << 20 };
    (void)state;
    struct gpul_rng rng;
    struct inputqueue q;
    static uint8_t piece[GPUL_INPUT_BYTES_MAX];
    uint64_t sent = 0, credit = WINDOW;
    uint64_t read[READERS] = {0};
    bool is_closed = false;
    gpul_rng_init(&rng, 7);
    inputqueue_init(&q);
    assert_int_equal(inputqueue_open(&q, READERS), 0);
    while (!is_closed) {
        uint64_t room =
            credit - sent < TOTAL - sent ? credit - sent : TOTAL - sent;
        size_t n = (size_t)gpul_rng_below(&rng, sizeof(piece) + 1);
        n = n < room ? n : (size_t)room;
        for (size_t i = 0; i < n; i++) {
            piece[i] = (uint8_t)((sent + i) % 251);
        }
        if (!q.has_end) {
            bool is_end = sent + n == TOTAL;
            assert_int_equal(inputqueue_put(&q, piece, n, is_end), 0);
        }
        sent += n;
        uint32_t r = (uint32_t)gpul_rng_below(&rng, READERS);
        const uint8_t *bytes;
        size_t some = inputqueue_next(&q, r, &bytes);
        some = some > 0 ? (size_t)gpul_rng_below(&rng, some + 1) : 0;
        for (size_t i = 0; i < some; i++) {
            assert_int_equal(bytes[i], (read[r] + i) % 251);
        }
        read[r] += some;
        inputqueue_took(&q, r, some);
        if (inputqueue_is_done(&q, r)) {
            inputqueue_close(&q, r);
        }
        uint64_t more;
        if (inputqueue_credit(&q, &more, &is_closed)) {
            credit += more;
        }
        assert_true(q.bytes.used <= (size_t)4 * WINDOW);
    }
    assert_int_equal(credit, TOTAL + WINDOW);
    for (int r = 0; r < READERS; r++) {
        assert_int_equal(read[r], TOTAL);
    }
    inputqueue_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_paces), cmocka_unit_test(test_closed),
        cmocka_unit_test(test_nobody),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
