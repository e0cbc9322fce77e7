/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a reader that takes nothing is waited for. Pure.
 */
#ifndef LAUNCHER_PATIENCE_H
#define LAUNCHER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* One that reads slowly has time without end: each byte gives it all of the
 * limit anew. */
struct patience {
    uint32_t limit_ms;
    uint64_t written;     /* at the last look */
    uint64_t deadline_ms; /* UINT64_MAX: nobody is waited for */
};

void patience_init(struct patience *p, uint32_t limit_ms);

/* Of `written` bytes ever, and more that wait if `is_waiting`. True: nothing
 * has been taken for the limit. The first look starts it. */
bool patience_look(struct patience *p, bool is_waiting, uint64_t written,
                   uint64_t now_ms);

#endif
