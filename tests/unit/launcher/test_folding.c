/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "launcher/folding.h"

enum { OUT_BYTES_MAX = 16 << 20 };

static int say(struct folding *f, uint32_t rank, uint8_t way, const char *text,
               size_t n, uint64_t now_ms)
{
    struct folding_line line = {
        .way = way, .text = (const uint8_t *)text, .n = n};
    return folding_add(f, rank, &line, now_ms);
}

static void take(struct folding *f, uint64_t now_ms, struct gpul_buf *out)
{
    struct folding_line line;
    const struct gpul_rankset *ranks = NULL;
    while (folding_next(f, now_ms, &line, &ranks)) {
        gpul_buf_appendf(out, "%s[", line.way == 0 ? "" : "!");
        gpul_rankset_format(out, ranks);
        gpul_buf_appendf(out, "] %s\n", line.time);
        out->used--; /* the text goes before the end */
        gpul_buf_append(out, line.text, line.n);
        gpul_buf_append(out, "\n", 1);
    }
}

/* "0a 1a 0b": rank and text; "!" before the rank is way 1. At +N the clock
 * moves on by N ms. */
static void check(uint32_t voices, const char *script, const char *expected)
{
    struct folding *f = NULL;
    struct gpul_buf out;
    uint64_t now_ms = 1000;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, 10, voices), 0);
    char *copy = strdup(script), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        if (word[0] == '+') {
            now_ms += (uint64_t)atoi(word + 1);
        } else {
            uint8_t way = word[0] == '!' ? 1 : 0;
            word += way;
            assert_int_equal(say(f, (uint32_t)(word[0] - '0'), way, word + 1,
                                 strlen(word + 1), now_ms),
                             0);
        }
        take(f, now_ms, &out);
    }
    gpul_buf_append(&out, "...\n", 4);
    folding_hurry(f);
    take(f, now_ms, &out);
    assert_int_equal(folding_deadline_ms(f), UINT64_MAX);
    assert_string_equal(gpul_buf_text(&out), expected);
    free(copy);
    folding_destroy(f);
    gpul_buf_release(&out);
}

static void test_scripts(void **state)
{
    (void)state;
    check(3, "", "...\n");
    /* all have said it: nothing to wait for */
    check(3, "0a 1a 2a", "[0-2] a\n...\n");
    check(3, "0a 2a", "...\n[0,2] a\n");
    check(3, "0a 2a +99", "...\n[0,2] a\n");
    check(3, "0a 2a +100", "[0,2] a\n...\n");
    /* a late one does not prolong the wait */
    check(3, "0a +99 1a +1 2a", "[0-1] a\n...\n[2] a\n");
    /* the same rank twice is two lines */
    check(3, "0a 0a 1a 1a 2a 2a", "[0-2] a\n[0-2] a\n...\n");
    check(1, "0a 0a", "[0] a\n[0] a\n...\n");
    /* no rank's lines change places */
    check(2, "0a 0b 1b 1a", "...\n[0] a\n[0-1] b\n[1] a\n");
    check(3, "0a 0b 1a 1b 2b 2a", "...\n[0-1] a\n[0-2] b\n[2] a\n");
    /* a line that nobody has gone on from is put off */
    check(3, "0x 0e 1y 1e 2z 2e", "...\n[0] x\n[1] y\n[2] z\n[0-2] e\n");
    check(3, "0x 0e 0f 1y 1e", "...\n[0] x\n[0] e\n[0] f\n[1] y\n[1] e\n");
    /* and keeps its deadline */
    check(3, "0e +60 1y 1e +39", "...\n[1] y\n[0-1] e\n");
    check(3, "0e +60 1y 1e +40", "[1] y\n[0-1] e\n...\n");
    check(4, "0e +60 1y 1e +20 2z 2e +20", "[1] y\n[2] z\n[0-2] e\n...\n");
    /* ways are apart, but their order holds */
    check(2, "0a !1a", "...\n[0] a\n![1] a\n");
    check(2, "0a !0b !1b 1a", "...\n[0] a\n![0-1] b\n[1] a\n");
}

/* The deadline is that of the oldest, and what is hurried is due. */
static void test_deadline(void **state)
{
    (void)state;
    struct folding *f = NULL;
    struct gpul_buf out;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, 4, 4), 0);
    assert_int_equal(folding_deadline_ms(f), UINT64_MAX);
    say(f, 0, 0, "a", 1, 500);
    say(f, 1, 0, "b", 1, 550);
    assert_int_equal(folding_deadline_ms(f), 500 + FOLDING_WINDOW_MS);
    take(f, 500 + FOLDING_WINDOW_MS, &out);
    assert_int_equal(folding_deadline_ms(f), 550 + FOLDING_WINDOW_MS);
    folding_hurry(f);
    assert_true(folding_deadline_ms(f) <= 550);
    take(f, 550, &out);
    assert_string_equal(gpul_buf_text(&out), "[0] a\n[1] b\n");
    folding_destroy(f);
    gpul_buf_release(&out);
}

/* The stamp is that of the first; an empty line and NUL bytes are lines. */
static void test_bytes(void **state)
{
    (void)state;
    struct folding *f = NULL;
    struct gpul_buf out;
    struct folding_line line = {.text = (const uint8_t *)"\0\xff", .n = 2};
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, 4, 2), 0);
    snprintf(line.time, sizeof(line.time), "first ");
    folding_add(f, 0, &line, 0);
    snprintf(line.time, sizeof(line.time), "second ");
    folding_add(f, 1, &line, 1);
    say(f, 0, 0, NULL, 0, 1);
    say(f, 1, 0, "", 0, 1);
    take(f, 1, &out);
    assert_int_equal(out.used, 15 + 7);
    assert_memory_equal(out.data, "[0-1] first \0\xff\n[0-1] ", out.used - 1);
    folding_destroy(f);
    gpul_buf_release(&out);
}

