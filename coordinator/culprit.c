/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/culprit.h"

#include "common/units.h"
#include "coordinator/missing.h"

enum { RANGES_SHOWN_MAX = 10, DURATION_BYTES = 32 };

/* A state counts from this part of the phase on: what has just begun holds up
 * nobody. */
enum { LONG_PART = 4 };

/* ---- the choice ---- */

/* The smaller, the more suspicious. */
struct suspect {
    enum culprit_kind kind;
    uint32_t progress;
    uint32_t stage;
};

static uint64_t since_ms(const struct culprit_case *c, uint32_t rank)
{
    const struct probes_report *report = &c->probes->reports[rank];
    uint64_t ms = report->since_ms + (c->now_ms - report->heard_ms);
    return ms < c->elapsed_ms ? ms : c->elapsed_ms;
}

static enum culprit_kind kind_of(const struct culprit_case *c, uint32_t rank)
{
    const struct probes_report *report = &c->probes->reports[rank];
    bool is_long = since_ms(c, rank) >= c->elapsed_ms / LONG_PART;
    if (report->state == GPUL__PROBE_PHASE__STATE__STATE_STOPPED) {
        return CULPRIT_STOPPED;
    }
    if (c->now_ms - report->heard_ms > c->silence_ms) {
        return CULPRIT_SILENT;
    }
    switch (report->state) {
    case GPUL__PROBE_PHASE__STATE__STATE_INSIDE:
        return is_long ? CULPRIT_INSIDE : CULPRIT_WAITS;
    case GPUL__PROBE_PHASE__STATE__STATE_DEAF:
        return CULPRIT_DEAF;
    case GPUL__PROBE_PHASE__STATE__STATE_WORKS:
        return is_long ? CULPRIT_WORKS : CULPRIT_WAITS;
    case GPUL__PROBE_PHASE__STATE__STATE_WAITS:
        return CULPRIT_WAITS;
    default:
        return CULPRIT_UNKNOWN;
    }
}

/* How far a silent one has come since is not known. */
static struct suspect judge(const struct culprit_case *c, uint32_t rank)
{
    struct suspect s = {.kind = kind_of(c, rank)};
    if (s.kind > CULPRIT_SILENT && s.kind != CULPRIT_UNKNOWN) {
        s.progress = c->probes->reports[rank].progress;
    }
    /* Nothing is known against one whose NCCL logs elsewhere. */
    if (s.kind == CULPRIT_WAITS) {
        s.stage = c->probes->reports[rank].stage - 1;
    }
    return s;
}

static int compare(const struct suspect *a, const struct suspect *b)
{
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (a->progress != b->progress) {
        return a->progress < b->progress ? -1 : 1;
    }
    return a->stage == b->stage ? 0 : a->stage < b->stage ? -1 : 1;
}

/* ---- the ranks that are named ---- */

struct gap {
    const struct culprit_case *c;
    struct suspect worst;
    uint32_t missing_count; /* named or not */
    bool is_by_stage;       /* others of the same step are further in NCCL */
    struct text ranges;     /* "3,8-9" */
    uint32_t range_count;
    uint32_t rank_count;
    uint32_t left_out; /* ranks beyond the ranges shown */
    uint32_t first_rank;
};

static void find_worst(struct gap *gap)
{
    const struct culprit_case *c = gap->c;
    for (uint32_t rank = 0; rank < c->probes->count; rank++) {
        if (!c->lacks(c->probes, rank, c->arg)) {
            continue;
        }
        struct suspect s = judge(c, rank);
        if (gap->missing_count++ == 0 || compare(&s, &gap->worst) < 0) {
            gap->worst = s;
        }
    }
}

/* Does only NCCL's stage tell the worst from some others? */
static bool needs_stage(const struct gap *gap)
{
    const struct culprit_case *c = gap->c;
    for (uint32_t rank = 0; rank < c->probes->count; rank++) {
        if (!c->lacks(c->probes, rank, c->arg)) {
            continue;
        }
        struct suspect s = judge(c, rank);
        if (s.kind == gap->worst.kind && s.progress == gap->worst.progress &&
            s.stage > gap->worst.stage) {
            return true;
        }
    }
    return false;
}

