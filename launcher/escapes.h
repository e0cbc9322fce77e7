/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one rank's output harmless for a terminal that other ranks write to
 * as well. Pure.
 *
 * What passes: text, tab, newline, carriage return, and colours (SGR, "ESC [
 * digits m"). What is dropped: every other escape sequence (cursor, erasing,
 * modes, alternate screen, title and other strings), and control characters.
 * A stray byte of the C1 range becomes '?'; other bytes that are no UTF-8
 * pass. The terminal is taken to be one of UTF-8.
 *
 * A sequence that is broken off by a newline or a carriage return ends there,
 * so that it cannot swallow the lines behind it.
 *
 * Source: ECMA-48 (5.4, 8.3.117) and the parser of
 * https://vt100.net/emu/dec_ansi_parser.
 */
#ifndef LAUNCHER_ESCAPES_H
#define LAUNCHER_ESCAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* Parameters of a colour longer than this: no colour that exists. */
enum { ESCAPES_PARAMETER_BYTES_MAX = 64 };

struct escapes {
    uint8_t state;      /* enum in escapes.c; 0: plain text */
    uint8_t tail;       /* bytes that the UTF-8 character still lacks */
    bool is_after_c2;   /* C2 80 to C2 9F are control characters */
    uint8_t kept_count; /* of a sequence that may be a colour */
    uint8_t kept[ESCAPES_PARAMETER_BYTES_MAX];
};

void escapes_init(struct escapes *e);

/* Append what is left of n more bytes; however a stream is cut into pieces,
 * the same bytes come out. Returns 0 or the failure of `out`. */
int escapes_feed(struct escapes *e, struct gpul_buf *out, const uint8_t *bytes,
                 size_t n);

/* How many of these n bytes, which came out of escapes_feed, fit into so many
 * columns of a line; whole characters and colours only. */
size_t escapes_fit(const uint8_t *text, size_t n, size_t columns);

#endif
