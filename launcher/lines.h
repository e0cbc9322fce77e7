/* SPDX-License-Identifier: Apache-2.0
 *
 * One stream of one rank, cut into whole lines, so that the lines of many
 * ranks can share one place. Pure.
 *
 * A carriage return means what it does on a terminal: the text behind it
 * stands in place of the text before it. So a line's text is what follows
 * the last carriage return before its newline, and the updates of a progress
 * bar are no lines: the newest is the stream's bar, for the caller to look
 * at when it likes. CR LF is one end of line.
 */
#ifndef LAUNCHER_LINES_H
#define LAUNCHER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* A line longer than this is cut into several; a little later where that would
 * tear a character or a colour, which are bytes of harm by themselves. */
enum { LINES_HELD_BYTES_MAX = 64 << 10, LINES_TORN_BYTES_MAX = 96 };

struct lines {
    struct gpul_buf held; /* the line that has no end yet */
    bool is_bar;          /* a carriage return stands before or behind it */
    bool is_returned;     /* behind it: the next text takes its place */
    bool is_shown;        /* the caller has shown it as a bar, as it is */
    bool is_given;        /* it went out with the line given last */
};

/* Bytes on their way through lines_next. */
struct lines_input {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *newline; /* the first from `at` on, or `end` */
};

/* A line without its end. The text is that of the input or of `lines`, and
 * good until the next call. */
struct line {
    const uint8_t *text;
    size_t n;
    bool is_shown; /* as a bar, already */
};

void lines_init(struct lines *l);
void lines_release(struct lines *l);

void lines_input_init(struct lines_input *input, const uint8_t *bytes,
                      size_t n);

/* The next line that the input completes, and true; false when the input is
 * used up and the rest of it is held. Without memory for that (*rc is
 * GPUL_ENOMEM) bytes are lost. *rc is left alone otherwise. */
bool lines_next(struct lines *l, struct lines_input *input, struct line *line,
                int *rc);

/* The stream has ended: true if what is held makes a last line. */
bool lines_finish(struct lines *l, struct line *line);

/* The newest update of a progress bar, and true; false where there is none,
 * or it is blank. */
bool lines_bar(const struct lines *l, struct line *bar);

/* The bar as it is has been shown. */
void lines_mark_shown(struct lines *l);

#endif
