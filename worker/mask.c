/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

bool mask_has(const uint64_t *mask, size_t words, uint32_t number)
{
    return number / WORD_BITS < words &&
           (mask[number / WORD_BITS] >> (number % WORD_BITS) & 1) != 0;
}

void mask_add(uint64_t *mask, size_t words, uint32_t number)
{
    if (number / WORD_BITS < words) {
        mask[number / WORD_BITS] |= UINT64_C(1) << (number % WORD_BITS);
    }
}

void mask_join(uint64_t *mask, const uint64_t *other, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        mask[i] |= other[i];
    }
}

void mask_meet(uint64_t *mask, const uint64_t *other, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        mask[i] &= other[i];
    }
}

bool mask_is_empty(const uint64_t *mask, size_t words)
{
    return mask_count(mask, words) == 0;
}

size_t mask_count(const uint64_t *mask, size_t words)
{
    size_t count = 0;
    for (size_t i = 0; i < words; i++) {
        for (uint64_t rest = mask[i]; rest != 0; rest &= rest - 1) {
            count++; /* a bit less each time */
        }
    }
    return count;
}

/* ---- text ---------------------------------------------------------------- */

/* Digits only: strtoul would take spaces and signs. */
static bool read_number(const char **at, unsigned long *number)
{
    char *end;
    if (**at < '0' || **at > '9') {
        return false;
    }
    errno = 0;
    *number = strtoul(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static bool add_range(uint64_t *mask, size_t words, const char **at)
{
    unsigned long first;
    if (!read_number(at, &first)) {
        return false;
    }
    unsigned long last = first;
    if (**at == '-') {
        (*at)++;
        if (!read_number(at, &last) || last < first) {
            return false;
        }
    }
    for (unsigned long n = first; n <= last && n < words * WORD_BITS; n++) {
        mask_add(mask, words, (uint32_t)n);
    }
    return true;
}

bool mask_parse(uint64_t *mask, size_t words, const char *text)
{
    memset(mask, 0, words * sizeof(*mask));
    if (text[0] == 0 || strcmp(text, "\n") == 0) {
        return true;
    }
    bool is_good = add_range(mask, words, &text);
    while (is_good && *text == ',') {
        text++;
        is_good = add_range(mask, words, &text);
    }
    if (!is_good || (*text != 0 && strcmp(text, "\n") != 0)) {
        memset(mask, 0, words * sizeof(*mask));
        return false;
    }
    return true;
}

int mask_format(struct gpul_buf *out, const uint64_t *mask, size_t words)
{
    const char *comma = "";
    int rc = 0;
    for (uint32_t first = 0; first < words * WORD_BITS; first++) {
        if (!mask_has(mask, words, first)) {
            continue;
        }
        uint32_t last = first;
        while (mask_has(mask, words, last + 1)) {
            last++;
        }
        rc = last > first ? gpul_buf_appendf(out, "%s%u-%u", comma, first, last)
                          : gpul_buf_appendf(out, "%s%u", comma, first);
        comma = ",";
        first = last;
    }
    return rc;
}
