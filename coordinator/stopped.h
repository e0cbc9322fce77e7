/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks that ended because they were told to stop. Pure.
 */
#ifndef COORDINATOR_STOPPED_H
#define COORDINATOR_STOPPED_H

#include <stdint.h>

#include "proto/limits.h"

struct stopped {
    uint64_t *bits; /* by rank; owned */
    uint32_t world_size;
    uint32_t count;
};

/* None of so many ranks. Errors: GPUL_ENOMEM, there is no set then. */
int stopped_reset(struct stopped *s, uint32_t world_size);
void stopped_release(struct stopped *s);

/* Twice is fine. */
void stopped_add(struct stopped *s, uint32_t rank);

/* As ranges, "0,3-5"; those that find no room are left out. */
void stopped_format(const struct stopped *s,
                    char text[GPUL_STOPPED_RANKS_BYTES_MAX + 1]);

#endif
