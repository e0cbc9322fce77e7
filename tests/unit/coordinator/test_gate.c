/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "coordinator/gate.h"
#include "proto/limits.h"

static struct gate *gate;
static char line[GATE_LINE_BYTES];

static int set_up(void **state)
{
    (void)state;
    gate = gate_create();
    return gate == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    gate_destroy(gate);
    return 0;
}

static void assert_line(uint64_t now_ms, const char *text)
{
    assert_true(gate_line(gate, line, now_ms));
    assert_string_equal(line, text);
    assert_false(gate_line(gate, line, now_ms));
}

/* A handshake of a node that nobody else claims to be. */
static void claim(uint32_t ticket)
{
    char name[16];
    snprintf(name, sizeof(name), "node%u", ticket);
    assert_int_equal(gate_claimed(gate, ticket, name), GATE_NONE);
}

/* ---- time --------------------------------------------------------------- */

/* One that begins no handshake has two seconds, one that does five in all. */
static void test_deadlines(void **state)
{
    (void)state;
    assert_true(gate_next_deadline_ms(gate) == UINT64_MAX);
    uint32_t a = gate_opened(gate, 7, "10.0.0.1", 1000);
    uint32_t b = gate_opened(gate, 8, "10.0.0.2", 1500);
    assert_int_not_equal(a, b);
    assert_int_equal(gate_next_deadline_ms(gate), 3000);
    claim(a);
    claim(a);
    assert_int_equal(gate_next_deadline_ms(gate), 3500);
    assert_int_equal(gate_expel(gate, 3499), GATE_NONE);
    assert_int_equal(gate_expel(gate, 3500), 8);
    assert_int_equal(gate_expel(gate, 3500), GATE_NONE);
    assert_line(3500, "closed a connection from 10.0.0.2 without the job's "
                      "key: began no handshake");
    assert_int_equal(gate_next_deadline_ms(gate), 6000);
    assert_int_equal(gate_expel(gate, 6000), 7);
    assert_line(6000, "closed a connection from 10.0.0.1 without the job's "
                      "key: too slow to show a key");
    assert_int_equal(gate_held(gate), 0);
    assert_true(gate_next_deadline_ms(gate) == UINT64_MAX);
}

/* Who has proved its key has all the time. */
static void test_proved(void **state)
{
    (void)state;
    uint32_t a = gate_opened(gate, 1, "10.0.0.1", 0);
    uint32_t b = gate_opened(gate, 2, "10.0.0.1", 0);
    claim(a);
    gate_proved(gate, a);
    gate_proved(gate, b);
    assert_int_equal(gate_held(gate), 0);
    assert_int_equal(gate_expel(gate, 100000), GATE_NONE);
    assert_false(gate_line(gate, line, 100000));
}

/* ---- numbers ------------------------------------------------------------ */

/* So many from one address, and not one more until one has left. */
static void test_per_address(void **state)
{
    (void)state;
    uint32_t last = GATE_NONE;
    for (uint32_t i = 0; i < GPUL_STRANGERS_OF_ADDRESS_MAX; i++) {
        last = gate_opened(gate, i, "192.0.2.1", 0);
        assert_int_not_equal(last, GATE_NONE);
    }
    assert_int_equal(gate_opened(gate, 99, "192.0.2.1", 0), GATE_NONE);
    assert_line(0, "closed a connection from 192.0.2.1 without the job's key: "
                   "too many from one address that have shown no key");
    assert_int_not_equal(gate_opened(gate, 99, "192.0.2.2", 0), GATE_NONE);
    gate_proved(gate, last);
    assert_int_not_equal(gate_opened(gate, 99, "192.0.2.1", 0), GATE_NONE);
    assert_int_equal(gate_opened(gate, 99, "192.0.2.1", 0), GATE_NONE);
}

