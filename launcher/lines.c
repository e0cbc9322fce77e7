/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/lines.h"

#include <string.h>

#include "common/error.h"

enum { KEPT_BYTES = 4 << 10 };

void lines_init(struct lines *l)
{
    *l = (struct lines){0};
    gpul_buf_init(&l->held, LINES_HELD_BYTES_MAX + LINES_TORN_BYTES_MAX);
}

void lines_release(struct lines *l)
{
    gpul_buf_release(&l->held);
}

static const uint8_t *find(const uint8_t *at, const uint8_t *end, int byte)
{
    const uint8_t *found =
        at < end ? memchr(at, byte, (size_t)(end - at)) : NULL;
    return found != NULL ? found : end;
}

void lines_input_init(struct lines_input *input, const uint8_t *bytes, size_t n)
{
    *input =
        (struct lines_input){.at = bytes, .end = n > 0 ? bytes + n : bytes};
    input->newline = find(input->at, input->end, '\n');
}

/* The memory of a rare long line is not kept: there may be many ranks. */
static void forget(struct lines *l)
{
    if (l->held.capacity > KEPT_BYTES) {
        gpul_buf_release(&l->held);
    }
    gpul_buf_clear(&l->held);
    l->is_bar = l->is_returned = l->is_shown = l->is_given = false;
}

/* What is held goes out as a line; the memory is needed until the next call. */
static void give(struct lines *l, struct line *line)
{
    *line = (struct line){
        .text = l->held.data, .n = l->held.used, .is_shown = l->is_shown};
    l->is_given = true;
}

/* Would a cut before `next` tear what belongs together? */
static bool is_torn(const struct gpul_buf *held, uint8_t next)
{
    enum { ESC = 0x1b };
    size_t at = held->used;
    if ((next & 0xc0) == 0x80) {
        return true; /* UTF-8 */
    }
    while (at > 0 && held->used - at < LINES_TORN_BYTES_MAX &&
           held->data[at - 1] >= ' ' && held->data[at - 1] <= '?') {
        at--; /* parameters, or plain text */
    }
    if (at > 0 && held->data[at - 1] == '[') {
        at--;
    }
    return at > 0 && held->data[at - 1] == ESC;
}

/* Hold text up to `end`. True when the longest line is full: `at` is then
 * where the rest begins. */
static bool hold(struct lines *l, struct lines_input *input, const uint8_t *end,
                 int *rc)
{
    size_t n = (size_t)(end - input->at);
    if (n == 0) {
        return false;
    }
    if (l->is_returned) {
        gpul_buf_clear(&l->held);
        l->is_returned = false;
    }
    l->is_shown = false;
    size_t fits = l->held.used < LINES_HELD_BYTES_MAX
                      ? LINES_HELD_BYTES_MAX - l->held.used
                      : 0;
    size_t taken = n < fits ? n : fits;
    gpul_buf_append(&l->held, input->at, taken);
    while (taken < n && l->held.used < l->held.bytes_max &&
           is_torn(&l->held, input->at[taken])) {
        gpul_buf_append(&l->held, input->at + taken++, 1);
    }
    if (l->held.is_failed) {
        *rc = GPUL_ENOMEM;
        forget(l);
    }
    input->at += taken;
    return taken < n;
}

static void pass_newline(struct lines_input *input)
{
    input->at = input->newline + 1;
    input->newline = find(input->at, input->end, '\n');
}

/* A line that lies in the input as a whole is not copied. */
static bool give_whole(const struct lines *l, struct lines_input *input,
                       struct line *line)
{
    size_t n = (size_t)(input->newline - input->at);
    if (input->newline == input->end || n > LINES_HELD_BYTES_MAX ||
        (l->held.used > 0 && (!l->is_returned || n == 0))) {
        return false;
    }
    *line = (struct line){.text = input->at, .n = n};
    return true;
}

bool lines_next(struct lines *l, struct lines_input *input, struct line *line,
                int *rc)
{
    if (l->is_given) {
        forget(l);
    }
    while (input->at < input->end) {
        const uint8_t *stop = find(input->at, input->newline, '\r');
        if (stop == input->newline && give_whole(l, input, line)) {
            pass_newline(input);
            forget(l);
            return true;
        }
        if (hold(l, input, stop, rc)) {
            give(l, line);
            return true;
        }
        if (stop == input->end) {
            return false;
        }
        if (*stop == '\n') {
            pass_newline(input);
            give(l, line);
            return true;
        }
        input->at = stop + 1;
        l->is_bar = true;
        l->is_returned = l->held.used > 0;
    }
    return false;
}

static bool is_blank(const struct gpul_buf *text)
{
    for (size_t i = 0; i < text->used; i++) {
        if (text->data[i] != ' ') {
            return false;
        }
    }
    return true;
}

bool lines_finish(struct lines *l, struct line *line)
{
    bool has_line = !l->is_given && l->held.used > 0 &&
                    !(l->is_bar && (l->is_shown || is_blank(&l->held)));
    if (has_line) {
        give(l, line);
    } else {
        forget(l);
    }
    return has_line;
}

bool lines_bar(const struct lines *l, struct line *bar)
{
    if (!l->is_bar || l->is_given || is_blank(&l->held)) {
        return false;
    }
    *bar = (struct line){
        .text = l->held.data, .n = l->held.used, .is_shown = l->is_shown};
    return true;
}

void lines_mark_shown(struct lines *l)
{
    l->is_shown = true;
}
