/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trial.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "worker/measure.h"

enum {
    ROUND_TRIPS = 10, /* that warm-up and measurement last at least */
    ROUND_TRIP_BYTES = 9,
};
#define NS_PER_MS UINT64_C(1000000)
#define NEVER UINT64_MAX

static const uint8_t PING = 'P';
static const uint8_t ROUND_TRIP = 'R';
static const uint8_t DATA = 'D';
static const uint8_t STOP = 'S';
static const uint8_t END = 'E';
static const uint8_t BYE = 'B';

/* All that is ever sent in chunks: 'D', and zeros. */
static const uint8_t chunk[TRIAL_CHUNK_BYTES] = {'D'};

static void fail(struct trial *t, Gpul__TrialWay__Failure failure,
                 const char *why)
{
    t->state = TRIAL_FAILED;
    t->failure = failure;
    snprintf(t->text, sizeof(t->text), "%s", why);
}

static bool has_said(const struct trial *t)
{
    return t->word_at == t->word_bytes;
}

static void say(struct trial *t, uint8_t word)
{
    assert(has_said(t));
    t->words[0] = word;
    t->word_bytes = 1;
    t->word_at = 0;
}

/* An answer may be here before we hear that it was written. */
static void say_ping(struct trial *t)
{
    t->ping_ns = t->now_ns;
    say(t, PING);
}

static void say_hello(struct trial *t)
{
    const struct linkhello hello = {
        .token = t->plan.token, .from = t->plan.self, .to = t->plan.peer};
    linkhello_write(t->words, &hello);
    t->word_bytes = LINKHELLO_BYTES;
    t->word_at = 0;
}

void trial_init(struct trial *t, const struct trial_plan *plan, uint64_t now_ns)
{
    assert(plan->run_ms > 0 && plan->bytes_max > 0);
    memset(t, 0, sizeof(*t));
    t->plan = *plan;
    t->state = TRIAL_HELLO;
    t->now_ns = now_ns;
    t->warm_ns = TRIAL_WARM_MS * NS_PER_MS;
    t->run_ns = plan->run_ms * NS_PER_MS;
    if (plan->is_dialler) {
        say_hello(t);
    }
}

/* ---- both ---------------------------------------------------------------- */

/* Take bytes up to `wanted` in all; returns how many were taken. */
static size_t gather(struct trial *t, size_t wanted, const uint8_t *bytes,
                     size_t n)
{
    size_t take = wanted - t->got_bytes < n ? wanted - t->got_bytes : n;
    memcpy(t->got + t->got_bytes, bytes, take);
    t->got_bytes += take;
    return take;
}

static void take_nonsense(struct trial *t)
{
    fail(t, GPUL__TRIAL_WAY__FAILURE__BROKEN,
         "what came is not what a trial says");
}

static size_t take_hello(struct trial *t, const uint8_t *bytes, size_t n)
{
    struct linkhello hello;
    size_t taken = gather(t, LINKHELLO_BYTES, bytes, n);
    if (t->got_bytes < LINKHELLO_BYTES) {
        return taken;
    }
    t->got_bytes = 0;
    if (!linkhello_read(&hello, t->got) || hello.token != t->plan.token ||
        hello.from != t->plan.peer || hello.to != t->plan.self) {
        fail(t, GPUL__TRIAL_WAY__FAILURE__WRONG_PEER,
             "somebody else answers there");
        return taken;
    }
    t->state = TRIAL_PINGS;
    if (t->plan.is_dialler && !has_said(t)) {
        take_nonsense(t); /* an answer to what it cannot know */
    } else if (t->plan.is_dialler) {
        t->pings_end_ns = t->now_ns + TRIAL_PINGS_MS * NS_PER_MS;
        say_ping(t);
    } else {
        say_hello(t);
    }
    return taken;
}

/* ---- who dials and sends ------------------------------------------------- */

static uint64_t median_ns(const struct trial *t)
{
    struct measure_stats stats;
    uint64_t times_ns[TRIAL_PINGS_MAX];
    memcpy(times_ns, t->rtt_ns, t->rtt_count * sizeof(times_ns[0]));
    measure_stats(&stats, times_ns, t->rtt_count);
    return stats.median_ns;
}

