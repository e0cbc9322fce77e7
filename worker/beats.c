/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/beats.h"

#include <stdlib.h>

#define NEVER_MS UINT64_MAX

/* The limit of a rank; NEVER_MS: none is known. */
static uint64_t limit_ms(const struct beats *b, const struct beats_rank *r)
{
    if (b->limit_ms > 0) {
        return b->limit_ms;
    }
    if (r->longest_ms == 0) {
        return NEVER_MS;
    }
    uint64_t learned_ms = r->longest_ms > NEVER_MS / BEATS_FACTOR
                              ? NEVER_MS
                              : r->longest_ms * BEATS_FACTOR;
    return learned_ms > BEATS_LIMIT_MIN_MS ? learned_ms : BEATS_LIMIT_MIN_MS;
}

static uint64_t after(uint64_t at_ms, uint64_t ms)
{
    return ms > NEVER_MS - at_ms ? NEVER_MS : at_ms + ms;
}

static void set_due(struct beats *b, struct beats_rank *r, uint64_t due_ms)
{
    r->due_ms = due_ms;
    if (due_ms < b->next_ms) {
        b->next_ms = due_ms;
    }
}

int beats_begin(struct beats *b, uint32_t count, uint64_t limit,
                uint64_t now_ms, struct gpul_error *err)
{
    beats_release(b);
    b->ranks = calloc(count, sizeof(*b->ranks));
    b->news = calloc(count, sizeof(*b->news));
    if (b->ranks == NULL || b->news == NULL) {
        beats_release(b);
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for beats of %u ranks", count);
    }
    b->count = count;
    b->limit_ms = limit;
    b->next_ms = NEVER_MS;
    for (uint32_t i = 0; i < count; i++) {
        b->ranks[i].sign_ms = now_ms;
        set_due(b, &b->ranks[i], after(now_ms, limit_ms(b, &b->ranks[i])));
    }
    return 0;
}

void beats_release(struct beats *b)
{
    free(b->ranks);
    free(b->news);
    *b = (struct beats){.ranks = NULL};
}

static bool is_watched(const struct beats *b, uint32_t local_rank)
{
    return local_rank < b->count && !b->ranks[local_rank].is_over;
}

static void add_news(struct beats *b, struct beats_rank *r)
{
    if (!r->has_news) {
        r->has_news = true;
        b->news[b->news_count++] = (uint32_t)(r - b->ranks);
    }
}

/* It shows that it lives: any stall is over, and its time begins anew. */
static void sign(struct beats *b, struct beats_rank *r, uint64_t now_ms)
{
    if (r->is_stalled) {
        r->is_stalled = false;
        r->stalled_ms = now_ms - r->sign_ms;
        add_news(b, r);
    }
    r->sign_ms = now_ms;
    set_due(b, r, after(now_ms, limit_ms(b, r)));
}

/* ---- what a rank does ---------------------------------------------------- */

static void step(struct beats *b, struct beats_rank *r, uint64_t now_ms)
{
    uint64_t took_ms = now_ms > r->sign_ms ? now_ms - r->sign_ms : 1;
    if (r->beats >= BEATS_WARMUP && took_ms > r->longest_ms) {
        r->longest_ms = took_ms;
    }
    bool has_number = r->line == BEATS_DIGITS || r->line == BEATS_NUMBERED;
    r->beats++;
    r->is_uncounted &= !has_number;
    r->steps = has_number ? r->number : r->steps + 1;
    r->line = BEATS_EMPTY;
    r->number = 0;
    r->beat_ms = now_ms;
    if (r->beats == BEATS_WARMUP) {
        r->warm_ms = now_ms;
        r->warm_steps = r->steps;
    }
    sign(b, r, now_ms);
}

/* Only digits at the beginning of a line count. */
static void take_byte(struct beats_rank *r, char byte)
{
    bool is_digit = byte >= '0' && byte <= '9';
    if (r->line == BEATS_EMPTY) {
        r->line = is_digit ? BEATS_DIGITS : BEATS_WORD;
    } else if (r->line == BEATS_DIGITS && !is_digit) {
        r->line = BEATS_NUMBERED;
    }
    if (r->line == BEATS_DIGITS) {
        r->number = r->number * 10 + (uint64_t)(byte - '0');
        r->number = r->number < BEATS_STEP_MAX ? r->number : BEATS_STEP_MAX;
    }
}

