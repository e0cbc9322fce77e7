/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

/* Length of the well-formed UTF-8 character at `s`, 0 if there is none; the
 * bounds of the second byte are those of the Unicode Standard, table 3-7.
 * A NUL is no continuation byte, so nothing is read past the terminator. */
static size_t character_bytes(const unsigned char *s)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n;
    if (s[0] < 0x80) {
        return 1;
    }
    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        n = 2;
    } else if (s[0] >= 0xe0 && s[0] <= 0xef) {
        n = 3;
        low = s[0] == 0xe0 ? 0xa0 : low;
        high = s[0] == 0xed ? 0x9f : high;
    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        n = 4;
        low = s[0] == 0xf0 ? 0x90 : low;
        high = s[0] == 0xf4 ? 0x8f : high;
    } else {
        return 0;
    }
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return n;
}

/* Bytes of the character at `s` if the kind allows it, else 0. */
static size_t allowed_bytes(const unsigned char *s, enum gpul_text_kind kind)
{
    if (kind == GPUL_TEXT_NAME) {
        return s[0] > 0x20 && s[0] < 0x7f;
    }
    size_t n = character_bytes(s);
    if (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) {
        bool is_layout = s[0] == '\n' || s[0] == '\t';
        return kind == GPUL_TEXT_LINES && is_layout;
    }
    /* U+0080 to U+009F are control characters too. */
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0 ? 0 : n;
}

bool gpul_text_is_valid(const char *text, enum gpul_text_kind kind)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s != 0) {
        size_t n = allowed_bytes(s, kind);
        if (n == 0) {
            return false;
        }
        s += n;
    }
    return true;
}

static void clean(char *text, size_t bytes_max, enum gpul_text_kind kind)
{
    size_t used = 0;
    while (text[used] != 0) {
        const unsigned char *s = (const unsigned char *)text + used;
        size_t n = allowed_bytes(s, kind);
        if (n == 0) {
            text[used] = '?';
            n = 1;
        }
        if (used + n > bytes_max) {
            break;
        }
        used += n;
    }
    text[used] = 0;
}

void gpul_text_clean(char *text, size_t bytes_max)
{
    clean(text, bytes_max, GPUL_TEXT_LINES);
}

void gpul_text_clean_line(char *text, size_t bytes_max)
{
    clean(text, bytes_max, GPUL_TEXT_LINE);
}
