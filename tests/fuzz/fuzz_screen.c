/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of ranks as a whole, beside fuzz_logview: orders of any kind, and
 * lines that are too long to be held (launcher/logview.h and what is below).
 *
 * The same lines come out however the bytes are cut into pieces; what a
 * terminal gets is whole characters and colours, whatever the ranks wrote;
 * memory has a bound, and none is left.
 *
 * Input: a byte of options, then orders. An order is a byte (rank, stream,
 * kind), a byte, and for what ranks write as many bytes as that says.
 */
#include <string.h>

#include "launcher/logview.h"
#include "tests/lib/fuzz.h"
#include "tests/lib/memory.h"

enum {
    RANKS = 4,
    COLUMNS = 40,
    CUT_BYTES = 37, /* a number that fits no piece */
    REPEATS = 40,   /* of a piece, to make a line too long to hold */
    OUT_BYTES_MAX = 64 << 20,
    REPEATED_BYTES_MAX = 160 << 10, /* of all orders, to be done in time */
    /* Eight streams that hold a line each, 1 MiB of lines that wait, the text
     * of one order, and the tables. */
    MEMORY_BYTES_MAX = 8 << 20,
    ESC = 0x1b,
};

/* The first byte. */
enum {
    IS_TERMINAL = 1,
    IS_FOLDING = 2,
    HAS_LABELS = 4,
    HAS_STAMPS = 8,
    CAN_REDRAW = 16,
    IS_ONE_PLACE = 32,
};

enum kind {
    KIND_REPEAT = 4, /* a piece, many times; below that: once */
    KIND_WAIT = 5,
    KIND_HURRY = 6,
    KIND_FINISH = 7,
};

struct order {
    uint32_t rank;
    uint8_t stream;
    unsigned kind;
    uint8_t count;
    const uint8_t *bytes;
};

struct screen {
    struct logview *view;
    unsigned options;
    uint64_t now_ms;
    bool is_cut; /* pieces come in smaller ones */
    struct gpul_buf out[LOGVIEW_WAYS];
};

/* ---- what may come out --------------------------------------------------- */

static size_t tail_of(uint8_t lead)
{
    return lead < 0xc2 || lead > 0xf4 ? 0
           : lead < 0xe0              ? 1
           : lead < 0xf0              ? 2
                                      : 3;
}

/* Bytes of a colour at ESC; there must be one. */
static size_t colour(const uint8_t *at, size_t n)
{
    size_t used = 2;
    FUZZ_CHECK(n >= 3 && at[1] == '[');
    while (used < n && at[used] >= '0' && at[used] <= ';') {
        used++;
    }
    FUZZ_CHECK(used < n && at[used] == 'm');
    return used + 1;
}

/* A character as a terminal of UTF-8 takes it: no control character. */
static size_t character(const uint8_t *at, size_t n)
{
    size_t used = 1;
    bool is_plain = at[0] == '\t' || at[0] == '\n' || at[0] >= ' ';
    FUZZ_CHECK(is_plain && at[0] != 0x7f);
    FUZZ_CHECK(at[0] < 0x80 || at[0] > 0x9f);
    while (used < n && used <= tail_of(at[0]) && (at[used] & 0xc0) == 0x80) {
        FUZZ_CHECK(at[0] != 0xc2 || at[used] > 0x9f);
        used++;
    }
    return used;
}

static void check_harmless(const uint8_t *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        at += text[at] == ESC ? colour(text + at, n - at)
                              : character(text + at, n - at);
    }
}

static void check_bars(struct screen *s)
{
    struct gpul_buf bar;
    for (uint8_t way = 0; way < LOGVIEW_WAYS; way++) {
        gpul_buf_init(&bar, OUT_BYTES_MAX);
        FUZZ_CHECK(logview_bars(s->view, way, COLUMNS, &bar) == 0);
        FUZZ_CHECK(bar.used == 0 || memchr(bar.data, '\n', bar.used) == NULL);
        if ((s->options & IS_TERMINAL) != 0) {
            check_harmless(bar.data, bar.used);
        }
        gpul_buf_release(&bar);
    }
}

/* ---- a screen ------------------------------------------------------------ */

static void open_screen(struct screen *s, unsigned options, bool is_cut)
{
    bool is_terminal = (options & IS_TERMINAL) != 0;
    struct logview_options o = {
        .has_labels = (options & HAS_LABELS) != 0,
        .rank_count_max = RANKS,
        .voices = RANKS,
        .way_of = {0, (options & IS_ONE_PLACE) != 0 ? 0 : 1},
    };
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        o.ways[i] = (struct logview_way){
            .is_terminal = is_terminal,
            .can_redraw = is_terminal && (options & CAN_REDRAW) != 0,
            .is_folding = o.has_labels && (options & IS_FOLDING) != 0,
        };
    }
    *s = (struct screen){.options = options, .is_cut = is_cut, .now_ms = 1000};
    FUZZ_CHECK(logview_create(&s->view, &o) == 0);
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        gpul_buf_init(&s->out[i], OUT_BYTES_MAX);
    }
}

static void close_screen(struct screen *s)
{
    logview_destroy(s->view);
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        gpul_buf_release(&s->out[i]);
    }
}

static struct logview_moment moment(const struct screen *s)
{
    struct logview_moment now = {.ms = s->now_ms};
    if ((s->options & HAS_STAMPS) != 0) {
        snprintf(now.text, sizeof(now.text), "t%llu",
                 (unsigned long long)s->now_ms);
    }
    return now;
}

