/* SPDX-License-Identifier: Apache-2.0
 *
 * What a string of the wire may hold. Everything that may be shown to a
 * person is UTF-8 without control characters, so no peer can move a cursor,
 * forge a line of a log or split a name. Pure.
 */
#ifndef GPUL_PROTO_TEXT_H
#define GPUL_PROTO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum gpul_text_kind {
    GPUL_TEXT_NAME = 1,  /* graphic ASCII, no space: names, literals */
    GPUL_TEXT_LINE = 2,  /* UTF-8, no control characters */
    GPUL_TEXT_LINES = 3, /* the same, newline and tab allowed */
};

/* Does `text` (NUL-terminated) hold only what the kind allows? */
bool gpul_text_is_valid(const char *text, enum gpul_text_kind kind);

/* Make a valid LINES text of any bytes, in place: each byte that may not
 * stand becomes '?', and what is over `bytes_max` is cut off between two
 * characters. For file names and system texts on their way into a message. */
void gpul_text_clean(char *text, size_t bytes_max);

/* The same for a LINE: newlines and tabs become '?' too. */
void gpul_text_clean_line(char *text, size_t bytes_max);

#endif
