/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a console, shared by its two files: console.c (its life and
 * what it is told) and console_ways.c (how things get out). Edge.
 */
#ifndef LAUNCHER_CONSOLE_INTERNAL_H
#define LAUNCHER_CONSOLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "launcher/backlog.h"
#include "launcher/console.h"
#include "launcher/ledger.h"
#include "launcher/logview.h"
#include "launcher/outlet.h"

enum {
    CONSOLE_OUT = 0, /* ways, and streams */
    CONSOLE_ERR = 1,
    CONSOLE_LIVE_BYTES_MAX = 64 << 10,
};

struct exit_way {
    struct outlet outlet;
    struct ledger ledger;
    struct backlog backlog;
    bool is_mid_line; /* the last byte was no newline */
    uint64_t left_out_bytes;
};

struct console {
    struct exit_way ways[LOGVIEW_WAYS];
    bool is_one_place; /* both streams leave by ways[OUT] */
    bool is_hasty;
    struct console_options options;
    struct console_handlers handlers;
    void *arg;
    struct logview *view;  /* NULL: bytes pass as they are */
    uv_timer_t timer;      /* of the view */
    struct exit_way *live; /* where a live line is shown; NULL: none is */
    struct gpul_buf bars;  /* the live line, if it is one of bars */
};

/* Out at once, or when what stands before it has gone and there is room. */
void console_enqueue(struct console *c, struct exit_way *way,
                     const struct backlog_item *item);

/* As much of the backlog as there is room for, or all of it. */
void console_pump(struct console *c, struct exit_way *way, bool is_forced);

/* Of a terminal that is behind while the job is being stopped: all but the
 * end. */
void console_leave_out(struct console *c, struct exit_way *way);

/* The lines on this way end. */
void console_finish_way(struct console *c, struct exit_way *way);

/* The live line, of which there is one at a time. */
void console_show_live(struct console *c, struct exit_way *way,
                       const void *text, size_t n);
void console_clear_live(struct console *c);

size_t console_way_width(const struct exit_way *way);

#endif
