/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: an item goes through the view (if there is one) and out by the
 * outlet of its way, all at once.
 * Slow reader: it joins the way's backlog until the outlet has room again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "launcher/console_internal.h"

enum {
    /* With more than this in the outlet's queue the rest waits outside. */
    ROOM_BYTES = 256 << 10,
    /* What a terminal may be behind while the job is being stopped. */
    HASTY_BYTES = 256 << 10,
    WIDTH_DEFAULT = 80,
    WORDS_BYTES = 128,
};

static void give_credits(struct console *c, struct exit_way *way)
{
    struct ledger_entry entry;
    while (ledger_take(&way->ledger, way->outlet.written, &entry)) {
        c->handlers.on_credit(c->arg, entry.node_rank, entry.bytes);
    }
}

/* ---- writing ------------------------------------------------------------- */

void console_clear_live(struct console *c)
{
    static const char erase[] = "\r\x1b[K";
    if (c->live == NULL) {
        return;
    }
    outlet_write(&c->live->outlet, erase, sizeof(erase) - 1);
    c->live = NULL;
}

static void put(struct console *c, struct exit_way *way, const void *bytes,
                size_t n)
{
    if (n == 0) {
        return;
    }
    console_clear_live(c);
    outlet_write(&way->outlet, bytes, n);
    way->is_mid_line = ((const char *)bytes)[n - 1] != '\n';
}

static void put_viewed(struct console *c)
{
    for (uint8_t i = 0; i < LOGVIEW_WAYS; i++) {
        struct gpul_buf *text = logview_text(c->view, i);
        put(c, &c->ways[i], text->data, text->used);
        gpul_buf_clear(text);
    }
}

void console_show_live(struct console *c, struct exit_way *way,
                       const void *text, size_t n)
{
    console_clear_live(c);
    outlet_write(&way->outlet, text, n);
    c->live = way;
}