static void take_text(struct screen *s)
{
    for (uint8_t way = 0; way < LOGVIEW_WAYS; way++) {
        struct gpul_buf *text = logview_text(s->view, way);
        FUZZ_CHECK(gpul_buf_append(&s->out[way], text->data, text->used) == 0);
        gpul_buf_clear(text);
    }
}

static void feed(struct screen *s, const struct order *o,
                 const struct logview_moment *now)
{
    size_t small = o->kind == KIND_REPEAT ? CUT_BYTES : 1;
    size_t step = s->is_cut ? small : o->count;
    for (size_t at = 0; at < o->count; at += step) {
        size_t left = o->count - at;
        FUZZ_CHECK(logview_feed(s->view, o->rank, o->stream, o->bytes + at,
                                left < step ? left : step, now) == 0);
        take_text(s);
    }
}

static void carry_out(struct screen *s, const struct order *o)
{
    if (o->kind == KIND_WAIT) {
        s->now_ms += o->count * UINT64_C(10);
    }
    struct logview_moment now = moment(s);
    switch (o->kind) {
    case KIND_WAIT:
        FUZZ_CHECK(logview_tick(s->view, &now) == 0);
        break;
    case KIND_HURRY:
        FUZZ_CHECK(logview_hurry(s->view, &now) == 0);
        break;
    case KIND_FINISH:
        FUZZ_CHECK(logview_finish(s->view, o->stream, &now) == 0);
        break;
    default:
        for (int i = 0; i < (o->kind == KIND_REPEAT ? REPEATS : 1); i++) {
            feed(s, o, &now);
        }
    }
    take_text(s);
    check_bars(s);
    if (logview_deadline_ms(s->view) == UINT64_MAX) {
        return; /* nothing waits for a moment */
    }
    FUZZ_CHECK(logview_deadline_ms(s->view) <= s->now_ms + LOGVIEW_TICK_MS);
}

static void finish(struct screen *s)
{
    struct logview_moment now = moment(s);
    for (uint8_t way = 0; way < LOGVIEW_WAYS; way++) {
        FUZZ_CHECK(logview_finish(s->view, way, &now) == 0);
        take_text(s);
    }
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        if ((s->options & IS_TERMINAL) != 0) {
            check_harmless(s->out[i].data, s->out[i].used);
        }
    }
}

/* ---- the same, however it is cut ----------------------------------------- */

struct piece {
    const uint8_t *text;
    size_t n;
};

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = n > 0 ? memcmp(x->text, y->text, n) : 0;
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static size_t sort_lines(struct piece **out, const struct gpul_buf *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->used; i++) {
        count += text->data[i] == '\n';
    }
    struct piece *list = calloc(count + 1, sizeof(*list));
    FUZZ_CHECK(list != NULL);
    const uint8_t *at = text->data;
    for (size_t i = 0; i < count; i++) {
        size_t left = text->used - (size_t)(at - text->data);
        const uint8_t *end = memchr(at, '\n', left);
        list[i] = (struct piece){at, (size_t)(end - at)};
        at = end + 1;
    }
    if (count > 0) {
        qsort(list, count, sizeof(*list), compare_pieces);
    }
    *out = list;
    return count;
}

/* Bars of several ranks that are said at one time have no order. */
static void check_same_lines(const struct gpul_buf *a, const struct gpul_buf *b)
{
    struct piece *x, *y;
    size_t count = sort_lines(&x, a);
    FUZZ_CHECK(sort_lines(&y, b) == count);
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(compare_pieces(&x[i], &y[i]) == 0);
    }
    free(x);
    free(y);
}

static void check_same(const struct screen *a, const struct screen *b,
                       bool has_bars)
{
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        FUZZ_CHECK(a->out[i].used == b->out[i].used);
        if (has_bars) {
            check_same_lines(&a->out[i], &b->out[i]);
        } else if (a->out[i].used > 0) {
            FUZZ_CHECK(memcmp(a->out[i].data, b->out[i].data, a->out[i].used) ==
                       0);
        }
    }
}

/* ---- all of it ----------------------------------------------------------- */

/* false: the input is used up. */
static bool read_order(struct order *o, const uint8_t **at, const uint8_t *end)
{
    if (end - *at < 2) {
        return false;
    }
    uint8_t what = (*at)[0];
    *o = (struct order){.rank = what & 3u,
                        .stream = what >> 2 & 1u,
                        .kind = what >> 3 & 7u,
                        .count = (*at)[1],
                        .bytes = *at + 2};
    *at += 2;
    if (o->kind <= KIND_REPEAT) {
        size_t left = (size_t)(end - *at);
        o->count = o->count < left ? o->count : (uint8_t)left;
        *at += o->count;
    }
    return true;
}

static void run(struct screen *s, const uint8_t *data, size_t n)
{
    struct order order;
    const uint8_t *at = data;
    size_t repeated = 0;
    while (read_order(&order, &at, data + n)) {
        if (order.kind == KIND_REPEAT) {
            repeated += (size_t)order.count * REPEATS;
        }
        if (repeated < REPEATED_BYTES_MAX) {
            carry_out(s, &order);
        }
    }
    finish(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct screen whole, cut;
    if (n == 0) {
        return 0;
    }
    bool has_bars = memchr(data, '\r', n) != NULL;
    memory_watch();
    open_screen(&whole, data[0], false);
    run(&whole, data + 1, n - 1);
    size_t out = whole.out[0].capacity + whole.out[1].capacity;
    FUZZ_CHECK(memory_peak() <= MEMORY_BYTES_MAX + 2 * out);
    open_screen(&cut, data[0], true);
    run(&cut, data + 1, n - 1);
    check_same(&whole, &cut, has_bars);
    close_screen(&whole);
    close_screen(&cut);
    FUZZ_CHECK(memory_held() == 0);
    return 0;
}
