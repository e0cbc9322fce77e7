/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's standard output and standard error: the ranks' output, labelled
 * or byte by byte, our own messages, and one live line on a terminal. Edge.
 *
 * Credit for a rank's bytes is given back when all that stood before them
 * has been written, so memory is bounded by the nodes' output windows and a
 * slow reader slows the ranks down, not the launcher. Bytes of a line that
 * has no end yet are credited as well: they are bounded by themselves.
 */
#ifndef LAUNCHER_CONSOLE_H
#define LAUNCHER_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "gpulaunch.pb-c.h"

struct console;

struct console_options {
    bool has_labels;             /* "[rank] " before each line */
    bool sends_stdout_to_stderr; /* standard output is for asked-for data */
    uint32_t rank_count_max;     /* ranks from here on are ignored */
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

/* Before the first output. */
void console_configure(struct console *c,
                       const struct console_options *options);

/* A rank's output, to where it belongs. */
void console_output(struct console *c, const Gpul__Output *output);

/* Lines without an end come out now: the ranks have ended. */
void console_finish_lines(struct console *c);

/* Our own text to standard error: whole lines. */
void console_say(struct console *c, const char *text, size_t n);

/* Asked-for data to standard output. */
void console_data(struct console *c, const void *bytes, size_t n);

/* Show or replace the live line; NULL takes it away. Nothing happens where
 * standard error is no terminal. Other output takes it away by itself. */
void console_live(struct console *c, const char *text, size_t n);

bool console_has_terminal(const struct console *c);

/* Columns of the terminal, 80 if unknown. */
size_t console_width(const struct console *c);

/* Has everything been written (or given up)? */
bool console_is_drained(const struct console *c);

/* errno that ended standard output, 0 while it lives. */
int console_stdout_error(const struct console *c);

/* Stop at once, losing what is queued; then, after the loop has ended,
 * destroy. */
void console_close(struct console *c);
void console_destroy(struct console *c);

#endif
