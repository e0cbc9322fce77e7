/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/notices.h"

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *text != 0; text++) {
        h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return h;
}

bool notices_is_new(struct notices *n, const char *text)
{
    uint64_t h = hash(text);
    for (size_t i = 0; i < n->count; i++) {
        if (n->said[i] == h) {
            return false;
        }
    }
    if (n->count == NOTICES_MAX) {
        return false;
    }
    n->said[n->count++] = h;
    return true;
}