/* A machine has a whole network of IPv6 to choose from, with any scope. */
static void test_ipv6(void **state)
{
    (void)state;
    char address[64];
    for (uint32_t i = 0; i < GPUL_STRANGERS_OF_ADDRESS_MAX; i++) {
        snprintf(address, sizeof(address), "2001:db8:0:1::%x", i + 1);
        assert_int_not_equal(gate_opened(gate, i, address, 0), GATE_NONE);
        snprintf(address, sizeof(address), "fe80::%x%%eth%u", i + 1, i);
        assert_int_not_equal(gate_opened(gate, i, address, 0), GATE_NONE);
    }
    assert_int_equal(gate_opened(gate, 1, "2001:db8:0:1:8000::9", 0),
                     GATE_NONE);
    assert_int_equal(gate_opened(gate, 1, "fe80::ffff%eth0", 0), GATE_NONE);
    assert_int_not_equal(gate_opened(gate, 1, "2001:db8:0:2::9", 0), GATE_NONE);
}

/* What has no address is counted together; loopback only in all. */
static void test_all(void **state)
{
    (void)state;
    static const char *const loopback[] = {"127.0.0.1", "::1", "127.9.9.9"};
    uint32_t n = 0;
    for (; n < GPUL_STRANGERS_OF_ADDRESS_MAX; n++) {
        assert_int_not_equal(gate_opened(gate, n, n % 2 ? "" : "::2", 0),
                             GATE_NONE);
    }
    assert_int_equal(gate_opened(gate, n, "", 0), GATE_NONE);
    for (; n < GPUL_STRANGERS_MAX; n++) {
        assert_int_not_equal(gate_opened(gate, n, loopback[n % 3], 0),
                             GATE_NONE);
    }
    assert_int_equal(gate_opened(gate, n, "::1", 0), GATE_NONE);
    assert_int_equal(gate_held(gate), GPUL_STRANGERS_MAX);
    assert_line(0, "closed 2 connections without the job's key: too many that "
                   "have shown no key (1), too many from one address that "
                   "have shown no key (1); the last from ::1");
    for (; n > 0; n--) {
        assert_int_not_equal(gate_expel(gate, GPUL_FIRST_RECORD_MS), GATE_NONE);
    }
    assert_int_equal(gate_held(gate), 0);
}

/* ---- names -------------------------------------------------------------- */

/* A recording may be replayed, but takes only so many places: the oldest of a
 * name gives way at once, of whatever address, and no other name is hurt. */
static void test_name(void **state)
{
    (void)state;
    char address[32];
    gate_claimed(gate, gate_opened(gate, 900, "10.0.0.1", 0), "beta");
    for (uint32_t i = 0; i < GPUL_STRANGERS_OF_NAME_MAX; i++) {
        snprintf(address, sizeof(address), "192.0.2.%u", i);
        uint32_t ticket = gate_opened(gate, i, address, i);
        assert_int_equal(gate_claimed(gate, ticket, "alpha"), GATE_NONE);
    }
    uint32_t ticket = gate_opened(gate, 70, "192.0.2.70", 9);
    assert_int_equal(gate_claimed(gate, ticket, "alpha"), 0);
    assert_line(9, "closed a connection from 192.0.2.0 without the job's key: "
                   "too many handshakes of one node");
    gate_proved(gate, ticket);
    ticket = gate_opened(gate, 71, "192.0.2.71", 9);
    assert_int_equal(gate_claimed(gate, ticket, "alpha"), GATE_NONE);
    ticket = gate_opened(gate, 72, "192.0.2.72", 9);
    assert_int_equal(gate_claimed(gate, ticket, "alpha"), 1);
    assert_int_equal(gate_held(gate), 1 + GPUL_STRANGERS_OF_NAME_MAX);
}

/* ---- room --------------------------------------------------------------- */

/* One has outstayed its time: from now on the oldest gives way. */
static void expel_one(void)
{
    gate_opened(gate, 999, "192.0.2.7", 0);
    assert_int_equal(gate_expel(gate, GPUL_FIRST_RECORD_MS), 999);
    assert_true(gate_line(gate, line, GPUL_FIRST_RECORD_MS));
}

/* Nobody has to go while there is room, of the address and in all. */
static void test_room(void **state)
{
    (void)state;
    expel_one();
    gate_opened(gate, 1, "192.0.2.1", 2000);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", 50000), GATE_NONE);
    assert_int_equal(gate_held(gate), 1);
}

/* The oldest of the address, when it has been silent for long enough; then
 * one that has spoken, after more. */
