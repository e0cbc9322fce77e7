/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of several ranks as lines for people: cut, labelled, stamped,
 * folded, progress bars kept readable, escape sequences made harmless. Pure.
 *
 * Two streams of each rank come in, up to two ways lead out (standard output
 * and standard error, or one where both are the same place). After each call
 * the caller takes what stands in logview_text of each way and clears it.
 *
 * Progress bars (updates by carriage return, see lines.h): where the caller
 * can redraw a line it shows logview_bars; elsewhere an update becomes a line
 * when its rank's last one is LOGVIEW_BAR_EVERY_MS old. The last is never
 * left out.
 */
#ifndef LAUNCHER_LOGVIEW_H
#define LAUNCHER_LOGVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum {
    LOGVIEW_WAYS = 2,
    LOGVIEW_STREAMS = 2, /* 0: standard output, 1: standard error */
    LOGVIEW_BAR_EVERY_MS = 1000,
    LOGVIEW_TICK_MS = 200, /* bars are looked at so often */
    LOGVIEW_TIME_BYTES = 32,
};

struct logview_way {
    bool is_terminal; /* shared by ranks: escape sequences are dropped */
    bool can_redraw;  /* bars are shown by the caller */
    bool is_folding;
};

struct logview_options {
    bool has_labels;
    uint32_t rank_count_max; /* ranks are below this */
    uint32_t voices;         /* so many of them come here */
    uint8_t way_of[LOGVIEW_STREAMS];
    struct logview_way ways[LOGVIEW_WAYS];
};

/* When something happens: on a clock that does not jump, and as text for the
 * lines' stamp ("" for none). */
struct logview_moment {
    uint64_t ms;
    char text[LOGVIEW_TIME_BYTES];
};

struct logview;

/* Errors: GPUL_ENOMEM. */
int logview_create(struct logview **out, const struct logview_options *options);
void logview_destroy(struct logview *v);

/* A rank has written n bytes, a frame's worth. Errors: GPUL_ENOMEM, and some
 * of them are in no line. */
int logview_feed(struct logview *v, uint32_t rank, uint8_t stream,
                 const uint8_t *bytes, size_t n,
                 const struct logview_moment *now);

/* What waits for a moment that has come. */
int logview_tick(struct logview *v, const struct logview_moment *now);

/* Lines that wait for others to say the same come out. */
int logview_hurry(struct logview *v, const struct logview_moment *now);

/* The ranks have ended: so do the lines and bars on this way. */
int logview_finish(struct logview *v, uint8_t way,
                   const struct logview_moment *now);

/* When logview_tick has something to do; UINT64_MAX: nothing ahead. */
uint64_t logview_deadline_ms(const struct logview *v);

/* What has come out. */
struct gpul_buf *logview_text(struct logview *v, uint8_t way);

/* Append one line for the bars of this way, at most so many columns: the bar
 * of the lowest rank, the ranks that have the same, and how many others there
 * are. Nothing where there is none, or no line can be redrawn. */
int logview_bars(const struct logview *v, uint8_t way, size_t columns,
                 struct gpul_buf *out);

#endif
