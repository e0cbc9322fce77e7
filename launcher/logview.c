/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/logview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "launcher/escapes.h"
#include "launcher/folding.h"
#include "launcher/lines.h"

enum {
    /* A frame's lines with their labels, or all that a fold holds. */
    TEXT_BYTES_MAX = 8 << 20,
    BAR_TAIL_BYTES = 24, /* "  +1048576 more" */
};

/* A ring through its owner, for the streams that have a bar. */
struct link {
    struct link *next;
    struct link *previous;
};

struct stream {
    struct link link;
    struct lines lines;
    struct escapes escapes;
    uint32_t rank;
    uint8_t way;
    bool has_bar; /* is in the list */
    uint64_t bar_shown_ms;
};

struct logview {
    struct logview_options options;
    struct stream **streams; /* by rank, LOGVIEW_STREAMS each, when needed */
    struct link bars[LOGVIEW_WAYS];
    uint64_t tick_ms; /* of the bars; UINT64_MAX: there is none */
    struct folding *folding;
    struct gpul_buf texts[LOGVIEW_WAYS];
    struct gpul_buf clean;
};

int logview_create(struct logview **out, const struct logview_options *options)
{
    struct logview *v = calloc(1, sizeof(*v));
    *out = v;
    if (v == NULL) {
        return GPUL_ENOMEM;
    }
    v->options = *options;
    v->tick_ms = UINT64_MAX;
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        gpul_buf_init(&v->texts[i], TEXT_BYTES_MAX);
        v->bars[i] = (struct link){&v->bars[i], &v->bars[i]};
    }
    gpul_buf_init(&v->clean, TEXT_BYTES_MAX);
    bool is_folding =
        options->ways[0].is_folding || options->ways[1].is_folding;
    v->streams =
        calloc((size_t)options->rank_count_max + 1, sizeof(*v->streams));
    if (v->streams == NULL ||
        (is_folding && folding_create(&v->folding, options->rank_count_max,
                                      options->voices) != 0)) {
        logview_destroy(v);
        *out = NULL;
        return GPUL_ENOMEM;
    }
    return 0;
}

void logview_destroy(struct logview *v)
{
    if (v == NULL) {
        return;
    }
    for (size_t i = 0; v->streams != NULL && i < v->options.rank_count_max;
         i++) {
        for (size_t k = 0; v->streams[i] != NULL && k < LOGVIEW_STREAMS; k++) {
            lines_release(&v->streams[i][k].lines);
        }
        free(v->streams[i]);
    }
    free(v->streams);
    folding_destroy(v->folding);
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        gpul_buf_release(&v->texts[i]);
    }
    gpul_buf_release(&v->clean);
    free(v);
}

static struct stream *stream_of(struct logview *v, uint32_t rank,
                                uint8_t stream)
{
    struct stream **pair = &v->streams[rank];
    if (*pair == NULL) {
        *pair = calloc(LOGVIEW_STREAMS, sizeof(**pair));
        for (uint8_t i = 0; *pair != NULL && i < LOGVIEW_STREAMS; i++) {
            (*pair)[i].rank = rank;
            (*pair)[i].way = v->options.way_of[i];
            lines_init(&(*pair)[i].lines);
        }
    }
    return *pair != NULL ? &(*pair)[stream] : NULL;
}

struct gpul_buf *logview_text(struct logview *v, uint8_t way)
{
    return &v->texts[way];
}

/* ---- lines --------------------------------------------------------------- */

/* All that is left of escape sequences are colours; they end with the line. */
static void put_body(struct logview *v, const struct folding_line *line)
{
    static const char reset[] = "\x1b[0m";
    struct gpul_buf *out = &v->texts[line->way];
    if (line->time[0] != '\0') {
        gpul_buf_append_text(out, line->time);
        gpul_buf_append(out, " ", 1);
    }
    gpul_buf_append(out, line->text, line->n);
    if (v->options.ways[line->way].is_terminal && line->n > 0 &&
        memchr(line->text, reset[0], line->n) != NULL) {
        gpul_buf_append(out, reset, sizeof(reset) - 1);
    }
    gpul_buf_append(out, "\n", 1);
}

static void put_line(struct logview *v, uint32_t rank,
                     const struct folding_line *line)
{
    if (v->options.has_labels) {
        /* Not by printf: this is all that is done for most lines. */
        char label[16];
        size_t at = sizeof(label);
        label[--at] = ' ';
        label[--at] = ']';
        do {
            label[--at] = (char)('0' + rank % 10);
            rank /= 10;
        } while (rank > 0);
        label[--at] = '[';
        gpul_buf_append(&v->texts[line->way], label + at, sizeof(label) - at);
    }
    put_body(v, line);
}

