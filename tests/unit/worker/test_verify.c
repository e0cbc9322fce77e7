/* SPDX-License-Identifier: Apache-2.0
 *
 * Every collective done by hand on small buffers, and what a fault in its
 * result is called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/verify.h"

enum { RANKS = 3, COUNT_MAX = 5000 };

static struct verify_table table;
static float sent[RANKS][RANKS * COUNT_MAX];
static float got[RANKS * COUNT_MAX];

static int setup(void **state)
{
    (void)state;
    verify_table_init(&table);
    return 0;
}

static void fill_all(enum gpul_collective collective, uint64_t count)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        struct verify_call call = {collective, r, RANKS, count};
        verify_fill(sent[r], &table, &call, 0, verify_send_count(&call));
    }
}

static float sum_at(uint64_t i)
{
    return sent[0][i] + sent[1][i] + sent[2][i];
}

/* What `rank` has to receive, by the definition of the collective. */
static float result_at(enum gpul_collective collective, uint32_t rank,
                       uint64_t count, uint64_t i)
{
    switch (collective) {
    case GPUL_ALL_GATHER:
        return sent[i / count][i % count];
    case GPUL_REDUCE_SCATTER:
        return sum_at(rank * count + i);
    case GPUL_ALL_TO_ALL:
        return sent[i / count][rank * count + i % count];
    case GPUL_BROADCAST:
        return sent[0][i];
    case GPUL_SEND_RECV:
        return sent[(rank + RANKS - 1) % RANKS][i];
    case GPUL_COPY_TO_DEVICE:
    case GPUL_COPY_TO_HOST:
    case GPUL_COPY_ON_DEVICE:
        return sent[rank][i];
    case GPUL_COLLECTIVE_NONE:
    case GPUL_ALL_REDUCE:
        break;
    }
    return sum_at(i);
}

static uint64_t receive_all(const struct verify_call *call)
{
    uint64_t n = verify_receive_count(call);
    for (uint64_t i = 0; i < n; i++) {
        got[i] = result_at(call->collective, call->rank, call->count, i);
    }
    return n;
}

/* Each collective done right is right on every rank, at counts below, at and
 * over the pattern's period, checked whole or in pieces. */
static void test_right(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 1000, PATTERN_PERIOD, COUNT_MAX};
    for (int c = GPUL_ALL_REDUCE; c <= GPUL_COPY_ON_DEVICE; c++) {
        for (size_t k = 0; k < 5 * RANKS; k++) {
            struct verify_call call = {(enum gpul_collective)c,
                                       (uint32_t)(k % RANKS), RANKS,
                                       counts[k / RANKS]};
            fill_all(call.collective, call.count);
            uint64_t n = receive_all(&call);
            struct verify_verdict verdict = {0};
            verify_check(&verdict, &table, &call, got, 0, n);
            for (uint64_t first = 0; first < n; first += 777) {
                uint64_t length = n - first < 777 ? n - first : 777;
                verify_check(&verdict, &table, &call, got + first, first,
                             length);
            }
            assert_int_equal(verdict.wrong_elements, 0);
        }
    }
}

/* Filling in pieces writes the same as filling at once. */
static void test_fill_in_pieces(void **state)
{
    (void)state;
    struct verify_call call = {GPUL_ALL_TO_ALL, 2, RANKS, COUNT_MAX};
    uint64_t n = verify_send_count(&call);
    verify_fill(got, &table, &call, 0, n);
    for (uint64_t first = 0; first < n; first += 1001) {
        uint64_t length = n - first < 1001 ? n - first : 1001;
        verify_fill(sent[0] + first, &table, &call, first, length);
    }
    assert_memory_equal(sent[0], got, n * sizeof(float));
}

/* One flipped bit is found in every collective: its element, also in a piece
 * that does not begin at 0, and its number. */
