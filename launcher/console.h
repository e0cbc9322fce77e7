/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's standard output and standard error: the ranks' output, byte by
 * byte or as lines (see logview.h), our own messages, and one live line on a
 * terminal. Edge.
 *
 * Credit for a rank's bytes is given back when all that stood before them
 * has been written, so memory is bounded by the nodes' output windows and a
 * slow reader slows the ranks down, not the launcher. What a full reader does
 * not take waits as the ranks wrote it: labels and stamps are added when
 * there is room. Bytes of a line that has no end yet, or that waits to be
 * folded, are credited as well: they are bounded by themselves.
 */
#ifndef LAUNCHER_CONSOLE_H
#define LAUNCHER_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "common/rankset.h"
#include "gpulaunch.pb-c.h"

struct console;

enum console_when {
    CONSOLE_AUTO = 0,
    CONSOLE_ALWAYS = 1,
    CONSOLE_NEVER = 2,
};

/* Without labels and stamps bytes pass as they are. */
struct console_options {
    enum console_when labels;    /* auto: where several ranks are shown */
    enum console_when folding;   /* of labelled lines; auto: on a terminal */
    bool has_stamps;             /* the time before each line */
    bool sends_stdout_to_stderr; /* standard output is for asked-for data */
    uint32_t rank_count_max;     /* ranks from here on are ignored */
    /* The ranks that are shown, kept by the caller; NULL: all. */
    const struct gpul_rankset *shown;
};

struct console_handlers {
    /* `bytes` of this node's output have left. */
    void (*on_credit)(void *arg, uint32_t node_rank, uint64_t bytes);
    /* Queued bytes went out, or a stream ended. */
    void (*on_progress)(void *arg);
};

/* Write to these two descriptors, which stay the caller's. Errors:
 * GPUL_ENOMEM. */
int console_create(struct console **out, uv_loop_t *loop, int stdout_fd,
                   int stderr_fd, const struct console_handlers *handlers,
                   void *arg, struct gpul_error *err);

/* Before the first output. Without memory for lines bytes pass as they are. */
void console_configure(struct console *c,
                       const struct console_options *options);

/* A rank's output, to where it belongs; that of a rank which is not shown
 * counts as written. */
void console_output(struct console *c, const Gpul__Output *output);

/* Lines without an end come out now: the ranks have ended. */
void console_finish_lines(struct console *c);

/* The job is being stopped: from now on a terminal that is far behind gets
 * the end of the output, and a line that says so. */
void console_hasten(struct console *c);

/* Our own text to standard error: whole lines. */
void console_say(struct console *c, const char *text, size_t n);

/* Asked-for data to standard output. */
void console_data(struct console *c, const void *bytes, size_t n);

/* Show or replace the live line; NULL takes it away. Nothing happens where
 * standard error is no terminal. Other output takes it away by itself. */
void console_live(struct console *c, const char *text, size_t n);

bool console_has_terminal(const struct console *c);

/* Is it one that can redraw a line? */
bool console_can_redraw(const struct console *c);

/* Columns of the terminal, 80 if unknown. */
size_t console_width(const struct console *c);

/* Where both streams are one place, all goes by the first. */
enum console_stream { CONSOLE_STDOUT = 0, CONSOLE_STDERR = 1 };

/* Bytes that wait for their reader, and bytes that have ever gone. */
uint64_t console_waiting_bytes(const struct console *c,
                               enum console_stream stream);
uint64_t console_written(const struct console *c, enum console_stream stream);

/* Drop what waits, and what comes later: nobody reads it. Its credit is given.
 * Returns the bytes that waited. */
uint64_t console_give_up(struct console *c, enum console_stream stream);

/* Has everything been written (or given up)? */
bool console_is_drained(const struct console *c);

/* errno that ended standard output, 0 while it lives. */
int console_stdout_error(const struct console *c);

/* Stop at once, losing what is queued; then, after the loop has ended,
 * destroy. */
void console_close(struct console *c);
void console_destroy(struct console *c);

#endif