void beats_take(struct beats *b, uint32_t local_rank, const char *bytes,
                size_t n, uint64_t now_ms)
{
    if (!is_watched(b, local_rank)) {
        return;
    }
    struct beats_rank *r = &b->ranks[local_rank];
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            step(b, r, now_ms);
        } else {
            take_byte(r, bytes[i]);
        }
    }
}

void beats_take_over(struct beats *b, uint32_t local_rank)
{
    if (is_watched(b, local_rank)) {
        b->ranks[local_rank].is_uncounted = true;
    }
}

void beats_output(struct beats *b, uint32_t local_rank, uint64_t now_ms)
{
    if (is_watched(b, local_rank) && b->ranks[local_rank].beats == 0) {
        sign(b, &b->ranks[local_rank], now_ms);
    }
}

void beats_over(struct beats *b, uint32_t local_rank, uint64_t now_ms)
{
    if (is_watched(b, local_rank)) {
        struct beats_rank *r = &b->ranks[local_rank];
        sign(b, r, now_ms);
        r->is_over = true;
        r->due_ms = NEVER_MS;
    }
}

void beats_pace(const struct beats *b, uint32_t local_rank, uint64_t *steps,
                uint64_t *ms)
{
    *steps = 0;
    *ms = 0;
    if (local_rank >= b->count) {
        return;
    }
    const struct beats_rank *r = &b->ranks[local_rank];
    if (!r->is_uncounted && r->beats > BEATS_WARMUP &&
        r->steps > r->warm_steps && r->beat_ms > r->warm_ms) {
        *steps = r->steps - r->warm_steps;
        *ms = r->beat_ms - r->warm_ms;
    }
}

/* ---- time ---------------------------------------------------------------- */

uint64_t beats_next_ms(const struct beats *b)
{
    return b->count > 0 ? b->next_ms : NEVER_MS;
}

/* The time in which this process did not run is nobody's silence. */
static void forgive(struct beats *b, uint64_t late_ms, uint64_t now_ms)
{
    for (uint32_t i = 0; i < b->count; i++) {
        struct beats_rank *r = &b->ranks[i];
        uint64_t sign_ms = after(r->sign_ms, late_ms);
        r->sign_ms = sign_ms < now_ms ? sign_ms : now_ms;
        r->due_ms = after(r->due_ms, late_ms);
    }
}

void beats_tick(struct beats *b, uint64_t now_ms)
{
    if (now_ms < beats_next_ms(b)) {
        return;
    }
    uint64_t late_ms = now_ms - b->next_ms;
    if (late_ms > BEATS_LATE_MS) {
        forgive(b, late_ms, now_ms);
    }
    b->next_ms = NEVER_MS;
    for (uint32_t i = 0; i < b->count; i++) {
        struct beats_rank *r = &b->ranks[i];
        if (r->due_ms <= now_ms) {
            r->is_stalled = true;
            r->due_ms = after(now_ms, now_ms - r->sign_ms);
            add_news(b, r);
        }
        set_due(b, r, r->due_ms);
    }
}

static bool fill_news(struct beats *b, struct beats_rank *r,
                      struct beats_news *out, uint64_t now_ms)
{
    bool was_told = r->is_told;
    r->has_news = false;
    r->is_told = r->is_stalled;
    *out = (struct beats_news){
        .local_rank = (uint32_t)(r - b->ranks),
        .kind = !r->is_stalled                     ? BEATS_RESUMED
                : r->beats == 0 || r->is_uncounted ? BEATS_SILENT
                                                   : BEATS_BEHIND,
        .steps = r->steps,
        .silence_ms = r->is_stalled ? now_ms - r->sign_ms : r->stalled_ms,
        .limit_ms = limit_ms(b, r),
        .is_learned = b->limit_ms == 0,
    };
    return r->is_stalled || was_told;
}

bool beats_next_news(struct beats *b, struct beats_news *out, uint64_t now_ms)
{
    while (b->news_count > 0) {
        struct beats_rank *r = &b->ranks[b->news[--b->news_count]];
        if (fill_news(b, r, out, now_ms)) {
            return true;
        }
    }
    return false;
}