static void put_folded(struct logview *v, uint64_t now_ms)
{
    struct folding_line line;
    const struct gpul_rankset *ranks = NULL;
    while (v->folding != NULL &&
           folding_next(v->folding, now_ms, &line, &ranks)) {
        struct gpul_buf *out = &v->texts[line.way];
        gpul_buf_append(out, "[", 1);
        gpul_rankset_format(out, ranks);
        gpul_buf_append(out, "] ", 2);
        put_body(v, &line);
    }
}

static void say(struct logview *v, const struct stream *s,
                const struct line *text, const struct logview_moment *now)
{
    struct folding_line line = {
        .way = s->way, .text = text->text, .n = text->n};
    memcpy(line.time, now->text, sizeof(line.time));
    if (!v->options.ways[s->way].is_folding) {
        put_line(v, s->rank, &line);
        return;
    }
    if (folding_add(v->folding, s->rank, &line, now->ms) != 0) {
        folding_hurry(v->folding);
        put_folded(v, now->ms);
        put_line(v, s->rank, &line);
    }
    put_folded(v, now->ms);
}

/* A bar that ends as it was last shown is not said again. */
static void say_unless_shown(struct logview *v, const struct stream *s,
                             const struct line *text,
                             const struct logview_moment *now)
{
    if (!text->is_shown) {
        say(v, s, text, now);
    }
}

static int outcome(const struct logview *v, int rc)
{
    bool is_failed = v->texts[0].is_failed || v->texts[1].is_failed;
    return is_failed ? GPUL_ENOMEM : rc;
}

/* ---- bars ---------------------------------------------------------------- */

static void list_bar(struct logview *v, struct stream *s)
{
    struct link *all = &v->bars[s->way];
    s->link = (struct link){.next = all, .previous = all->previous};
    all->previous->next = &s->link;
    all->previous = &s->link;
}

static void unlist_bar(struct stream *s)
{
    s->link.next->previous = s->link.previous;
    s->link.previous->next = s->link.next;
}

/* The link is the stream's first member. */
static const struct stream *stream_at(const struct link *link)
{
    return (const struct stream *)(const void *)link;
}

static void watch_bar(struct logview *v, struct stream *s, uint64_t now_ms)
{
    struct line bar;
    bool has_bar = lines_bar(&s->lines, &bar);
    if (has_bar && !s->has_bar) {
        list_bar(v, s);
    } else if (!has_bar && s->has_bar) {
        unlist_bar(s);
    }
    s->has_bar = has_bar;
    if (has_bar && v->tick_ms == UINT64_MAX) {
        v->tick_ms = now_ms + LOGVIEW_TICK_MS;
    }
}

/* Updates as lines, where no line can be redrawn. */
static void say_bars(struct logview *v, uint8_t way,
                     const struct logview_moment *now)
{
    struct link *all = &v->bars[way];
    for (struct link *at = all->next; at != all; at = at->next) {
        struct stream *s = (struct stream *)(void *)at;
        struct line bar;
        bool is_due = s->bar_shown_ms == 0 ||
                      now->ms - s->bar_shown_ms >= LOGVIEW_BAR_EVERY_MS;
        if (is_due && lines_bar(&s->lines, &bar) && !bar.is_shown) {
            say(v, s, &bar, now);
            lines_mark_shown(&s->lines);
            s->bar_shown_ms = now->ms;
        }
    }
}

/* The stream of the lowest rank that has a bar here; NULL: none has. */
static const struct stream *lowest_bar(const struct link *all)
{
    const struct stream *lowest = NULL;
    for (const struct link *at = all->next; at != all; at = at->next) {
        const struct stream *s = stream_at(at);
        if (lowest == NULL || s->rank < lowest->rank) {
            lowest = s;
        }
    }
    return lowest;
}

/* The ranks that have this very bar, and how many bars are others. */
static uint32_t gather_bars(struct gpul_rankset *same, const struct link *all,
                            const struct line *bar)
{
    uint32_t more = 0;
    for (const struct link *at = all->next; at != all; at = at->next) {
        const struct stream *s = stream_at(at);
        struct line other;
        bool is_same = lines_bar(&s->lines, &other) && other.n == bar->n &&
                       memcmp(other.text, bar->text, bar->n) == 0;
        if (!is_same || gpul_rankset_add(same, s->rank, s->rank) != 0) {
            more++;
        }
    }
    return more;
}

