/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/probes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "coordinator/missing.h"

enum { RANGES_SHOWN_MAX = 10 };

int probes_init(struct probes *p, uint32_t count)
{
    *p = (struct probes){.count = count};
    p->steps = calloc(count, sizeof(*p->steps));
    p->words = calloc(count, sizeof(*p->words));
    return p->steps != NULL && p->words != NULL ? 0 : GPUL_ENOMEM;
}

void probes_release(struct probes *p)
{
    for (uint32_t i = 0; p->words != NULL && i < p->count; i++) {
        free(p->words[i]);
    }
    free(p->words);
    free(p->steps);
    *p = (struct probes){0};
}

bool probes_pass(struct probes *p, uint32_t rank, enum probes_step step)
{
    assert(rank < p->count && step < PROBES_STEP_COUNT);
    if (p->steps[rank] >= step) {
        return false;
    }
    while (p->steps[rank] < step) {
        p->steps[rank]++;
        p->passed[p->steps[rank]]++;
    }
    return true;
}

int probes_say(struct probes *p, uint32_t rank, const char *words)
{
    size_t n = strlen(words);
    if (n > PROBES_WORDS_BYTES_MAX) {
        n = text_whole_bytes(words, PROBES_WORDS_BYTES_MAX);
    }
    char *copy = realloc(p->words[rank], n + 1);
    if (copy == NULL) {
        return GPUL_ENOMEM;
    }
    memcpy(copy, words, n);
    copy[n] = 0;
    p->words[rank] = copy;
    return 0;
}

/* ---- who is missing ---- */

struct gap {
    const struct probes *probes;
    const struct facts *facts;
    probes_lack_fn lacks;
    const void *arg;
    struct text ranges; /* "3,8-9" */
    uint32_t range_count;
    uint32_t rank_count;
    uint32_t left_out; /* ranks beyond the ranges shown */
    uint32_t first_rank;
};

static void add_range(struct gap *gap, uint32_t first, uint32_t end)
{
    if (gap->rank_count == 0) {
        gap->first_rank = first;
    }
    gap->rank_count += end - first;
    if (gap->range_count == RANGES_SHOWN_MAX) {
        gap->left_out += end - first;
        return;
    }
    text_append(&gap->ranges, "%s%u", gap->range_count > 0 ? "," : "", first);
    if (end - first > 1) {
        text_append(&gap->ranges, "-%u", end - 1);
    }
    gap->range_count++;
}

static void find_ranges(struct gap *gap)
{
    const struct probes *p = gap->probes;
    for (uint32_t rank = 0; rank < p->count;) {
        uint32_t end = rank;
        while (end < p->count && gap->lacks(p, end, gap->arg)) {
            end++;
        }
        if (end > rank) {
            add_range(gap, rank, end);
        }
        rank = end + 1;
    }
}

static bool has_gap(const struct roster *r, uint32_t node_rank, const void *arg)
{
    const struct gap *gap = arg;
    uint32_t first = gap->facts->first_ranks[node_rank];
    uint32_t end = gap->facts->first_ranks[node_rank + 1];
    (void)r;
    while (first < end && !gap->lacks(gap->probes, first, gap->arg)) {
        first++;
    }
    return first < end;
}

static void append_device(struct text *out, const char *before,
                          const struct facts *facts, uint32_t rank)
{
    const char *uuid = facts_uuid(facts, rank);
    if (uuid[0] != 0) {
        text_append(out, "%sdevice %s", before, uuid);
    }
}

static void describe_one(struct text *out, const struct gap *gap,
                         const char *names)
{
    text_format(out, "rank %u (node %s", gap->first_rank, names);
    append_device(out, ", ", gap->facts, gap->first_rank);
    text_append(out, ")");
}

static void describe_many(struct text *out, const struct gap *gap,
                          const char *names, uint32_t node_count)
{
    text_format(out, "ranks %s", gap->ranges.bytes);
    if (gap->left_out > 0) {
        text_append(out, " and %u more", gap->left_out);
    }
    text_append(out, " (%s %s)", node_count == 1 ? "node" : "nodes", names);
}

static void append_words(struct text *out, const struct gap *gap)
{
    const char *words = gap->probes->words[gap->first_rank];
    if (words == NULL) {
        return;
    }
    if (gap->rank_count == 1) {
        text_append(out, "; it said last: %s", words);
    } else {
        text_append(out, "; rank %u", gap->first_rank);
        append_device(out, ", ", gap->facts, gap->first_rank);
        text_append(out, ", said last: %s", words);
    }
}

void probes_missing(struct text *out, const struct probes *p,
                    const struct facts *facts, const struct roster *r,
                    probes_lack_fn lacks, const void *arg)
{
    struct text names;
    struct gap gap = {.probes = p, .facts = facts, .lacks = lacks, .arg = arg};
    find_ranges(&gap);
    uint32_t node_count = missing_names(&names, r, has_gap, &gap);
    if (gap.rank_count == 1) {
        describe_one(out, &gap, names.bytes);
    } else {
        describe_many(out, &gap, names.bytes, node_count);
    }
    append_words(out, &gap);
}
