/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of ranks on its way to a terminal: whatever they write, however
 * it is cut, folded and labelled, nothing gets there but text, newlines,
 * carriage returns, tabs and colours; and of one rank without labels the same
 * bytes come out however they came in.
 *
 * Input: 1 byte (how it is shown), 1 byte (pieces of so many bytes), then the
 * bytes; in turn those of three ranks.
 */
#include <string.h>

#include "launcher/escapes.h"
#include "launcher/logview.h"
#include "tests/lib/fuzz.h"

enum { RANKS = 3, TEXT_BYTES_MAX = 1 << 22 };

/* ESC only as the beginning of "ESC [ digits and ; m". */
static void check_safe(const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] == 0x1b) {
            FUZZ_CHECK(++i < n && at[i] == '[');
            do {
                FUZZ_CHECK(++i < n);
            } while ((at[i] >= '0' && at[i] <= '9') || at[i] == ';' ||
                     at[i] == ':');
            FUZZ_CHECK(at[i] == 'm');
        } else {
            FUZZ_CHECK(at[i] >= 0x20 || at[i] == '\n' || at[i] == '\r' ||
                       at[i] == '\t');
            FUZZ_CHECK(at[i] != 0x7f);
        }
    }
}

static void take(struct logview *v)
{
    for (uint8_t way = 0; way < LOGVIEW_WAYS; way++) {
        struct gpul_buf *text = logview_text(v, way);
        check_safe(text->data, text->used);
        gpul_buf_clear(text);
    }
}

static void check_bars(struct logview *v)
{
    struct gpul_buf line;
    gpul_buf_init(&line, TEXT_BYTES_MAX);
    FUZZ_CHECK(logview_bars(v, 0, 79, &line) == 0);
    check_safe(line.data, line.used);
    FUZZ_CHECK(line.used == 0 || memchr(line.data, '\n', line.used) == NULL);
    gpul_buf_release(&line);
}

static void show(unsigned how, size_t piece, const uint8_t *bytes, size_t n)
{
    struct logview_options options = {
        .has_labels = (how & 1) != 0,
        .rank_count_max = RANKS,
        .voices = RANKS,
        .way_of = {0, (how & 2) != 0},
        .ways = {{true, (how & 4) != 0, (how & 8) != 0},
                 {true, (how & 16) != 0, (how & 32) != 0}},
    };
    struct logview_moment now = {.ms = 1000, .text = "12:00"};
    struct logview *v;
    now.text[(how & 64) != 0 ? 5 : 0] = 0;
    FUZZ_CHECK(logview_create(&v, &options) == 0);
    for (size_t at = 0, i = 0; at < n; at += piece, i++) {
        size_t left = n - at < piece ? n - at : piece;
        now.ms += 50;
        FUZZ_CHECK(logview_feed(v, (uint32_t)(i % RANKS), i / RANKS % 2,
                                bytes + at, left, &now) == 0);
        FUZZ_CHECK(logview_tick(v, &now) == 0);
        check_bars(v);
        take(v);
    }
    FUZZ_CHECK(logview_hurry(v, &now) == 0);
    for (uint8_t way = 0; way < LOGVIEW_WAYS; way++) {
        FUZZ_CHECK(logview_finish(v, way, &now) == 0);
    }
    take(v);
    logview_destroy(v);
}

/* However the stream is cut. */
static void check_escapes(const uint8_t *bytes, size_t n, size_t piece)
{
    struct escapes whole, cut;
    struct gpul_buf a, b;
    gpul_buf_init(&a, TEXT_BYTES_MAX);
    gpul_buf_init(&b, TEXT_BYTES_MAX);
    escapes_init(&whole);
    escapes_init(&cut);
    FUZZ_CHECK(escapes_feed(&whole, &a, bytes, n) == 0);
    for (size_t at = 0; at < n; at += piece) {
        size_t left = n - at < piece ? n - at : piece;
        FUZZ_CHECK(escapes_feed(&cut, &b, bytes + at, left) == 0);
    }
    FUZZ_CHECK(a.used == b.used && a.used <= n);
    FUZZ_CHECK(a.used == 0 || memcmp(a.data, b.data, a.used) == 0);
    check_safe(a.data, a.used);
    FUZZ_CHECK(escapes_fit(a.data, a.used, 40) <= a.used);
    gpul_buf_release(&a);
    gpul_buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 3 || n > 4096) {
        return 0;
    }
    size_t piece = data[1] > 0 ? data[1] : n;
    uint8_t *bytes = malloc(n - 2); /* exact, for the sanitizer */
    FUZZ_CHECK(bytes != NULL);
    memcpy(bytes, data + 2, n - 2);
    check_escapes(bytes, n - 2, piece);
    show(data[0], piece, bytes, n - 2);
    free(bytes);
    return 0;
}