static void test_flipped_bit(void **state)
{
    (void)state;
    for (int c = GPUL_ALL_REDUCE; c <= GPUL_COPY_ON_DEVICE; c++) {
        for (uint32_t bit = 0; bit < 32; bit++) {
            struct verify_call call = {(enum gpul_collective)c, 1, RANKS,
                                       COUNT_MAX};
            fill_all(call.collective, call.count);
            uint64_t n = receive_all(&call);
            uint32_t bits;
            memcpy(&bits, &got[4711], sizeof(bits));
            bits ^= UINT32_C(1) << bit;
            memcpy(&got[4711], &bits, sizeof(bits));
            struct verify_verdict verdict = {0};
            verify_check(&verdict, &table, &call, got + 4000, 4000, n - 4000);
            assert_int_equal(verdict.wrong_elements, 1);
            assert_int_equal(verdict.first_wrong, 4711);
            assert_int_equal(verdict.first_bit, bit);
        }
    }
}

/* Wrong elements add up over pieces; the first one stays the first. */
static void test_many_wrong(void **state)
{
    (void)state;
    struct verify_call call = {GPUL_ALL_REDUCE, 0, RANKS, COUNT_MAX};
    fill_all(call.collective, call.count);
    uint64_t n = receive_all(&call);
    for (size_t i = 10; i < 20; i++) {
        got[i] = 0;
    }
    got[4999] = 0;
    struct verify_verdict verdict = {0};
    verify_check(&verdict, &table, &call, got, 0, 2500);
    verify_check(&verdict, &table, &call, got + 2500, 2500, n - 2500);
    assert_int_equal(verdict.wrong_elements, 11);
    assert_int_equal(verdict.first_wrong, 10);
}

/* A buffer that was never written, or a rank's contribution that is missing
 * or came twice, is wrong in every element. */
static void test_nothing_arrived(void **state)
{
    (void)state;
    for (int c = GPUL_ALL_REDUCE; c <= GPUL_SEND_RECV; c++) {
        struct verify_call call = {(enum gpul_collective)c, 1, RANKS, 100};
        uint64_t n = verify_receive_count(&call);
        struct verify_verdict verdict = {0};
        memset(got, 0, sizeof(got));
        verify_check(&verdict, &table, &call, got, 0, n);
        assert_int_equal(verdict.wrong_elements, n);
        memset(got, 0xff, sizeof(got)); /* not a number */
        verify_check(&verdict, &table, &call, got, 0, n);
        assert_int_equal(verdict.wrong_elements, 2 * n);
    }
    struct verify_call call = {GPUL_ALL_REDUCE, 1, RANKS, 100};
    struct verify_verdict verdict = {0};
    fill_all(call.collective, call.count);
    receive_all(&call);
    for (size_t i = 0; i < 100; i++) {
        got[i] -= sent[2][i];
    }
    verify_check(&verdict, &table, &call, got, 0, 100);
    assert_int_equal(verdict.wrong_elements, 100);
}

/* One rank alone: every result is what it sent. */
static void test_one_rank(void **state)
{
    (void)state;
    for (int c = GPUL_ALL_REDUCE; c <= GPUL_SEND_RECV; c++) {
        struct verify_call call = {(enum gpul_collective)c, 0, 1, COUNT_MAX};
        struct verify_verdict verdict = {0};
        assert_int_equal(verify_send_count(&call), COUNT_MAX);
        assert_int_equal(verify_receive_count(&call), COUNT_MAX);
        verify_fill(got, &table, &call, 0, COUNT_MAX);
        verify_check(&verdict, &table, &call, got, 0, COUNT_MAX);
        assert_int_equal(verdict.wrong_elements, 0);
    }
}

/* The largest world: sums are exact, and one too few shows. */
static void test_largest_world(void **state)
{
    (void)state;
    struct verify_call call = {GPUL_ALL_REDUCE, 0, PATTERN_RANKS_MAX, 100};
    struct verify_verdict verdict = {0};
    for (size_t i = 0; i < 100; i++) {
        got[i] = pattern_sum(PATTERN_RANKS_MAX, i);
    }
    verify_check(&verdict, &table, &call, got, 0, 100);
    assert_int_equal(verdict.wrong_elements, 0);
    got[50] -= 1;
    verify_check(&verdict, &table, &call, got, 0, 100);
    assert_int_equal(verdict.wrong_elements, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_fill_in_pieces),
        cmocka_unit_test(test_flipped_bit),
        cmocka_unit_test(test_many_wrong),
        cmocka_unit_test(test_nothing_arrived),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_largest_world),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