static void put_bar(const struct logview *v, struct gpul_buf *out,
                    const struct gpul_rankset *same, const struct line *bar)
{
    if (v->options.has_labels) {
        gpul_buf_append(out, "[", 1);
        gpul_rankset_format(out, same);
        gpul_buf_append(out, "] ", 2);
    }
    gpul_buf_append(out, bar->text, bar->n);
}

int logview_bars(const struct logview *v, uint8_t way, size_t columns,
                 struct gpul_buf *out)
{
    struct line bar;
    const struct stream *lowest = lowest_bar(&v->bars[way]);
    if (!v->options.ways[way].can_redraw || lowest == NULL ||
        !lines_bar(&lowest->lines, &bar)) {
        return 0;
    }
    struct gpul_rankset same;
    struct gpul_buf line;
    gpul_rankset_init(&same);
    gpul_buf_init(&line, TEXT_BYTES_MAX);
    uint32_t more = gather_bars(&same, &v->bars[way], &bar);
    put_bar(v, &line, &same, &bar);
    bool has_tail = more > 0 && columns > 2 * BAR_TAIL_BYTES;
    size_t room = has_tail ? columns - BAR_TAIL_BYTES : columns;
    gpul_buf_append(out, line.data, escapes_fit(line.data, line.used, room));
    gpul_buf_append_text(out, "\x1b[0m");
    if (has_tail) {
        gpul_buf_appendf(out, "  +%" PRIu32 " more", more);
    }
    gpul_buf_release(&line);
    gpul_rankset_release(&same);
    return out->is_failed ? GPUL_ENOMEM : 0;
}

/* ---- events -------------------------------------------------------------- */

int logview_feed(struct logview *v, uint32_t rank, uint8_t stream,
                 const uint8_t *bytes, size_t n,
                 const struct logview_moment *now)
{
    struct stream *s = stream_of(v, rank, stream);
    if (s == NULL) {
        return GPUL_ENOMEM;
    }
    if (v->options.ways[s->way].is_terminal) {
        gpul_buf_clear(&v->clean);
        if (escapes_feed(&s->escapes, &v->clean, bytes, n) != 0) {
            return GPUL_ENOMEM;
        }
        bytes = v->clean.data;
        n = v->clean.used;
    }
    struct lines_input input;
    struct line line;
    int rc = 0;
    lines_input_init(&input, bytes, n);
    while (lines_next(&s->lines, &input, &line, &rc)) {
        say_unless_shown(v, s, &line, now);
    }
    watch_bar(v, s, now->ms);
    return outcome(v, rc);
}

int logview_tick(struct logview *v, const struct logview_moment *now)
{
    if (now->ms >= v->tick_ms) {
        for (uint8_t i = 0; i < LOGVIEW_WAYS; i++) {
            if (!v->options.ways[i].can_redraw) {
                say_bars(v, i, now);
            }
        }
        bool has_bars =
            v->bars[0].next != &v->bars[0] || v->bars[1].next != &v->bars[1];
        v->tick_ms = has_bars ? now->ms + LOGVIEW_TICK_MS : UINT64_MAX;
    }
    put_folded(v, now->ms);
    return outcome(v, 0);
}

int logview_hurry(struct logview *v, const struct logview_moment *now)
{
    if (v->folding != NULL) {
        folding_hurry(v->folding);
    }
    put_folded(v, now->ms);
    return outcome(v, 0);
}

int logview_finish(struct logview *v, uint8_t way,
                   const struct logview_moment *now)
{
    for (size_t rank = 0; rank < v->options.rank_count_max; rank++) {
        for (size_t i = 0; v->streams[rank] != NULL && i < LOGVIEW_STREAMS;
             i++) {
            struct stream *s = &v->streams[rank][i];
            struct line line;
            if (s->way != way) {
                continue;
            }
            escapes_init(&s->escapes);
            if (lines_finish(&s->lines, &line)) {
                say(v, s, &line, now);
            }
            watch_bar(v, s, now->ms);
        }
    }
    return logview_hurry(v, now);
}

uint64_t logview_deadline_ms(const struct logview *v)
{
    uint64_t fold_ms =
        v->folding != NULL ? folding_deadline_ms(v->folding) : UINT64_MAX;
    return fold_ms < v->tick_ms ? fold_ms : v->tick_ms;
}