static void test_yield_of_address(void **state)
{
    (void)state;
    uint32_t second = GATE_NONE;
    expel_one();
    gate_opened(gate, 900, "192.0.2.9", 3000); /* older, and not in the way */
    for (uint32_t i = 0; i < GPUL_STRANGERS_OF_ADDRESS_MAX; i++) {
        uint32_t ticket = gate_opened(gate, i, "192.0.2.1", 4000 + i);
        if (i != 1) {
            claim(ticket);
        } else {
            second = ticket;
        }
    }
    uint64_t due_ms = 4001 + GPUL_YIELD_SILENT_MS;
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms - 1), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.2", due_ms), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), 1);
    assert_line(due_ms, "closed a connection from 192.0.2.1 without the job's "
                        "key: gave way to another");
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), GATE_NONE);
    assert_int_equal(gate_opened(gate, 1, "192.0.2.1", due_ms), second);
    claim(second);
    due_ms = 4000 + GPUL_YIELD_MS;
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms - 1), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), 0);
    gate_opened(gate, 0, "192.0.2.1", due_ms);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), GATE_NONE);
}

/* The oldest of all where all places are taken, of whatever address. */
static void test_yield_of_all(void **state)
{
    (void)state;
    expel_one();
    gate_opened(gate, 900, "192.0.2.9", 3000);
    for (uint32_t i = 1; i < GPUL_STRANGERS_MAX; i++) {
        claim(gate_opened(gate, i, "127.0.0.1", 3050));
    }
    assert_int_equal(gate_make_room(gate, "192.0.2.1", 3049), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "127.0.0.1", 3050), 900);
    assert_int_not_equal(gate_opened(gate, 900, "192.0.2.1", 3060), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", 3109), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", 3110), 900);
    assert_int_not_equal(gate_opened(gate, 900, "192.0.2.1", 3549), GATE_NONE);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", 3550), 1);
    assert_int_equal(gate_held(gate), GPUL_STRANGERS_MAX - 1);
}

/* A crowd of whom nobody outstays its time does not thin itself out: only the
 * newest is closed, until someone does and when that is long ago. */
static void test_no_yield(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GPUL_STRANGERS_OF_ADDRESS_MAX; i++) {
        gate_opened(gate, i, "192.0.2.1", 1000);
    }
    uint64_t due_ms = 1000 + GPUL_FIRST_RECORD_MS;
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), GATE_NONE);
    assert_int_equal(gate_expel(gate, due_ms), 0);
    gate_opened(gate, 0, "192.0.2.1", due_ms);
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), 1);
    gate_opened(gate, 1, "192.0.2.1", due_ms);
    due_ms += GPUL_CROWD_MS;
    assert_int_equal(gate_make_room(gate, "192.0.2.1", due_ms), GATE_NONE);
}

/* ---- words -------------------------------------------------------------- */

static void close_one(const char *address, enum gpul_stranger kind,
                      const char *hint, uint64_t now_ms)
{
    gate_closed(gate, gate_opened(gate, 1, address, now_ms), kind, hint);
}

/* The first at once, then one line a second. */
static void test_lines(void **state)
{
    (void)state;
    close_one("10.0.0.1", GPUL_STRANGER_HTTP, NULL, 10000);
    assert_line(10000, "closed a connection from 10.0.0.1 without the job's "
                       "key: HTTP");
    for (uint64_t i = 0; i < 12; i++) {
        close_one("10.0.0.2",
                  i % 4 == 0 ? GPUL_STRANGER_SSH : GPUL_STRANGER_HTTP, NULL,
                  10000 + i);
        assert_false(gate_line(gate, line, 10000 + i));
    }
    assert_int_equal(gate_next_deadline_ms(gate), 11000);
    assert_false(gate_line(gate, line, 10999));
    assert_line(11000, "closed 12 connections without the job's key: HTTP (9), "
                       "an ssh banner (3); the last from 10.0.0.2");
    assert_true(gate_next_deadline_ms(gate) == UINT64_MAX);
    close_one("10.0.0.3", GPUL_STRANGER_FRAMES, NULL, 20000);
    assert_line(20000, "closed a connection from 10.0.0.3 without the job's "
                       "key: frames without TLS");
}

static void assert_total(uint64_t count, const char *words)
{
    assert_int_equal(gate_total(gate, line), count);
    assert_string_equal(line, words);
}

