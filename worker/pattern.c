/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pattern.h"

#include <assert.h>

enum { RANK_PERIOD = 79 };

static uint32_t index_part(uint64_t index)
{
    return (uint32_t)(index % 13 + index % 17 + index % 19);
}

static uint32_t rank_part(uint32_t rank)
{
    return 1 + rank % RANK_PERIOD;
}

/* b(0) + ... + b(n - 1): whole periods, and the triangle that is left. */
static uint32_t rank_parts_sum(uint32_t n)
{
    uint32_t rest = n % RANK_PERIOD;
    return n / RANK_PERIOD * (RANK_PERIOD * (RANK_PERIOD + 1) / 2) +
           rest * (rest + 1) / 2;
}

float pattern_value(uint32_t rank, uint64_t index)
{
    return (float)(index_part(index) + rank_part(rank));
}

float pattern_sum(uint32_t n, uint64_t index)
{
    assert(n >= 1 && n <= PATTERN_RANKS_MAX);
    return (float)(n * index_part(index) + rank_parts_sum(n));
}

/* One period of factor * a(i) + offset; it stays in the first-level cache
 * while a large buffer is written or compared. Returns its length, the
 * whole period or `count`. */
static uint64_t make_period(float period[PATTERN_PERIOD], uint64_t count,
                            uint32_t factor, uint32_t offset)
{
    uint64_t n = count < PATTERN_PERIOD ? count : PATTERN_PERIOD;
    for (uint64_t i = 0; i < n; i++) {
        period[i] = (float)(factor * index_part(i) + offset);
    }
    return n;
}

void pattern_fill(float *data, uint64_t count, uint32_t rank)
{
    float period[PATTERN_PERIOD];
    uint64_t n = make_period(period, count, 1, rank_part(rank));
    for (uint64_t done = 0; done < count; done += n) {
        uint64_t run = count - done < n ? count - done : n;
        for (uint64_t i = 0; i < run; i++) {
            data[done + i] = period[i];
        }
    }
}

/* Without an early exit, so that the compiler makes it wide. */
static uint64_t count_differences(const float *a, const float *b, uint64_t n)
{
    uint32_t differences = 0;
    for (uint64_t i = 0; i < n; i++) {
        differences += a[i] != b[i];
    }
    return differences;
}

static uint64_t first_difference(const float *a, const float *b)
{
    uint64_t i = 0;
    while (a[i] == b[i]) {
        i++;
    }
    return i;
}

void pattern_check(struct pattern_verdict *out, const float *data,
                   uint64_t count, uint32_t n)
{
    assert(n >= 1 && n <= PATTERN_RANKS_MAX);
    float period[PATTERN_PERIOD];
    uint64_t length = make_period(period, count, n, rank_parts_sum(n));
    *out = (struct pattern_verdict){0};
    for (uint64_t done = 0; done < count; done += length) {
        uint64_t run = count - done < length ? count - done : length;
        uint64_t wrong = count_differences(data + done, period, run);
        if (wrong != 0 && out->wrong_elements == 0) {
            out->first_wrong_index =
                done + first_difference(data + done, period);
        }
        out->wrong_elements += wrong;
    }
}
