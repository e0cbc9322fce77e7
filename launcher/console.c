/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/console.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/buf.h"
#include "launcher/lines.h"
#include "launcher/outlet.h"
#include "proto/limits.h"

enum {
    /* All windows together, and what labels add to them. */
    QUEUE_BYTES_MAX = 512 << 20,
    SCRATCH_BYTES_MAX = 2 << 20,
    LABEL_BYTES = 16,
    WIDTH_DEFAULT = 80,
    STREAM_COUNT = 2,
};

/* Output of a node that has left once `position` bytes of the outlet have. */
struct mark {
    uint64_t position;
    uint32_t node_rank;
    uint64_t bytes;
};

struct marks {
    struct mark *items; /* a queue: first .. count-1 */
    size_t first;
    size_t count;
    size_t capacity;
};

struct exit_way {
    struct outlet outlet;
    struct marks marks;
    bool is_mid_line; /* the last byte was no newline */
};

struct console {
    struct exit_way out;
    struct exit_way err;
    struct console_options options;
    struct console_handlers handlers;
    void *arg;
    struct lines **lines; /* per rank, STREAM_COUNT each; made when needed */
    size_t rank_count;
    struct gpul_buf scratch;
    bool is_live_shown;
};

static bool push_mark(struct marks *m, struct mark mark)
{
    if (m->count == m->capacity) {
        if (m->first > 0) {
            memmove(m->items, m->items + m->first,
                    (m->count - m->first) * sizeof(*m->items));
            m->count -= m->first;
            m->first = 0;
        } else {
            size_t capacity = m->capacity == 0 ? 64 : m->capacity * 2;
            struct mark *grown =
                realloc(m->items, capacity * sizeof(*m->items));
            if (grown == NULL) {
                return false;
            }
            m->items = grown;
            m->capacity = capacity;
        }
    }
    m->items[m->count++] = mark;
    return true;
}

static void give_credits(struct console *c, struct exit_way *way)
{
    struct marks *m = &way->marks;
    while (m->first < m->count &&
           m->items[m->first].position <= way->outlet.written) {
        const struct mark *mark = &m->items[m->first++];
        c->handlers.on_credit(c->arg, mark->node_rank, mark->bytes);
    }
    if (m->first == m->count) {
        m->first = m->count = 0;
    }
}

static void on_written(void *arg)
{
    struct console *c = arg;
    give_credits(c, &c->out);
    give_credits(c, &c->err);
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
    gpul_buf_init(&c->scratch, SCRATCH_BYTES_MAX);
    outlet_open(&c->out.outlet, loop, stdout_fd, QUEUE_BYTES_MAX, on_written,
                c);
    outlet_open(&c->err.outlet, loop, stderr_fd, QUEUE_BYTES_MAX, on_written,
                c);
    return 0;
}

void console_configure(struct console *c, const struct console_options *options)
{
    c->options = *options;
}

static void clear_live(struct console *c)
{
    static const char erase[] = "\r\x1b[K";
    if (!c->is_live_shown) {
        return;
    }
    c->is_live_shown = false;
    outlet_write(&c->err.outlet, erase, sizeof(erase) - 1);
}

static void put(struct console *c, struct exit_way *way, const void *bytes,
                size_t n)
{
    if (n == 0) {
        return;
    }
    clear_live(c);
    outlet_write(&way->outlet, bytes, n);
    way->is_mid_line = ((const char *)bytes)[n - 1] != '\n';
}

static struct lines *lines_of(struct console *c, uint32_t rank, size_t stream)
{
    if (rank >= c->rank_count) {
        size_t count = (size_t)rank + 1;
        struct lines **grown = realloc(c->lines, count * sizeof(*c->lines));
        if (grown == NULL) {
            return NULL;
        }
        memset(grown + c->rank_count, 0,
               (count - c->rank_count) * sizeof(*grown));
        c->lines = grown;
        c->rank_count = count;
    }
    if (c->lines[rank] == NULL) {
        c->lines[rank] = calloc(STREAM_COUNT, sizeof(**c->lines));
        if (c->lines[rank] == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < STREAM_COUNT; i++) {
            lines_init(&c->lines[rank][i]);
        }
    }
    return &c->lines[rank][stream];
}

