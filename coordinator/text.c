/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_continuation(char c)
{
    return ((unsigned char)c & 0xC0u) == 0x80u;
}

size_t text_whole_bytes(const char *bytes, size_t n)
{
    while (n > 0 && is_continuation(bytes[n])) {
        n--;
    }
    return n;
}

void text_vformat(struct text *t, const char *format, va_list args)
{
    /* One byte more than may stay tells whether the cut splits a character. */
    char longer[sizeof(t->bytes) + 1];
    int n = vsnprintf(longer, sizeof(longer), format, args);
    size_t kept = n < 0 ? 0 : (size_t)n;
    if (kept > GPUL_TEXT_BYTES_MAX) {
        kept = text_whole_bytes(longer, GPUL_TEXT_BYTES_MAX);
    }
    for (size_t i = 0; i < kept; i++) {
        t->bytes[i] = longer[i];
    }
    t->bytes[kept] = 0;
}

void text_format(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vformat(t, format, args);
    va_end(args);
}

void text_append(struct text *t, const char *format, ...)
{
    struct text added;
    va_list args;
    va_start(args, format);
    text_vformat(&added, format, args);
    va_end(args);
    size_t used = strlen(t->bytes);
    size_t kept = strlen(added.bytes);
    if (kept > GPUL_TEXT_BYTES_MAX - used) {
        kept = text_whole_bytes(added.bytes, GPUL_TEXT_BYTES_MAX - used);
    }
    memcpy(t->bytes + used, added.bytes, kept);
    t->bytes[used + kept] = 0;
}

char *text_copy(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    if (copy != NULL) {
        memcpy(copy, text, n);
    }
    return copy;
}

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
uint64_t text_hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *text != 0; text++) {
        h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return h;
}
