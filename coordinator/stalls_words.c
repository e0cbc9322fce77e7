/* SPDX-License-Identifier: Apache-2.0
 *
 * What a report of ranks that stall says.
 */
#include <string.h>

#include "common/units.h"
#include "coordinator/missing.h"
#include "coordinator/stalls.h"

enum {
    DURATION_BYTES = 32, /* what gpul_format_duration may write */
    RANGES_MAX = 10,     /* of ranks that are listed; then a count */
    LOOKS_TOLD_MAX = 4,
    /* A list of ranks leaves room for the rest of the sentence. */
    LIST_BYTES = 10 * 2 * (7 + 1) + 64,
};

/* Some ranks of the job. */
struct some {
    const struct stalls *stalls;
    unsigned parts; /* mask of 1 << enum stalls_part */
    int look;       /* -1: any */
};

static bool is_in(const struct some *some, uint32_t rank)
{
    const struct stalls_rank *r = &some->stalls->ranks[rank];
    return (some->parts >> r->part & 1u) != 0 &&
           (some->look < 0 || r->look == some->look);
}

static bool node_is_in(const struct roster *roster, uint32_t node_rank,
                       const void *arg)
{
    const struct some *some = arg;
    const struct node *node = &roster->nodes[node_rank];
    for (uint32_t i = 0; i < node->rank_count; i++) {
        uint32_t rank = node->first_rank + i;
        if (rank < some->stalls->world_size && is_in(some, rank)) {
            return true;
        }
    }
    return false;
}

/* "2,5-7", at most `ranges_max` ranges and whole ones. Returns how many ranks
 * there are; *shown of them are in the list. */
static uint32_t list_ranks(struct text *out, const struct some *some,
                           uint32_t ranges_max, uint32_t *shown)
{
    uint32_t count = 0;
    uint32_t ranges = 0;
    *shown = 0;
    out->bytes[0] = 0;
    for (uint32_t rank = 0; rank < some->stalls->world_size; rank++) {
        uint32_t first = rank;
        while (rank < some->stalls->world_size && is_in(some, rank)) {
            rank++;
        }
        if (rank == first) {
            continue;
        }
        count += rank - first;
        if (ranges++ < ranges_max &&
            strlen(out->bytes) + LIST_BYTES / RANGES_MAX < sizeof(*out)) {
            *shown += rank - first;
            text_append(out, "%s%u", ranges > 1 ? "," : "", first);
            if (rank - first > 1) {
                text_append(out, "-%u", rank - 1);
            }
        }
    }
    return count;
}

/* "rank 2", "ranks 2,5-7 and 9 more". Returns how many. */
static uint32_t append_ranks(struct text *out, const struct some *some)
{
    struct text list;
    uint32_t shown;
    uint32_t count = list_ranks(&list, some, RANGES_MAX, &shown);
    if (count > 0) {
        text_append(out, "rank%s %s", gpul_plural(count), list.bytes);
    }
    if (count > shown) {
        text_append(out, " and %u more", count - shown);
    }
    return count;
}

/* The same, and "(node a)" or "(nodes a,b)" behind it. */
static void append_places(struct text *out, const struct some *some,
                          const struct roster *roster)
{
    struct text names;
    append_ranks(out, some);
    uint32_t count = missing_names(&names, roster, node_is_in, some);
    text_append(out, " (node%s %.*s)", gpul_plural(count),
                GPUL_TEXT_BYTES_MAX / 4, names.bytes);
}

static uint32_t count_of(const struct stalls *s, unsigned parts)
{
    const struct some some = {s, parts, -1};
    struct text list;
    uint32_t shown;
    return list_ranks(&list, &some, 0, &shown);
}

/* ---- steps --------------------------------------------------------------- */

static void append_steps(struct text *out, const struct some *some)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t i = 0; i < some->stalls->world_size; i++) {
        uint64_t steps = some->stalls->ranks[i].steps;
        if (is_in(some, i)) {
            least = steps < least ? steps : least;
            most = steps > most ? steps : most;
        }
    }
    if (least == most) {
        text_append(out, " after step %llu", (unsigned long long)most);
    } else {
        text_append(out, " after steps %llu to %llu", (unsigned long long)least,
                    (unsigned long long)most);
    }
}

static void append_head(struct text *out, const struct stalls *s,
                        uint64_t now_ms, bool has_beaten)
{
    char silence[DURATION_BYTES], limit[DURATION_BYTES];
    gpul_format_duration(silence, now_ms - s->since_ms);
    gpul_format_duration(limit, s->limit_ms);
    text_append(out, "training hangs: no %s for %s (limit %s%s)",
                has_beaten ? "step" : "output", silence, limit,
                s->is_learned ? ", learned" : "");
}

static void append_front(struct text *out, const struct stalls *s,
                         const struct roster *roster, uint32_t ranks_left,
                         bool has_behind)
{
    const struct some front = {s, 1u << STALLS_FRONT, -1};
    uint32_t count = count_of(s, front.parts);
    if (count == ranks_left && count > 1) {
        text_append(out, "; all %u ranks wait", count);
    } else {
        text_append(out, "; ");
        if (has_behind) {
            append_ranks(out, &front);
        } else {
            append_places(out, &front, roster);
        }
        text_append(out, count == 1 ? " waits" : " wait");
    }
    append_steps(out, &front);
}