static bool is_named(const struct gap *gap, uint32_t rank)
{
    const struct culprit_case *c = gap->c;
    if (!c->lacks(c->probes, rank, c->arg)) {
        return false;
    }
    struct suspect s = judge(c, rank);
    return compare(&s, &gap->worst) == 0;
}

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
    const struct probes *p = gap->c->probes;
    for (uint32_t rank = 0; rank < p->count;) {
        uint32_t end = rank;
        while (end < p->count && is_named(gap, end)) {
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
    uint32_t first = gap->c->facts->first_ranks[node_rank];
    uint32_t end = gap->c->facts->first_ranks[node_rank + 1];
    (void)r;
    while (first < end && !is_named(gap, first)) {
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
    append_device(out, ", ", gap->c->facts, gap->first_rank);
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

/* ---- the sentence ---- */

static void append_one_state(struct text *out, const struct gap *gap)
{
    const struct probes_report *report =
        &gap->c->probes->reports[gap->first_rank];
    char duration[DURATION_BYTES];
    gpul_format_duration(duration, since_ms(gap->c, gap->first_rank));
    switch (gap->worst.kind) {
    case CULPRIT_STOPPED:
        text_append(out, ", whose process is stopped");
        return;
    case CULPRIT_SILENT:
        gpul_format_duration(duration, gap->c->now_ms - report->heard_ms);
        text_append(out, ", which has said nothing for %s", duration);
        return;
    case CULPRIT_INSIDE:
        text_append(out, ", inside %s for %s",
                    report->call != NULL ? report->call : "a library",
                    duration);
        return;
    case CULPRIT_DEAF:
        text_append(out, ", whose device does not answer");
        return;
    case CULPRIT_WORKS:
        text_append(out, ", at work on the host for %s", duration);
        return;
    case CULPRIT_WAITS:
        if (gap->missing_count > 1) {
            text_append(out, gap->is_by_stage
                                 ? ", whose NCCL is behind that of the others"
                                 : ", which is behind the others");
        }
        return;
    default:
        return;
    }
}

static void append_their_state(struct text *out, const struct gap *gap)
{
    static const char *const states[] = {
        [CULPRIT_STOPPED] = ", whose processes are stopped",
        [CULPRIT_SILENT] = ", which say nothing any more",
        [CULPRIT_INSIDE] = ", each inside a call of a library",
        [CULPRIT_DEAF] = ", whose devices do not answer",
        [CULPRIT_WORKS] = ", at work on the host",
        [CULPRIT_UNKNOWN] = "",
        [CULPRIT_WAITS] = ", which are behind the others",
    };
    bool is_general = gap->rank_count > gap->missing_count / 2;
    /* One that is ahead of most says nothing against them; and what keeps
     * all devices from answering is not the fault of one. */
    if (is_general &&
        (gap->worst.kind == CULPRIT_WAITS || gap->worst.kind == CULPRIT_DEAF)) {
        text_append(out, "; all of them wait, so which one holds up the "
                         "others cannot be told");
    } else if (gap->is_by_stage) {
        text_append(out, ", whose NCCL is behind that of the others");
    } else {
        text_append(out, "%s", states[gap->worst.kind]);
    }
}

static void append_others(struct text *out, const struct gap *gap)
{
    uint32_t others = gap->missing_count - gap->rank_count;
    if (others == 1) {
        text_append(out, "; the other one waits");
    } else if (others > 1) {
        text_append(out, "; the other %u wait", others);
    }
}

static void append_words(struct text *out, const struct gap *gap)
{
    const char *words = gap->c->probes->reports[gap->first_rank].words;
    if (words == NULL) {
        return;
    }
    if (gap->rank_count == 1) {
        text_append(out, "; it said last: %s", words);
    } else {
        text_append(out, "; rank %u", gap->first_rank);
        append_device(out, ", ", gap->c->facts, gap->first_rank);
        text_append(out, ", said last: %s", words);
    }
}

void culprit_name(struct text *out, const struct culprit_case *c)
{
    struct text names;
    struct gap gap = {.c = c};
    find_worst(&gap);
    if (gap.missing_count == 0) {
        text_format(out, "nobody");
        return;
    }
    find_ranges(&gap);
    gap.is_by_stage = needs_stage(&gap);
    uint32_t node_count = missing_names(&names, c->roster, has_gap, &gap);
    if (gap.rank_count == 1) {
        describe_one(out, &gap, names.bytes);
        append_one_state(out, &gap);
    } else {
        describe_many(out, &gap, names.bytes, node_count);
        append_their_state(out, &gap);
    }
    append_others(out, &gap);
    append_words(out, &gap);
}

void culprit_append_scout(struct text *out, const struct culprit_case *c)
{
    struct gap gap = {.c = c};
    find_worst(&gap);
    if (gap.missing_count == 0 || gap.worst.kind >= CULPRIT_UNKNOWN) {
        return;
    }
    while (!is_named(&gap, gap.first_rank)) {
        gap.first_rank++;
    }
    if (gap.missing_count > 1) {
        text_append(out, "; node %s", c->roster->nodes[gap.first_rank].name);
    }
    append_one_state(out, &gap);
}