size_t console_way_width(const struct exit_way *way)
{
    struct winsize size;
    if (way->outlet.is_terminal &&
        ioctl(way->outlet.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return WIDTH_DEFAULT;
}

/* The ranks' progress bars take the live line's place once they run. */
static void refresh_bars(struct console *c)
{
    struct gpul_buf text;
    struct exit_way *way = NULL;
    gpul_buf_init(&text, CONSOLE_LIVE_BYTES_MAX);
    for (uint8_t i = 0; i < LOGVIEW_WAYS && text.used == 0; i++) {
        way = &c->ways[i];
        if (way->outlet.is_terminal && outlet_is_drained(&way->outlet)) {
            logview_bars(c->view, i, console_way_width(way) - 1, &text);
        }
    }
    bool is_same = c->live == way && text.used == c->bars.used &&
                   text.used > 0 &&
                   memcmp(text.data, c->bars.data, text.used) == 0;
    if (text.used == 0 && c->bars.used > 0) {
        console_clear_live(c);
    } else if (text.used > 0 && !is_same) {
        console_show_live(c, way, text.data, text.used);
    }
    gpul_buf_release(&c->bars);
    c->bars = text;
}

/* ---- the view ------------------------------------------------------------ */

static struct logview_moment moment(const struct console *c)
{
    struct logview_moment now = {.ms = uv_now(c->timer.loop)};
    struct timespec clock;
    struct tm utc;
    if (!c->options.has_stamps || clock_gettime(CLOCK_REALTIME, &clock) != 0 ||
        gmtime_r(&clock.tv_sec, &utc) == NULL) {
        return now;
    }
    size_t n = strftime(now.text, sizeof(now.text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(now.text + n, sizeof(now.text) - n, ".%03ldZ",
             clock.tv_nsec / 1000000);
    return now;
}

static void on_timer(uv_timer_t *timer);

/* After whatever the view was told. */
static void arm(struct console *c)
{
    uint64_t next_ms = logview_deadline_ms(c->view);
    uint64_t now_ms = uv_now(c->timer.loop);
    if (next_ms == UINT64_MAX) {
        uv_timer_stop(&c->timer);
    } else if (!uv_is_closing((uv_handle_t *)&c->timer)) {
        uv_timer_start(&c->timer, on_timer,
                       next_ms > now_ms ? next_ms - now_ms : 0, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct console *c = timer->data;
    struct logview_moment now = moment(c);
    logview_tick(c->view, &now);
    put_viewed(c);
    refresh_bars(c);
    arm(c);
}

static void hurry(struct console *c)
{
    if (c->view != NULL) {
        struct logview_moment now = moment(c);
        logview_hurry(c->view, &now);
        put_viewed(c);
        arm(c);
    }
}

/* ---- items --------------------------------------------------------------- */

static void view_output(struct console *c, struct exit_way *way,
                        const struct backlog_item *item)
{
    struct logview_moment now = moment(c);
    int rc = logview_feed(c->view, item->rank, item->stream, item->bytes,
                          item->n, &now);
    put_viewed(c);
    if (rc != 0) {
        /* No memory for lines: the bytes matter more than their labels. */
        put(c, way, item->bytes, item->n);
    }
    if (c->bars.used > 0) {
        refresh_bars(c);
    }
    arm(c);
}

static void pass_output(struct console *c, struct exit_way *way,
                        const struct backlog_item *item)
{
    if (c->view != NULL) {
        view_output(c, way, item);
    } else {
        put(c, way, item->bytes, item->n);
    }
    struct ledger_entry entry = {.position = way->outlet.taken,
                                 .node_rank = item->node_rank,
                                 .bytes = item->n};
    if (!ledger_add(&way->ledger, &entry)) {
        c->handlers.on_credit(c->arg, entry.node_rank, entry.bytes);
    }
}

void console_finish_way(struct console *c, struct exit_way *way)
{
    if (c->view == NULL) {
        return;
    }
    struct logview_moment now = moment(c);
    logview_finish(c->view, (uint8_t)(way - c->ways), &now);
    put_viewed(c);
    refresh_bars(c);
    arm(c);
}

static void say(struct console *c, struct exit_way *way,
                const struct backlog_item *item)
{
    hurry(c);
    bool shares_terminal =
        way->outlet.is_terminal &&
        (way->is_mid_line || (c->ways[CONSOLE_OUT].is_mid_line &&
                              c->ways[CONSOLE_OUT].outlet.is_terminal));
    if (shares_terminal) {
        put(c, way, "\n", 1);
        c->ways[CONSOLE_OUT].is_mid_line = false;
    }
    put(c, way, item->bytes, item->n);
}

static void say_words(struct console *c, struct exit_way *way,
                      const char *words)
{
    struct backlog_item item = {.kind = BACKLOG_TEXT,
                                .bytes = (const uint8_t *)words,
                                .n = (uint32_t)strlen(words)};
    say(c, way, &item);
}

static void say_left_out(struct console *c, struct exit_way *way)
{
    char words[WORDS_BYTES];
    if (way->left_out_bytes > 0) {
        snprintf(words, sizeof(words),
                 "gpulaunch: note: %.1f MB of output were left out above; the "
                 "logs have all of it\n",
                 (double)way->left_out_bytes / 1e6);
        way->left_out_bytes = 0;
        say_words(c, way, words);
    }
}

static void pass(struct console *c, struct exit_way *way,
                 const struct backlog_item *item)
{
    switch (item->kind) {
    case BACKLOG_OUTPUT:
        pass_output(c, way, item);
        break;
    case BACKLOG_FINISH:
        console_finish_way(c, way);
        say_left_out(c, way);
        break;
    case BACKLOG_TEXT:
        say(c, way, item);
        break;
    case BACKLOG_DATA:
        put(c, way, item->bytes, item->n);
        break;
    }
}

static bool has_room(const struct exit_way *way)
{
    return way->outlet.taken - way->outlet.written < ROOM_BYTES;
}

/* The job is being stopped and the terminal is behind: people wait for the
 * end, not for the middle. */
void console_leave_out(struct console *c, struct exit_way *way)
{
    struct backlog_item item;
    if (!c->is_hasty || !way->outlet.is_terminal ||
        way->backlog.bytes <= HASTY_BYTES) {
        return;
    }
    console_finish_way(c, way);
    if (way->left_out_bytes == 0) {
        say_words(c, way, "gpulaunch: output is left out here\n");
    }
    while (way->backlog.bytes > HASTY_BYTES &&
           backlog_pop(&way->backlog, &item)) {
        if (item.kind == BACKLOG_OUTPUT) {
            way->left_out_bytes += item.n;
            c->handlers.on_credit(c->arg, item.node_rank, item.n);
        } else {
            pass(c, way, &item);
        }
    }
}

/* At once, or when those before it have gone and there is room. */
void console_enqueue(struct console *c, struct exit_way *way,
                     const struct backlog_item *item)
{
    if ((backlog_is_empty(&way->backlog) && has_room(way)) ||
        !backlog_push(&way->backlog, item)) {
        pass(c, way, item);
    }
    console_leave_out(c, way);
    give_credits(c, way);
}

void console_pump(struct console *c, struct exit_way *way, bool is_forced)
{
    struct backlog_item item;
    while ((is_forced || has_room(way)) && backlog_pop(&way->backlog, &item)) {
        pass(c, way, &item);
    }
    give_credits(c, way);
}
