/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/stopped.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

enum { WORD_BITS = 64 };

int stopped_reset(struct stopped *s, uint32_t world_size)
{
    stopped_release(s);
    s->bits = calloc(world_size / WORD_BITS + 1, sizeof(*s->bits));
    s->world_size = s->bits != NULL ? world_size : 0;
    return s->bits != NULL ? 0 : GPUL_ENOMEM;
}

void stopped_release(struct stopped *s)
{
    free(s->bits);
    *s = (struct stopped){0};
}

static bool has(const struct stopped *s, uint32_t rank)
{
    return rank < s->world_size &&
           ((s->bits[rank / WORD_BITS] >> (rank % WORD_BITS)) & 1u) != 0;
}

void stopped_add(struct stopped *s, uint32_t rank)
{
    if (rank < s->world_size && !has(s, rank)) {
        s->bits[rank / WORD_BITS] |= UINT64_C(1) << (rank % WORD_BITS);
        s->count++;
    }
}

/* The last of those that begin with `first`. */
static uint32_t range_end(const struct stopped *s, uint32_t first)
{
    uint32_t last = first;
    while (has(s, last + 1)) {
        last++;
    }
    return last;
}

void stopped_format(const struct stopped *s,
                    char text[GPUL_STOPPED_RANKS_BYTES_MAX + 1])
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t rank = 0; rank < s->world_size; rank++) {
        char range[32];
        if (!has(s, rank)) {
            continue;
        }
        uint32_t last = range_end(s, rank);
        int n = snprintf(range, sizeof(range), last > rank ? "%s%u-%u" : "%s%u",
                         used > 0 ? "," : "", rank, last);
        if (used + (size_t)n > GPUL_STOPPED_RANKS_BYTES_MAX) {
            return;
        }
        memcpy(text + used, range, (size_t)n + 1);
        used += (size_t)n;
        rank = last;
    }
}
