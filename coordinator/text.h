/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences for people, within the wire's bound on texts. Pure.
 */
#ifndef COORDINATOR_TEXT_H
#define COORDINATOR_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

struct text {
    char bytes[GPUL_TEXT_BYTES_MAX + 1];
};

/* Format into `t`. What does not fit is cut between two characters, since a
 * text that is not UTF-8 would be refused by its reader. */
void text_format(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_vformat(struct text *t, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Format behind what `t` holds; cut likewise. */
void text_append(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How many of the first `n` bytes of a UTF-8 string of at least n bytes make
 * whole characters. */
size_t text_whole_bytes(const char *bytes, size_t n);

/* A copy on the heap, to be freed; NULL without memory. */
char *text_copy(const char *text);

/* To tell texts apart without keeping them; equal for equal texts. */
uint64_t text_hash(const char *text);

/* The generated structs know no const; encoding only reads what it is given.
 */
static inline char *wire_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

#endif
