/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/notices.h"

#include "coordinator/text.h"

bool notices_is_new(struct notices *n, const char *text)
{
    uint64_t h = text_hash(text);
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
