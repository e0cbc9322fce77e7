/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits given and learned, late clocks, lines in pieces, a million beats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/beats.h"

#define NEVER_MS UINT64_MAX

static struct beats begin(uint32_t count, uint64_t limit_ms)
{
    struct beats b = {.ranks = NULL};
    assert_int_equal(beats_begin(&b, count, limit_ms, 1000, NULL), 0);
    return b;
}

static void beat(struct beats *b, uint32_t local_rank, uint64_t now_ms)
{
    beats_take(b, local_rank, "\n", 1, now_ms);
}

/* The news by then, oldest first of what is the same: "behind 0 7 steps 30000
 * of 20000", with a * behind a learned limit. */
static const char *news(struct beats *b, uint64_t now_ms)
{
    static const char *const kinds[] = {"", "silent", "behind", "resumed"};
    static char text[512];
    struct beats_news n;
    size_t used = 0;
    text[0] = 0;
    beats_tick(b, now_ms);
    while (beats_next_news(b, &n, now_ms)) {
        used += (size_t)snprintf(
            text + used, sizeof(text) - used,
            "%s%s %u %llu steps %llu of %llu%s", used > 0 ? ", " : "",
            kinds[n.kind], n.local_rank, (unsigned long long)n.steps,
            (unsigned long long)n.silence_ms, (unsigned long long)n.limit_ms,
            n.is_learned ? "*" : "");
    }
    return text;
}

/* Tick at every deadline up to `until_ms`, as a loop with a timer does. */
static void run(struct beats *b, uint64_t until_ms)
{
    while (beats_next_ms(b) <= until_ms) {
        beats_tick(b, beats_next_ms(b));
    }
}

static void test_nothing(void **state)
{
    (void)state;
    struct beats b = {.ranks = NULL};
    struct beats_news n;
    assert_int_equal(beats_next_ms(&b), NEVER_MS);
    beats_tick(&b, 5);
    beats_take(&b, 0, "\n", 1, 5);
    beats_output(&b, 0, 5);
    beats_over(&b, 0, 5);
    assert_false(beats_next_news(&b, &n, 5));
    beats_release(&b);
}

/* Without a given limit, silence is never a stall, however long. */
static void test_no_beats(void **state)
{
    (void)state;
    struct beats b = begin(2, 0);
    assert_int_equal(beats_next_ms(&b), NEVER_MS);
    assert_string_equal(news(&b, 1000000000), "");
    beats_release(&b);
}

static void test_given(void **state)
{
    (void)state;
    struct beats b = begin(2, 20000);
    assert_int_equal(beats_next_ms(&b), 21000);
    assert_string_equal(news(&b, 20999), "");
    beats_output(&b, 1, 20999);
    assert_string_equal(news(&b, 21000), "silent 0 0 steps 20000 of 20000");
    assert_string_equal(news(&b, 40998), "");
    /* Told again when the silence has doubled, and the other is due too. */
    assert_string_equal(news(&b, 41000), "silent 1 0 steps 20001 of 20000, "
                                         "silent 0 0 steps 40000 of 20000");
    beat(&b, 0, 45000);
    assert_string_equal(news(&b, 45000), "resumed 0 1 steps 44000 of 20000");
    /* Who has beaten is judged by beats alone. */
    beats_output(&b, 0, 60000);
    run(&b, 64999);
    assert_string_equal(news(&b, 65000), "behind 0 1 steps 20000 of 20000, "
                                         "silent 1 0 steps 44001 of 20000");
    beats_release(&b);
}

/* Five times the longest step after five others, but never under a minute. */
static void test_learned(void **state)
{
    (void)state;
    struct beats b = begin(1, 0);
    uint64_t now_ms = 1000;
    for (int i = 0; i < BEATS_WARMUP; i++) {
        now_ms += 500000; /* compiles, fills caches */
        beat(&b, 0, now_ms);
        assert_int_equal(beats_next_ms(&b), NEVER_MS);
    }
    now_ms += 100;
    beat(&b, 0, now_ms);
    assert_int_equal(beats_next_ms(&b), now_ms + BEATS_LIMIT_MIN_MS);
    now_ms += 20000;
    beat(&b, 0, now_ms);
    now_ms += 10000;
    beat(&b, 0, now_ms);
    run(&b, now_ms + 99999);
    assert_string_equal(news(&b, now_ms + 99999), "");
    assert_string_equal(news(&b, now_ms + 100000),
                        "behind 0 8 steps 100000 of 100000*");
    /* It goes on: it has learned that a step may take so long. */
    now_ms += 150000;
    beat(&b, 0, now_ms);
    assert_string_equal(news(&b, now_ms),
                        "resumed 0 9 steps 150000 of 750000*");
    run(&b, now_ms + 749999);
    assert_string_equal(news(&b, now_ms + 749999), "");
    beats_release(&b);
}

/* A stall that ends before anyone was told of it is none. */
static void test_untold(void **state)
{
    (void)state;
    struct beats b = begin(1, 1000);
    struct beats_news n;
    beats_tick(&b, 2000);
    beat(&b, 0, 2001);
    assert_false(beats_next_news(&b, &n, 2001));
    beats_tick(&b, 3001);
    assert_string_equal(news(&b, 3001), "behind 0 1 steps 1000 of 1000");
    beat(&b, 0, 3002);
    beats_release(&b);
}