/* Ten thousand ranks say the same, in an order without any order. */
static void test_many_ranks(void **state)
{
    (void)state;
    enum { RANKS = 10000 };
    struct folding *f = NULL;
    struct gpul_buf out;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, RANKS, RANKS), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(
            say(f, (uint32_t)((uint64_t)i * 7919 % RANKS), 0, "up", 2, 0), 0);
        take(f, 0, &out);
    }
    assert_string_equal(gpul_buf_text(&out), "[0-9999] up\n");
    folding_destroy(f);
    gpul_buf_release(&out);
}

/* Lines that fill the memory leave before their time, none is lost. */
static void test_bounds(void **state)
{
    (void)state;
    enum { LONG = 64 << 10, LINES = 5000 };
    struct folding *f = NULL;
    struct gpul_buf out;
    char *text = malloc(LONG);
    assert_non_null(text);
    memset(text, 'x', LONG);
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, 2, 2), 0);
    for (int i = 0; i < 100; i++) {
        text[0] = (char)i;
        assert_int_equal(say(f, 0, 0, text, LONG, 0), 0);
        take(f, 0, &out);
    }
    assert_true(out.used >= 80 * LONG);
    folding_hurry(f);
    take(f, 0, &out);
    assert_int_equal(out.used, 100 * (LONG + 5));
    gpul_buf_clear(&out);
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(say(f, 0, 0, "y", 1, 0), 0);
        take(f, 0, &out);
    }
    assert_int_equal(out.used, (LINES - FOLDING_LINES_MAX + 1) * 6);
    folding_destroy(f);
    gpul_buf_release(&out);
    free(text);
}

/* A caller that takes nothing is told, and nothing is lost. */
static void test_not_taken(void **state)
{
    (void)state;
    struct folding *f = NULL;
    struct gpul_buf out;
    gpul_buf_init(&out, OUT_BYTES_MAX);
    assert_int_equal(folding_create(&f, 2, 2), 0);
    for (int i = 0; i < FOLDING_LINES_MAX; i++) {
        assert_int_equal(say(f, 0, 0, "y", 1, 0), 0);
    }
    assert_int_equal(say(f, 0, 0, "y", 1, 0), GPUL_ENOMEM);
    folding_hurry(f);
    take(f, 0, &out);
    assert_int_equal(out.used, FOLDING_LINES_MAX * 6);
    folding_destroy(f);
    gpul_buf_release(&out);
}

/* ---- the property -------------------------------------------------------- */

enum { PROPERTY_RANKS = 12, PROPERTY_LINES = 300 };

/* What each rank has said, and how much of it has come out again. */
struct model {
    uint8_t said[PROPERTY_RANKS][PROPERTY_LINES];
    uint64_t said_ms[PROPERTY_RANKS][PROPERTY_LINES];
    size_t count[PROPERTY_RANKS];
    size_t seen[PROPERTY_RANKS];
    size_t folded;
};

static void unfold(struct model *m, struct folding *f, uint64_t now_ms)
{
    struct folding_line line;
    const struct gpul_rankset *ranks = NULL;
    while (folding_next(f, now_ms, &line, &ranks)) {
        assert_int_equal(line.n, 1);
        for (uint32_t rank = 0; rank < PROPERTY_RANKS; rank++) {
            if (gpul_rankset_has(ranks, rank)) {
                size_t at = m->seen[rank]++;
                assert_true(at < m->count[rank]);
                assert_int_equal(m->said[rank][at], line.text[0] + line.way);
            }
        }
        m->folded += gpul_rankset_size(ranks) - 1;
    }
    for (uint32_t rank = 0; rank < PROPERTY_RANKS; rank++) {
        size_t at = m->seen[rank];
        assert_true(at == m->count[rank] ||
                    m->said_ms[rank][at] + FOLDING_WINDOW_MS > now_ms);
    }
}

/* Whatever ranks say, and whenever: un-folding gives back each rank's lines
 * in their order, and no line waits longer than the window. */
static void check_property(uint32_t seed, uint32_t texts, size_t *folded)
{
    struct folding *f = NULL;
    struct model *m = calloc(1, sizeof(*m));
    uint64_t now_ms = 0;
    assert_non_null(m);
    assert_int_equal(folding_create(&f, PROPERTY_RANKS, PROPERTY_RANKS), 0);
    for (int i = 0; i < PROPERTY_RANKS * PROPERTY_LINES / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t rank = (seed >> 16) % PROPERTY_RANKS;
        uint8_t way = (seed >> 9) % 4 == 0;
        char text = (char)('a' + 2 * (seed >> 22) % texts * 2);
        if (m->count[rank] == PROPERTY_LINES) {
            continue;
        }
        m->said_ms[rank][m->count[rank]] = now_ms;
        m->said[rank][m->count[rank]++] = (uint8_t)(text + way);
        assert_int_equal(say(f, rank, way, &text, 1, now_ms), 0);
        unfold(m, f, now_ms);
        now_ms += (seed >> 12) % 8;
    }
    folding_hurry(f);
    unfold(m, f, now_ms);
    for (uint32_t rank = 0; rank < PROPERTY_RANKS; rank++) {
        assert_int_equal(m->seen[rank], m->count[rank]);
    }
    *folded += m->folded;
    folding_destroy(f);
    free(m);
}

static void test_property(void **state)
{
    (void)state;
    size_t folded = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        check_property(seed, 1 + seed % 6, &folded);
    }
    assert_true(folded > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),  cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_not_taken),
        cmocka_unit_test(test_property),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