static void append_parts(struct text *out, const struct stalls *s,
                         const struct roster *roster, uint32_t ranks_left)
{
    const struct some behind = {s, 1u << STALLS_BEHIND, -1};
    const struct some silent = {s, 1u << STALLS_SILENT, -1};
    bool has_behind = count_of(s, behind.parts) > 0;
    if (has_behind) {
        text_append(out, "; behind: ");
        append_places(out, &behind, roster);
        append_steps(out, &behind);
    }
    if (count_of(s, 1u << STALLS_FRONT) > 0) {
        append_front(out, s, roster, ranks_left, has_behind);
    }
    if (count_of(s, silent.parts) > 0) {
        text_append(out, "; nothing from ");
        append_places(out, &silent, roster);
    }
    if (s->count < ranks_left) {
        uint32_t others = ranks_left - s->count;
        text_append(out, "; %u other%s go%s on", others, gpul_plural(others),
                    others == 1 ? "es" : "");
    }
}

/* Of whom the report has told more: who, and how far. */
static void append_verdict(struct text *out, const struct stalls *s,
                           const struct roster *roster, uint32_t ranks_left)
{
    const struct some behind = {s, 1u << STALLS_BEHIND, -1};
    const struct some silent = {s, 1u << STALLS_SILENT, -1};
    bool has_behind = count_of(s, behind.parts) > 0;
    bool has_silent = count_of(s, silent.parts) > 0;
    text_append(out, "training hung (--on-hang stop)");
    if (has_behind) {
        text_append(out, "; behind was ");
        append_places(out, &behind, roster);
        append_steps(out, &behind);
    }
    if (has_silent) {
        text_append(out, "; nothing came from ");
        append_places(out, &silent, roster);
    }
    if (!has_behind && !has_silent) {
        append_front(out, s, roster, ranks_left, false);
    }
}

/* ---- how they look ------------------------------------------------------- */

static const char *state_name(const char *state)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {
        {'R', "running"},
        {'S', "sleeping"},
        {'D', "in the kernel, where no signal reaches it"},
        {'T', "stopped by a signal"},
        {'t', "stopped by a debugger"},
        {'Z', "ended, but not waited for"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (state[0] == names[i].letter && state[1] == 0) {
            return names[i].name;
        }
    }
    return "state unknown to gpulaunch";
}

static void append_look(struct text *out, const struct stalls *s, int look)
{
    const struct some some = {s, ~(1u << STALLS_WELL), look};
    const struct stalls_look *l = &s->looks[look];
    text_append(out, "\n  ");
    append_ranks(out, &some);
    if (l->state[0] == 0) {
        text_append(out, ": what it does is not known");
    } else {
        text_append(out, ": %s (%s), %u %% CPU, %u thread%s",
                    state_name(l->state), l->state, l->cpu_percent, l->threads,
                    gpul_plural(l->threads));
    }
    if (l->wait_channel[0] != 0) {
        text_append(out, ", in %s", l->wait_channel);
    }
    if (l->gpus[0] != 0) {
        text_append(out, "; %s", l->gpus);
    }
}

/* Those behind first, then what is rare: in a hang the odd one is the cause.
 */
static uint64_t weight(const struct stalls *s, int look)
{
    const struct some behind = {s, 1u << STALLS_BEHIND, look};
    struct text list;
    uint32_t shown;
    uint32_t count = list_ranks(&list, &behind, 0, &shown);
    return (count > 0 ? 0 : UINT64_C(1) << 32) + s->looks[look].count;
}

static void append_looks(struct text *out, const struct stalls *s)
{
    bool is_told[STALLS_LOOKS_MAX] = {false};
    for (int told = 0; told < LOOKS_TOLD_MAX; told++) {
        int next = 0;
        uint64_t least = UINT64_MAX;
        for (int i = 1; i < STALLS_LOOKS_MAX; i++) {
            bool is_left = s->looks[i].count > 0 && !is_told[i];
            uint64_t w = is_left ? weight(s, i) : UINT64_MAX;
            if (w < least) {
                least = w;
                next = i;
            }
        }
        if (next == 0) {
            return;
        }
        is_told[next] = true;
        append_look(out, s, next);
    }
}

/* ---- all of it ----------------------------------------------------------- */

static const struct node *find_node(const struct roster *roster,
                                    const struct some *some)
{
    for (uint32_t i = 0; i < roster->count; i++) {
        if (node_is_in(roster, i, some)) {
            return &roster->nodes[i];
        }
    }
    return NULL;
}

/* Whom to look at: those behind, else those that stall while others do not. */
static void name_suspects(struct stalls_report *out, const struct stalls *s,
                          const struct roster *roster, uint32_t ranks_left)
{
    uint32_t shown;
    struct some some = {s, 1u << STALLS_BEHIND | 1u << STALLS_SILENT, -1};
    bool is_alone = ranks_left == 1;
    if (count_of(s, some.parts) == 0 && (s->count < ranks_left || is_alone)) {
        some.parts = 1u << STALLS_FRONT;
    }
    if (count_of(s, some.parts) < ranks_left || is_alone) {
        list_ranks(&out->ranks, &some, UINT32_MAX, &shown);
        out->node = find_node(roster, &some);
    }
}

void stalls_words(const struct stalls *s, const struct roster *roster,
                  uint32_t ranks_left, uint64_t now_ms,
                  struct stalls_report *out)
{
    bool has_beaten = count_of(s, 1u << STALLS_BEHIND | 1u << STALLS_FRONT) > 0;
    out->text.bytes[0] = 0;
    out->ranks.bytes[0] = 0;
    out->verdict.bytes[0] = 0;
    append_verdict(&out->verdict, s, roster, ranks_left);
    append_head(&out->text, s, now_ms, has_beaten);
    append_parts(&out->text, s, roster, ranks_left);
    append_looks(&out->text, s);
    name_suspects(out, s, roster, ranks_left);
}
