/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/put.h"

#include <string.h>

char *put_bytes(char *out, const char *bytes, size_t n)
{
    memcpy(out, bytes, n);
    return out + n;
}

char *put_text(char *out, const char *text)
{
    return put_bytes(out, text, strlen(text));
}

size_t put_u32_bytes(uint32_t value)
{
    size_t n = 1;
    for (; value > 9; value /= 10) {
        n++;
    }
    return n;
}

char *put_u32(char *out, uint32_t value)
{
    char *end = out + put_u32_bytes(value);
    char *p = end;
    do {
        *--p = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}