static void say_round_trip(struct trial *t)
{
    uint64_t value = median_ns(t);
    t->words[0] = ROUND_TRIP;
    for (unsigned i = 0; i < sizeof(value); i++) {
        t->words[ROUND_TRIP_BYTES - 1 - i] = (uint8_t)(value >> (8 * i));
    }
    t->word_bytes = ROUND_TRIP_BYTES;
    t->word_at = 0;
}

static void take_ping(struct trial *t)
{
    t->rtt_ns[t->rtt_count++] = t->now_ns - t->ping_ns;
    if (t->rtt_count < TRIAL_PINGS_MAX && t->now_ns < t->pings_end_ns) {
        say_ping(t);
    } else {
        say_round_trip(t);
        t->state = TRIAL_FLOW;
    }
}

static void dialler_takes(struct trial *t, uint8_t word)
{
    /* An answer before the question has left is none. */
    if (t->state == TRIAL_PINGS && word == PING && has_said(t)) {
        take_ping(t);
    } else if (t->state == TRIAL_FLOW && word == STOP && !t->is_stopped) {
        t->is_stopped = true;
    } else if (t->state == TRIAL_BYE && word == BYE && has_said(t)) {
        t->state = TRIAL_OVER;
    } else {
        take_nonsense(t);
    }
}

/* The flow ends with a whole chunk. */
static void end_flow(struct trial *t)
{
    if (t->state == TRIAL_FLOW && t->is_stopped && t->chunk_at == 0 &&
        has_said(t)) {
        say(t, END);
        t->state = TRIAL_BYE;
    }
}

/* ---- who listens and measures -------------------------------------------- */

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
    if (value > high) {
        value = high;
    }
    return value < low ? low : value;
}

/* Ten round trips of what the peer says; what it says is bounded. */
static void take_round_trip(struct trial *t)
{
    uint64_t rtt_ns = 0;
    for (unsigned i = 1; i < ROUND_TRIP_BYTES; i++) {
        rtt_ns = rtt_ns << 8 | t->got[i];
    }
    rtt_ns = clamp(rtt_ns, 0, TRIAL_RUN_MS_MAX * NS_PER_MS);
    t->warm_ns = clamp(rtt_ns * ROUND_TRIPS, TRIAL_WARM_MS * NS_PER_MS,
                       TRIAL_WARM_MS_MAX * NS_PER_MS);
    uint64_t run_ns =
        clamp(rtt_ns * ROUND_TRIPS, 0, TRIAL_RUN_MS_MAX * NS_PER_MS);
    if (run_ns > t->run_ns) {
        t->run_ns = run_ns;
    }
    t->got_bytes = 0;
    t->state = TRIAL_FLOW;
}

static size_t listener_takes_word(struct trial *t, const uint8_t *bytes,
                                  size_t n)
{
    if (t->got_bytes == 0 && bytes[0] == PING && has_said(t)) {
        say(t, PING);
        return 1;
    }
    if (t->got_bytes == 0 && bytes[0] != ROUND_TRIP) {
        take_nonsense(t);
        return 1;
    }
    size_t taken = gather(t, ROUND_TRIP_BYTES, bytes, n);
    if (t->got_bytes == ROUND_TRIP_BYTES) {
        take_round_trip(t);
    }
    return taken;
}

/* The window that is measured: open it, count, close it. */
static void measure(struct trial *t, uint64_t bytes)
{
    if (t->flow_ns == 0 || t->is_measured) {
        return;
    }
    if (t->start_ns == 0) {
        t->start_ns = t->now_ns - t->flow_ns >= t->warm_ns ? t->now_ns : 0;
        return;
    }
    t->bytes += bytes;
    t->ns = t->now_ns - t->start_ns;
    bool is_long = t->ns >= t->run_ns || t->bytes >= t->plan.bytes_max;
    if (is_long && t->bytes > 0 && t->ns > 0 && has_said(t)) {
        t->is_measured = true;
        say(t, STOP);
    }
}

/* Bytes of chunks, up to an 'E'. */
static size_t take_flow(struct trial *t, const uint8_t *bytes, size_t n)
{
    size_t taken = 0;
    if (t->flow_ns == 0) {
        t->flow_ns = t->now_ns;
    }
    while (taken < n) {
        size_t offset = (size_t)(t->position % TRIAL_CHUNK_BYTES);
        if (offset == 0 && bytes[taken] == END && t->is_measured &&
            has_said(t)) {
            t->state = TRIAL_BYE;
            say(t, BYE);
            return taken + 1;
        }
        if (offset == 0 && bytes[taken] != DATA) {
            take_nonsense(t);
            return n;
        }
        size_t left = TRIAL_CHUNK_BYTES - offset;
        size_t step = left < n - taken ? left : n - taken;
        t->position += step;
        taken += step;
    }
    measure(t, taken);
    return taken;
}