static void make_label(char label[LABEL_BYTES], uint32_t rank)
{
    snprintf(label, LABEL_BYTES, "[%" PRIu32 "] ", rank);
}

static struct exit_way *way_of(struct console *c, bool is_stderr)
{
    return is_stderr || c->options.sends_stdout_to_stderr ? &c->err : &c->out;
}

static void put_labelled(struct console *c, struct exit_way *way,
                         const Gpul__Output *output, bool is_stderr)
{
    char label[LABEL_BYTES];
    make_label(label, output->rank);
    struct lines *l = lines_of(c, output->rank, is_stderr ? 1 : 0);
    gpul_buf_clear(&c->scratch);
    if (l == NULL || lines_feed(l, &c->scratch, label, output->data.data,
                                output->data.len) != 0) {
        /* No memory for lines: the bytes matter more than their labels. */
        put(c, way, output->data.data, output->data.len);
        return;
    }
    put(c, way, c->scratch.data, c->scratch.used);
}

void console_output(struct console *c, const Gpul__Output *output)
{
    if (output->rank >= c->options.rank_count_max) {
        return;
    }
    bool is_stderr = output->stream == GPUL__OUTPUT__STREAM__STDERR;
    struct exit_way *way = way_of(c, is_stderr);
    if (c->options.has_labels) {
        put_labelled(c, way, output, is_stderr);
    } else {
        put(c, way, output->data.data, output->data.len);
    }
    struct mark mark = {.position = way->outlet.taken,
                        .node_rank = output->node_rank,
                        .bytes = output->data.len};
    if (!push_mark(&way->marks, mark)) {
        c->handlers.on_credit(c->arg, mark.node_rank, mark.bytes);
    }
    give_credits(c, way);
}

void console_finish_lines(struct console *c)
{
    for (size_t rank = 0; rank < c->rank_count; rank++) {
        for (size_t i = 0; c->lines[rank] != NULL && i < STREAM_COUNT; i++) {
            char label[LABEL_BYTES];
            make_label(label, (uint32_t)rank);
            gpul_buf_clear(&c->scratch);
            lines_finish(&c->lines[rank][i], &c->scratch, label);
            put(c, way_of(c, i == 1), c->scratch.data, c->scratch.used);
        }
    }
}

void console_say(struct console *c, const char *text, size_t n)
{
    bool shares_terminal = c->err.outlet.is_terminal &&
                           (c->err.is_mid_line ||
                            (c->out.is_mid_line && c->out.outlet.is_terminal));
    if (shares_terminal) {
        put(c, &c->err, "\n", 1);
        c->out.is_mid_line = false;
    }
    put(c, &c->err, text, n);
}

void console_data(struct console *c, const void *bytes, size_t n)
{
    put(c, &c->out, bytes, n);
}

void console_live(struct console *c, const char *text, size_t n)
{
    if (!c->err.outlet.is_terminal || !outlet_is_drained(&c->err.outlet)) {
        return;
    }
    clear_live(c);
    if (text == NULL || n == 0) {
        return;
    }
    outlet_write(&c->err.outlet, text, n);
    c->is_live_shown = true;
}

bool console_has_terminal(const struct console *c)
{
    return c->err.outlet.is_terminal;
}

size_t console_width(const struct console *c)
{
    struct winsize size;
    if (c->err.outlet.is_terminal &&
        ioctl(c->err.outlet.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return WIDTH_DEFAULT;
}

bool console_is_drained(const struct console *c)
{
    return outlet_is_drained(&c->out.outlet) &&
           outlet_is_drained(&c->err.outlet);
}

int console_stdout_error(const struct console *c)
{
    return c->out.outlet.error;
}

void console_close(struct console *c)
{
    outlet_close(&c->out.outlet);
    outlet_close(&c->err.outlet);
}

static void release_way(struct exit_way *way)
{
    outlet_release(&way->outlet);
    free(way->marks.items);
}

void console_destroy(struct console *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t rank = 0; rank < c->rank_count; rank++) {
        for (size_t i = 0; c->lines[rank] != NULL && i < STREAM_COUNT; i++) {
            lines_release(&c->lines[rank][i]);
        }
        free(c->lines[rank]);
    }
    free(c->lines);
    release_way(&c->out);
    release_way(&c->err);
    gpul_buf_release(&c->scratch);
    free(c);
}