/* This process did not run for an hour: that is no rank's silence. */
static void test_late(void **state)
{
    (void)state;
    struct beats b = begin(2, 20000);
    beat(&b, 0, 11000);
    run(&b, 11000);
    assert_string_equal(news(&b, 3600000), "silent 1 0 steps 20000 of 20000");
    assert_string_equal(news(&b, 3609999), "");
    assert_string_equal(news(&b, 3610000), "behind 0 1 steps 20000 of 20000");
    beats_release(&b);
    /* A little late is just a busy machine. */
    b = begin(1, 20000);
    assert_string_equal(news(&b, 22000), "silent 0 0 steps 21000 of 20000");
    beats_release(&b);
}

/* Who has ended, or has closed its pipe, is not waited for. */
static void test_over(void **state)
{
    (void)state;
    struct beats b = begin(2, 20000);
    beat(&b, 1, 2000);
    beats_over(&b, 1, 3000);
    assert_string_equal(news(&b, 21000), "silent 0 0 steps 20000 of 20000");
    beats_over(&b, 0, 30000);
    assert_string_equal(news(&b, 30000), "resumed 0 0 steps 29000 of 20000");
    beat(&b, 1, 30000);
    assert_string_equal(news(&b, 900000), "");
    assert_int_equal(beats_next_ms(&b), NEVER_MS);
    beats_release(&b);
}

/* Steps that another agent has counted are not known, unless told. */
static void test_taken_over(void **state)
{
    (void)state;
    struct beats b = begin(1, 20000);
    beats_take_over(&b, 0);
    beats_take_over(&b, 1);
    beat(&b, 0, 2000);
    assert_string_equal(news(&b, 22000), "silent 0 1 steps 20000 of 20000");
    beats_take(&b, 0, "70\n", 3, 23000);
    assert_string_equal(news(&b, 23000), "resumed 0 70 steps 21000 of 20000");
    run(&b, 43000);
    assert_string_equal(news(&b, 43000), "behind 0 70 steps 20000 of 20000");
    beats_release(&b);
}

static uint64_t steps_after(const char *text, size_t piece)
{
    struct beats b = begin(1, 1000);
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += piece) {
        size_t left = n - at;
        beats_take(&b, 0, text + at, left < piece ? left : piece, 1000);
    }
    uint64_t steps = b.ranks[0].steps;
    beats_release(&b);
    return steps;
}

static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t steps;
    } cases[] = {
        {"", 0},
        {"\n", 1},
        {"\n\n\n", 3},
        {"no end", 0},
        {"x\ny\n", 2},
        {"41\n", 41},
        {"41\n\n", 42},
        {"41\n7\n", 7},
        {"41 loss 3\n", 41},
        {"41.5\n", 41},
        {"step 41\n", 1},
        {"\r\n", 1},
        {"99999999999999999999999999\n", BEATS_STEP_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t piece = 1; piece <= 8; piece++) {
            assert_int_equal(steps_after(cases[i].text, piece), cases[i].steps);
        }
    }
}

static void expect_pace(const struct beats *b, uint64_t steps, uint64_t ms)
{
    uint64_t got_steps = 7, got_ms = 7;
    beats_pace(b, 0, &got_steps, &got_ms);
    assert_int_equal(got_steps, steps);
    assert_int_equal(got_ms, ms);
}

/* Behind the warm-up, up to the last step and not to the end. */
static void test_pace(void **state)
{
    (void)state;
    struct beats b = begin(2, 600000);
    for (uint64_t i = 1; i <= BEATS_WARMUP; i++) {
        beat(&b, 0, 1000 * i);
        expect_pace(&b, 0, 0);
    }
    beat(&b, 0, 1000 * BEATS_WARMUP + 200);
    expect_pace(&b, 1, 200);
    beat(&b, 0, 1000 * BEATS_WARMUP + 500);
    beats_over(&b, 0, 1000 * BEATS_WARMUP + 9000);
    expect_pace(&b, 2, 500);
    beats_release(&b);
    expect_pace(&b, 0, 0);
}

/* Numbers count as steps, and one that goes back is no pace. */
static void test_pace_by_numbers(void **state)
{
    (void)state;
    struct beats b = begin(1, 600000);
    for (uint64_t i = 1; i <= BEATS_WARMUP; i++) {
        beats_take(&b, 0, "100\n", 4, 1000 * i);
    }
    beats_take(&b, 0, "140\n", 4, 1000 * BEATS_WARMUP + 800);
    expect_pace(&b, 40, 800);
    beats_take(&b, 0, "60\n", 3, 1000 * BEATS_WARMUP + 900);
    expect_pace(&b, 0, 0);
    beats_release(&b);
}

/* A beat costs no look at the other ranks. */
static void test_many(void **state)
{
    (void)state;
    enum { RANKS = 1000, BEATS = 1000000 };
    struct beats b = begin(RANKS, 600000);
    unsigned ticks = 0;
    for (uint32_t i = 0; i < BEATS; i++) {
        uint64_t now_ms = 1000 + i;
        if (beats_next_ms(&b) <= now_ms) {
            beats_tick(&b, now_ms);
            ticks++;
        }
        beat(&b, i % RANKS, now_ms);
    }
    assert_true(ticks < 10);
    assert_int_equal(b.news_count, 0);
    assert_int_equal(b.ranks[7].steps, BEATS / RANKS);
    beats_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_no_beats),
        cmocka_unit_test(test_given),   cmocka_unit_test(test_learned),
        cmocka_unit_test(test_untold),  cmocka_unit_test(test_late),
        cmocka_unit_test(test_over),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_many),    cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_pace),    cmocka_unit_test(test_pace_by_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
