/* SPDX-License-Identifier: Apache-2.0
 *
 * Where both streams are the same terminal or pipe there is one way for both,
 * so that their order is kept.
 */
#include "launcher/console.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/console_internal.h"

/* The room of ROOM_BYTES, one item's lines, and our own text and data. */
enum { QUEUE_BYTES_MAX = 512 << 20 };

static struct exit_way *err_way(struct console *c)
{
    return &c->ways[c->is_one_place ? CONSOLE_OUT : CONSOLE_ERR];
}

static uint8_t way_of_stream(const struct console *c, uint8_t stream)
{
    bool is_err = stream == CONSOLE_ERR || c->options.sends_stdout_to_stderr;
    return is_err && !c->is_one_place ? CONSOLE_ERR : CONSOLE_OUT;
}

static void on_written(void *arg)
{
    struct console *c = arg;
    console_pump(c, &c->ways[CONSOLE_OUT], false);
    console_pump(c, &c->ways[CONSOLE_ERR], false);
    c->handlers.on_progress(c->arg);
}

int console_create(struct console **out, uv_loop_t *loop, int stdout_fd,
                   int stderr_fd, const struct console_handlers *handlers,
                   void *arg, struct gpul_error *err)
{
    struct console *c = calloc(1, sizeof(*c));
    *out = c;
    if (c == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    c->handlers = *handlers;
    c->arg = arg;
    c->is_one_place = outlet_is_one_place(stdout_fd, stderr_fd);
    gpul_buf_init(&c->bars, CONSOLE_LIVE_BYTES_MAX);
    uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    outlet_open(&c->ways[CONSOLE_OUT].outlet, loop, stdout_fd, QUEUE_BYTES_MAX,
                on_written, c);
    outlet_open(&c->ways[CONSOLE_ERR].outlet, loop, stderr_fd, QUEUE_BYTES_MAX,
                on_written, c);
    return 0;
}

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0;
}

static bool choose(enum console_when when, bool otherwise)
{
    return when == CONSOLE_AUTO ? otherwise : when == CONSOLE_ALWAYS;
}

static void make_view(struct console *c, uint32_t voices)
{
    struct logview_options options = {
        .has_labels = choose(c->options.labels, voices > 1),
        .rank_count_max = c->options.rank_count_max,
        .voices = voices,
        .way_of = {way_of_stream(c, CONSOLE_OUT),
                   way_of_stream(c, CONSOLE_ERR)},
    };
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        bool is_terminal = c->ways[i].outlet.is_terminal;
        options.ways[i] = (struct logview_way){
            .is_terminal = is_terminal,
            .can_redraw = is_terminal && !is_dumb(),
            .is_folding = options.has_labels && voices > 1 &&
                          choose(c->options.folding, is_terminal),
        };
    }
    if (options.has_labels || c->options.has_stamps) {
        logview_create(&c->view, &options);
    }
}

void console_configure(struct console *c, const struct console_options *options)
{
    for (uint8_t i = 0; c->view != NULL && i < LOGVIEW_WAYS; i++) {
        console_pump(c, &c->ways[i], true);
        console_finish_way(c, &c->ways[i]);
    }
    logview_destroy(c->view);
    c->view = NULL;
    c->options = *options;
    uint32_t world = options->rank_count_max;
    make_view(c, options->shown == NULL ? world
                                        : (uint32_t)gpul_rankset_size_below(
                                              options->shown, world));
}

void console_output(struct console *c, const Gpul__Output *output)
{
    const struct gpul_rankset *shown = c->options.shown;
    if (output->rank >= c->options.rank_count_max) {
        return;
    }
    if (shown != NULL && !gpul_rankset_has(shown, output->rank)) {
        c->handlers.on_credit(c->arg, output->node_rank, output->data.len);
        return;
    }
    struct backlog_item item = {
        .kind = BACKLOG_OUTPUT,
        .rank = output->rank,
        .node_rank = output->node_rank,
        .stream = output->stream == GPUL__OUTPUT__STREAM__STDERR ? CONSOLE_ERR
                                                                 : CONSOLE_OUT,
        .bytes = output->data.data,
        .n = (uint32_t)output->data.len,
    };
    console_enqueue(c, &c->ways[way_of_stream(c, item.stream)], &item);
}

void console_finish_lines(struct console *c)
{
    struct backlog_item item = {.kind = BACKLOG_FINISH};
    console_enqueue(c, &c->ways[CONSOLE_OUT], &item);
    console_enqueue(c, &c->ways[CONSOLE_ERR], &item);
}

void console_hasten(struct console *c)
{
    c->is_hasty = true;
    console_leave_out(c, &c->ways[CONSOLE_OUT]);
    console_leave_out(c, &c->ways[CONSOLE_ERR]);
}

void console_say(struct console *c, const char *text, size_t n)
{
    struct backlog_item item = {
        .kind = BACKLOG_TEXT, .bytes = (const uint8_t *)text, .n = (uint32_t)n};
    console_enqueue(c, err_way(c), &item);
}

void console_data(struct console *c, const void *bytes, size_t n)
{
    struct backlog_item item = {
        .kind = BACKLOG_DATA, .bytes = bytes, .n = (uint32_t)n};
    console_enqueue(c, &c->ways[CONSOLE_OUT], &item);
}

void console_live(struct console *c, const char *text, size_t n)
{
    struct exit_way *way = err_way(c);
    if (!way->outlet.is_terminal || !outlet_is_drained(&way->outlet)) {
        return;
    }
    console_clear_live(c);
    if (text != NULL && n > 0) {
        console_show_live(c, way, text, n);
    }
}

bool console_has_terminal(const struct console *c)
{
    return c->ways[CONSOLE_ERR].outlet.is_terminal;
}

bool console_can_redraw(const struct console *c)
{
    return console_has_terminal(c) && !is_dumb();
}

size_t console_width(const struct console *c)
{
    return console_way_width(&c->ways[CONSOLE_ERR]);
}

bool console_is_drained(const struct console *c)
{
    bool is_drained = true;
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        is_drained = is_drained && backlog_is_empty(&c->ways[i].backlog) &&
                     outlet_is_drained(&c->ways[i].outlet);
    }
    return is_drained;
}

uint64_t console_waiting_bytes(const struct console *c,
                               enum console_stream stream)
{
    const struct exit_way *way = &c->ways[stream];
    return way->outlet.taken - way->outlet.written + way->backlog.bytes;
}

uint64_t console_written(const struct console *c, enum console_stream stream)
{
    return c->ways[stream].outlet.written;
}

uint64_t console_give_up(struct console *c, enum console_stream stream)
{
    struct exit_way *way = &c->ways[stream];
    uint64_t bytes = console_waiting_bytes(c, stream);
    outlet_give_up(&way->outlet);
    console_pump(c, way, true);
    return bytes;
}

int console_stdout_error(const struct console *c)
{
    return c->ways[CONSOLE_OUT].outlet.error;
}

void console_close(struct console *c)
{
    outlet_close(&c->ways[CONSOLE_OUT].outlet);
    outlet_close(&c->ways[CONSOLE_ERR].outlet);
    if (!uv_is_closing((uv_handle_t *)&c->timer)) {
        uv_close((uv_handle_t *)&c->timer, NULL);
    }
}

void console_destroy(struct console *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < LOGVIEW_WAYS; i++) {
        outlet_release(&c->ways[i].outlet);
        backlog_release(&c->ways[i].backlog);
        ledger_release(&c->ways[i].ledger);
    }
    logview_destroy(c->view);
    gpul_buf_release(&c->bars);
    free(c);
}