/* What is told at the end of the job: all of them, told in a line before or
 * not, but not who just went away. */
static void test_total(void **state)
{
    (void)state;
    assert_total(0, "");
    close_one("10.0.0.1", GPUL_STRANGER_CLOSED, NULL, 0);
    assert_total(0, "");
    close_one("10.0.0.2", GPUL_STRANGER_HTTP, NULL, 0);
    assert_true(gate_line(gate, line, 5000));
    assert_total(1, "HTTP (1); the last from 10.0.0.2");
    close_one("10.0.0.3", GPUL_STRANGER_WRONG_KEY, NULL, 6000);
    close_one("10.0.0.4", GPUL_STRANGER_HTTP, NULL, 6000);
    close_one("10.0.0.5", GPUL_STRANGER_CLOSED, NULL, 6000);
    gate_opened(gate, 1, "10.0.0.6", 10000);
    assert_int_not_equal(gate_expel(gate, 20000), GATE_NONE);
    assert_true(gate_line(gate, line, 20000));
    assert_total(4, "HTTP (2), a wrong secret (1), began no handshake (1); the "
                    "last from 10.0.0.6");
}

/* Everything at once still fits one line. */
static void test_longest_line(void **state)
{
    (void)state;
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    memset(address, 'f', sizeof(address) - 1);
    address[sizeof(address) - 1] = 0;
    for (int kind = 0; kind < GPUL_STRANGER_COUNT; kind++) {
        close_one(address, (enum gpul_stranger)kind, NULL, 0);
    }
    for (uint32_t i = 0; i <= GPUL_STRANGERS_OF_ADDRESS_MAX; i++) {
        gate_opened(gate, i, address, 0);
    }
    while (gate_opened(gate, 1, "::1", 0) != GATE_NONE) {
    }
    claim(0);
    assert_int_not_equal(gate_expel(gate, 50000), GATE_NONE);
    assert_int_not_equal(gate_opened(gate, 1, "::1", 50000), GATE_NONE);
    assert_int_not_equal(gate_make_room(gate, "::1", 50000), GATE_NONE);
    while (gate_expel(gate, 60000) != GATE_NONE) {
    }
    assert_true(gate_line(gate, line, 60000));
    assert_memory_equal(line + strlen(line) - GPUL_ADDRESS_BYTES_MAX, address,
                        GPUL_ADDRESS_BYTES_MAX);
}

/* An honest mistake is told once. */
static void test_hint(void **state)
{
    (void)state;
    assert_null(gate_take_hint(gate));
    close_one("10.0.0.1", GPUL_STRANGER_HTTP, NULL, 0);
    assert_null(gate_take_hint(gate));
    close_one("10.0.0.1", GPUL_STRANGER_WRONG_KEY, "first", 0);
    close_one("10.0.0.1", GPUL_STRANGER_WRONG_KEY, "second", 0);
    assert_string_equal(gate_take_hint(gate), "first");
    assert_null(gate_take_hint(gate));
    close_one("10.0.0.1", GPUL_STRANGER_WRONG_KEY, "third", 5000);
    assert_null(gate_take_hint(gate));
}

/* ---- any order ---------------------------------------------------------- */

enum { CONNS = 3000, SOURCES = 40 };

/* What the test knows of a connection. */
struct known {
    uint32_t ticket; /* GATE_NONE: not at the gate */
    uint32_t source;
    uint64_t opened_ms;
    bool is_heard;
};

struct world {
    struct gpul_rng rng;
    struct known known[CONNS];
    uint32_t held, held_of[SOURCES];
    uint64_t now_ms, refused, said, last_line_ms;
};

static void leave(struct world *w, struct known *k)
{
    k->ticket = GATE_NONE;
    w->held--;
    w->held_of[k->source]--;
}

/* Who gives way has been here for long enough. */
static void make_room(struct world *w, const char *address)
{
    uint32_t conn = gpul_rng_below(&w->rng, 2) == 0
                        ? GATE_NONE
                        : gate_make_room(gate, address, w->now_ms);
    if (conn != GATE_NONE) {
        struct known *k = &w->known[conn];
        assert_int_not_equal(k->ticket, GATE_NONE);
        assert_true(w->now_ms - k->opened_ms >=
                    (k->is_heard ? GPUL_YIELD_MS : GPUL_YIELD_SILENT_MS));
        leave(w, k);
        w->refused++;
    }
}

