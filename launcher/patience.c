/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/patience.h"

void patience_init(struct patience *p, uint32_t limit_ms)
{
    *p = (struct patience){.limit_ms = limit_ms, .deadline_ms = UINT64_MAX};
}

bool patience_look(struct patience *p, bool is_waiting, uint64_t written,
                   uint64_t now_ms)
{
    bool is_new = p->deadline_ms == UINT64_MAX || p->written != written;
    p->written = written;
    if (!is_waiting) {
        p->deadline_ms = UINT64_MAX;
        return false;
    }
    if (is_new) {
        p->deadline_ms = now_ms + p->limit_ms;
    }
    return now_ms >= p->deadline_ms;
}
