/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank's stream of output, cut into whole lines with a label before
 * each, so that the lines of many ranks can share one terminal. Pure.
 *
 * A carriage return ends a line too: the updates of a progress bar come out
 * below each other, since redrawing in place would wipe the label and mix
 * the ranks. CR LF is one end of line.
 */
#ifndef LAUNCHER_LINES_H
#define LAUNCHER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* A line longer than this is cut into several. */
enum { LINES_HELD_BYTES_MAX = 64 << 10 };

struct lines {
    struct gpul_buf held; /* the line that has no end yet */
    bool is_after_cr;
    bool has_printed_at_cr; /* that CR ended a line that was not empty */
};

void lines_init(struct lines *l);
void lines_release(struct lines *l);

/* Append to `out` the lines that n more bytes complete, each as label, text
 * and newline. Returns 0 or the failure of `out` or of holding the rest
 * (GPUL_ENOMEM, GPUL_ELIMIT). */
int lines_feed(struct lines *l, struct gpul_buf *out, const char *label,
               const uint8_t *bytes, size_t n);

/* The stream has ended: what is held comes out as a line. */
int lines_finish(struct lines *l, struct gpul_buf *out, const char *label);

#endif