static void try_open(struct world *w, uint32_t conn)
{
    struct known *k = &w->known[conn];
    char address[32];
    k->source = (uint32_t)gpul_rng_below(&w->rng, SOURCES);
    if (gpul_rng_below(&w->rng, 2) == 0) {
        k->source = 1; /* one floods */
    }
    snprintf(address, sizeof(address),
             k->source == 0 ? "127.0.0.%u" : "10.0.0.%u", k->source + 1);
    make_room(w, address);
    k->ticket = gate_opened(gate, conn, address, w->now_ms);
    bool is_full = w->held == GPUL_STRANGERS_MAX ||
                   (k->source != 0 &&
                    w->held_of[k->source] == GPUL_STRANGERS_OF_ADDRESS_MAX);
    assert_int_equal(k->ticket == GATE_NONE, is_full);
    if (is_full) {
        w->refused++;
        return;
    }
    k->opened_ms = w->now_ms;
    k->is_heard = false;
    w->held++;
    w->held_of[k->source]++;
}

static void touch(struct world *w, uint32_t conn)
{
    struct known *k = &w->known[conn];
    switch (k->ticket == GATE_NONE ? 0 : 1 + gpul_rng_below(&w->rng, 4)) {
    case 0:
        try_open(w, conn);
        return;
    case 1:
        gate_proved(gate, k->ticket);
        leave(w, k);
        return;
    case 2:
        gate_closed(
            gate, k->ticket,
            (enum gpul_stranger)gpul_rng_below(&w->rng, GPUL_STRANGER_COUNT),
            NULL);
        leave(w, k);
        w->refused++;
        return;
    default:
        claim(k->ticket);
        k->is_heard = true;
    }
}

static void settle(struct world *w)
{
    uint32_t conn;
    while ((conn = gate_expel(gate, w->now_ms)) != GATE_NONE) {
        struct known *k = &w->known[conn];
        assert_int_not_equal(k->ticket, GATE_NONE);
        assert_true(w->now_ms - k->opened_ms >=
                    (k->is_heard ? GPUL_PROOF_MS : GPUL_FIRST_RECORD_MS));
        leave(w, k);
        w->refused++;
    }
    if (gate_line(gate, line, w->now_ms)) {
        unsigned long n = 1;
        (void)sscanf(line, "closed %lu connections", &n);
        w->said += n;
        assert_true(w->last_line_ms == 0 ||
                    w->now_ms - w->last_line_ms >= GPUL_STRANGER_LINE_MS);
        w->last_line_ms = w->now_ms;
    }
    assert_int_equal(gate_held(gate), w->held);
    assert_true(gate_next_deadline_ms(gate) > w->now_ms);
}

/* Nobody stays longer than it may, no bound is passed, no honest one is
 * refused below them, every refusal is in a line, one line a second. */
static void test_random(void **state)
{
    (void)state;
    static struct world w;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        memset(&w, 0, sizeof(w));
        gpul_rng_init(&w.rng, seed);
        w.now_ms = 1000;
        for (uint32_t i = 0; i < CONNS; i++) {
            w.known[i].ticket = GATE_NONE;
        }
        for (int i = 0; i < 20000; i++) {
            touch(&w, (uint32_t)gpul_rng_below(&w.rng, CONNS));
            w.now_ms += gpul_rng_below(&w.rng, seed) / 4;
            settle(&w);
        }
        w.now_ms += GPUL_PROOF_MS;
        settle(&w);
        w.now_ms += GPUL_STRANGER_LINE_MS;
        settle(&w);
        assert_int_equal(w.held, 0);
        assert_int_equal(w.said, w.refused);
        tear_down(state);
        set_up(state);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_deadlines),
        T(test_proved),
        T(test_per_address),
        T(test_ipv6),
        T(test_all),
        T(test_lines),
        T(test_total),
        T(test_longest_line),
        T(test_hint),
        T(test_random),
        T(test_room),
        T(test_name),
        T(test_yield_of_address),
        T(test_yield_of_all),
        T(test_no_yield),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