static size_t listener_takes(struct trial *t, const uint8_t *bytes, size_t n)
{
    switch (t->state) {
    case TRIAL_PINGS:
        return listener_takes_word(t, bytes, n);
    case TRIAL_FLOW:
        return take_flow(t, bytes, n);
    default:
        take_nonsense(t);
        return n;
    }
}

/* ---- events -------------------------------------------------------------- */

size_t trial_output(const struct trial *t, const uint8_t **bytes)
{
    if (t->state >= TRIAL_OVER) {
        return 0;
    }
    if (t->word_at < t->word_bytes) {
        *bytes = t->words + t->word_at;
        return t->word_bytes - t->word_at;
    }
    if (t->state == TRIAL_FLOW && t->plan.is_dialler) {
        *bytes = chunk + t->chunk_at;
        return TRIAL_CHUNK_BYTES - t->chunk_at;
    }
    return 0;
}

void trial_wrote(struct trial *t, size_t n, uint64_t now_ns)
{
    t->now_ns = now_ns;
    if (t->word_at < t->word_bytes) {
        t->word_at += n;
        if (has_said(t) && t->state == TRIAL_BYE && !t->plan.is_dialler) {
            t->state = TRIAL_OVER;
        }
    } else {
        t->chunk_at = (t->chunk_at + n) % TRIAL_CHUNK_BYTES;
    }
    end_flow(t);
}

void trial_input(struct trial *t, const uint8_t *bytes, size_t n,
                 uint64_t now_ns)
{
    t->now_ns = now_ns;
    for (size_t at = 0; at < n && t->state < TRIAL_OVER;) {
        if (t->state == TRIAL_HELLO) {
            at += take_hello(t, bytes + at, n - at);
        } else if (t->plan.is_dialler) {
            dialler_takes(t, bytes[at]);
            at++;
        } else {
            at += listener_takes(t, bytes + at, n - at);
        }
    }
    end_flow(t);
}

void trial_closed(struct trial *t, const char *why)
{
    if (t->state < TRIAL_OVER) {
        fail(t, GPUL__TRIAL_WAY__FAILURE__BROKEN, why);
    }
}

static const char *stalled_at(const struct trial *t)
{
    switch (t->state) {
    case TRIAL_HELLO:
        return "connected, but no answer came in time";
    case TRIAL_PINGS:
        return "connected, but the round trips did not end in time";
    default:
        return "connected, but the data did not come in time";
    }
}

void trial_timeout(struct trial *t)
{
    if (t->state < TRIAL_OVER) {
        fail(t, GPUL__TRIAL_WAY__FAILURE__STALLED, stalled_at(t));
    }
}

void trial_tick(struct trial *t, uint64_t now_ns)
{
    t->now_ns = now_ns;
    if (t->state == TRIAL_FLOW && !t->plan.is_dialler) {
        measure(t, 0);
    }
}

uint64_t trial_next_ns(const struct trial *t)
{
    if (t->state != TRIAL_FLOW || t->plan.is_dialler || t->flow_ns == 0 ||
        t->is_measured) {
        return NEVER;
    }
    if (t->start_ns == 0) {
        return t->flow_ns + t->warm_ns;
    }
    return t->bytes > 0 ? t->start_ns + t->run_ns : NEVER;
}

bool trial_is_over(const struct trial *t)
{
    return t->state >= TRIAL_OVER;
}

void trial_fill(struct trial *t, Gpul__TrialWay *way)
{
    way->failure = t->failure;
    way->text = t->text;
    if (t->bytes > 0 && t->ns > 0) {
        way->bytes = t->bytes;
        way->ns = t->ns;
    }
    if (t->rtt_count > 0) {
        way->rtt_count = t->rtt_count;
        way->rtt_median_ns = median_ns(t);
        way->rtt_min_ns = t->rtt_ns[0];
        for (uint32_t i = 1; i < t->rtt_count; i++) {
            if (t->rtt_ns[i] < way->rtt_min_ns) {
                way->rtt_min_ns = t->rtt_ns[i];
            }
        }
    }
}
