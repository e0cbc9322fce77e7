/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/remains.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/text.h"

static void mark(struct remains *r, uint32_t generation, uint32_t first_rank,
                 uint32_t rank_count)
{
    r->cleanup.generation = generation;
    r->cleanup.first_rank = first_rank;
    r->cleanup.rank_count = rank_count;
}

void remains_init(struct remains *r, const char *job_id,
                  const struct keeper_packet *state)
{
    memset(r, 0, sizeof(*r));
    snprintf(r->cleanup.job_id, sizeof(r->cleanup.job_id), "%s", job_id);
    r->cleanup.since_ticks = cleanup_start_ticks(getppid());
    mark(r, state->generation, state->first_rank, state->rank_count);
}

void remains_begin(struct remains *r, uint32_t generation, uint32_t first_rank,
                   uint32_t rank_count)
{
    r->count = 0;
    mark(r, generation, first_rank, rank_count);
}

void remains_add(struct remains *r, const char *text)
{
    if (r->count < GPUL_UNCLEAN_MAX) {
        char *line = r->text[r->count];
        snprintf(line, sizeof(r->text[0]), "%s", text);
        gpul_text_clean(line, GPUL_UNCLEAN_BYTES_MAX);
        r->list[r->count++] = line;
    }
}

void remains_bury(struct remains *r)
{
    if (r->cleanup.generation == 0) {
        return;
    }
    size_t left = cleanup_run(&r->cleanup, CLEANUP_BOUND_MS);
    if (left > 0) {
        char text[64];
        snprintf(text, sizeof(text), "%zu process%s of this job", left,
                 left == 1 ? "" : "es");
        remains_add(r, text);
    }
}
