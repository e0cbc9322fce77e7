/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify.h"

#include <string.h>

/* Elements in a row that have one origin: factor * a(index) + offset, where
 * a() is the part of the pattern that the rank does not change. */
struct run {
    uint64_t index; /* of the pattern, at the first of them */
    uint64_t length;
    float factor;
    float offset;
};

void verify_table_init(struct verify_table *table)
{
    float base = pattern_value(0, 0);
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++) {
        table->values[i] = pattern_value(0, i) - base;
    }
}

static uint64_t whole(const struct verify_call *call)
{
    return call->count * call->ranks;
}

uint64_t verify_send_count(const struct verify_call *call)
{
    bool is_whole = call->collective == GPUL_REDUCE_SCATTER ||
                    call->collective == GPUL_ALL_TO_ALL;
    return is_whole ? whole(call) : call->count;
}

uint64_t verify_receive_count(const struct verify_call *call)
{
    bool is_whole = call->collective == GPUL_ALL_GATHER ||
                    call->collective == GPUL_ALL_TO_ALL;
    return is_whole ? whole(call) : call->count;
}

static struct run value_run(uint32_t rank, uint64_t index, uint64_t length)
{
    return (struct run){index, length, 1, pattern_value(rank, 0)};
}

static struct run sum_run(uint32_t ranks, uint64_t index, uint64_t length)
{
    return (struct run){index, length, (float)ranks, pattern_sum(ranks, 0)};
}

/* The run at element i of the receive buffer, to the end of its block. */
static struct run expected_run(const struct verify_call *call, uint64_t i)
{
    uint64_t own = call->rank * call->count;
    uint64_t in_block = i % call->count;
    uint64_t length = call->count - in_block;
    uint32_t block = (uint32_t)(i / call->count);
    switch (call->collective) {
    case GPUL_COLLECTIVE_NONE:
    case GPUL_ALL_REDUCE:
        return sum_run(call->ranks, i, length);
    case GPUL_REDUCE_SCATTER:
        return sum_run(call->ranks, own + i, length);
    case GPUL_ALL_GATHER:
        return value_run(block, in_block, length);
    case GPUL_ALL_TO_ALL:
        return value_run(block, own + in_block, length);
    case GPUL_BROADCAST:
        return value_run(0, i, length);
    case GPUL_SEND_RECV:
        return value_run((call->rank + call->ranks - 1) % call->ranks, i,
                         length);
    case GPUL_COPY_TO_DEVICE:
    case GPUL_COPY_TO_HOST:
    case GPUL_COPY_ON_DEVICE:
        break;
    }
    return value_run(call->rank, i, length);
}

/* So many elements of a run lie in one stretch of the table. */
static uint64_t stretch(const struct run *run, uint64_t left, uint64_t *at)
{
    *at = run->index % PATTERN_PERIOD;
    uint64_t n = PATTERN_PERIOD - *at;
    n = n < run->length ? n : run->length;
    return n < left ? n : left;
}

void verify_fill(float *out, const struct verify_table *table,
                 const struct verify_call *call, uint64_t first, uint64_t n)
{
    for (uint64_t done = 0; done < n;) {
        struct run run = value_run(call->rank, first + done, n - done);
        uint64_t at;
        uint64_t length = stretch(&run, n - done, &at);
        for (uint64_t i = 0; i < length; i++) {
            out[done + i] = table->values[at + i] + run.offset;
        }
        done += length;
    }
}

/* Without an early exit, so that the compiler makes it wide. */
static uint32_t count_wrong(const float *got, const float *values,
                            const struct run *run, uint64_t n)
{
    uint32_t wrong = 0;
    for (uint64_t i = 0; i < n; i++) {
        wrong += got[i] != run->factor * values[i] + run->offset;
    }
    return wrong;
}

static void note_first(struct verify_verdict *verdict, const float *got,
                       const float *values, const struct run *run,
                       uint64_t first)
{
    uint64_t i = 0;
    float expected = run->factor * values[0] + run->offset;
    while (got[i] == expected) {
        i++;
        expected = run->factor * values[i] + run->offset;
    }
    uint32_t got_bits;
    uint32_t expected_bits;
    memcpy(&got_bits, &got[i], sizeof(got_bits));
    memcpy(&expected_bits, &expected, sizeof(expected_bits));
    verdict->first_wrong = first + i;
    verdict->first_bit = (uint32_t)__builtin_ctz(got_bits ^ expected_bits);
}

void verify_check(struct verify_verdict *verdict,
                  const struct verify_table *table,
                  const struct verify_call *call, const float *got,
                  uint64_t first, uint64_t n)
{
    for (uint64_t done = 0; done < n;) {
        struct run run = expected_run(call, first + done);
        uint64_t at;
        uint64_t length = stretch(&run, n - done, &at);
        const float *values = &table->values[at];
        uint32_t wrong = count_wrong(got + done, values, &run, length);
        if (wrong != 0 && verdict->wrong_elements == 0) {
            note_first(verdict, got + done, values, &run, first + done);
        }
        verdict->wrong_elements += wrong;
        done += length;
    }
}
