/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/stalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER_MS UINT64_MAX

void stalls_release(struct stalls *s)
{
    free(s->ranks);
    *s = (struct stalls){.ranks = NULL};
}

/* ---- how they look ------------------------------------------------------- */

/* In steps of 10: what differs by less looks the same. */
static uint32_t cpu_percent(const Gpul__StallRow *row)
{
    enum { STEP = 10, PERCENT = 100, PERCENT_MAX = 1000000 };
    if (row->look_ms == 0 || row->cpu_ms > UINT64_MAX / PERCENT) {
        return 0;
    }
    uint64_t percent = row->cpu_ms * PERCENT / row->look_ms;
    percent = (percent + STEP / 2) / STEP * STEP;
    return percent < PERCENT_MAX ? (uint32_t)percent : PERCENT_MAX;
}

static bool is_same(const struct stalls_look *look, const Gpul__StallRow *row)
{
    return look->cpu_percent == cpu_percent(row) &&
           strcmp(look->state, row->state) == 0 &&
           strcmp(look->wait_channel, row->wait_channel) == 0 &&
           strcmp(look->gpus, row->text) == 0;
}

static uint8_t find_look(struct stalls *s, const Gpul__StallRow *row)
{
    uint8_t free_at = 0;
    if (row->state[0] == 0 && row->text[0] == 0) {
        return 0;
    }
    for (uint8_t i = 1; i < STALLS_LOOKS_MAX; i++) {
        if (s->looks[i].count == 0) {
            free_at = i;
        } else if (is_same(&s->looks[i], row)) {
            return i;
        }
    }
    struct stalls_look *look = &s->looks[free_at];
    if (free_at > 0) {
        look->cpu_percent = cpu_percent(row);
        look->threads = row->threads;
        snprintf(look->state, sizeof(look->state), "%s", row->state);
        snprintf(look->wait_channel, sizeof(look->wait_channel), "%s",
                 row->wait_channel);
        snprintf(look->gpus, sizeof(look->gpus), "%s", row->text);
    }
    return free_at;
}

static void set_look(struct stalls *s, struct stalls_rank *rank, uint8_t look)
{
    s->looks[rank->look].count -= rank->look > 0;
    rank->look = look;
    s->looks[look].count += look > 0;
}

/* ---- who stalls ---------------------------------------------------------- */

static bool remove_rank(struct stalls *s, struct stalls_rank *rank)
{
    if (rank->kind == 0) {
        return false;
    }
    set_look(s, rank, 0);
    *rank = (struct stalls_rank){.kind = 0};
    s->count--;
    if (s->count == 0) {
        s->due_ms = 0;
    }
    return s->count == 0;
}

/* A report is not too soon after the last. */
static uint64_t not_too_soon(const struct stalls *s, uint64_t at_ms)
{
    return at_ms < s->earliest_ms ? s->earliest_ms : at_ms;
}

static void make_due(struct stalls *s, uint64_t now_ms)
{
    bool is_calm = s->count == 0 && now_ms - s->well_ms > s->gap_ms;
    if (is_calm) {
        s->gap_ms = 0;
        s->earliest_ms = 0;
    }
    if (s->due_ms == 0) {
        s->due_ms = not_too_soon(s, now_ms + STALLS_COLLECT_MS);
    }
}

static void add_rank(struct stalls *s, struct stalls_rank *rank,
                     const Gpul__StallRow *row, uint64_t now_ms)
{
    make_due(s, now_ms);
    s->count += rank->kind == 0;
    rank->kind = (uint8_t)row->kind;
    rank->steps = row->steps;
    rank->since_ms = now_ms > row->silence_ms ? now_ms - row->silence_ms : 0;
    set_look(s, rank, find_look(s, row));
    s->limit_ms = row->limit_ms;
    s->is_learned = row->is_learned;
}

/* Without memory nothing is told: no reason to end a job that may be well. */
static bool has_room(struct stalls *s, uint32_t world_size)
{
    if (s->ranks == NULL) {
        s->ranks = calloc(world_size, sizeof(*s->ranks));
        s->world_size = s->ranks != NULL ? world_size : 0;
    }
    return s->ranks != NULL;
}

bool stalls_take(struct stalls *s, uint32_t world_size,
                 const Gpul__StallRow *row, uint64_t now_ms,
                 uint64_t *silence_ms)
{
    bool is_over = row->kind == GPUL__STALL_ROW__KIND__RESUMED;
    if ((is_over && s->ranks == NULL) || !has_room(s, world_size) ||
        row->rank >= s->world_size) {
        return false;
    }
    if (!is_over) {
        add_rank(s, &s->ranks[row->rank], row, now_ms);
        return false;
    }
    bool was_said = s->is_said;
    if (!remove_rank(s, &s->ranks[row->rank])) {
        return false;
    }
    s->is_said = false;
    s->well_ms = now_ms;
    *silence_ms = now_ms - s->since_ms;
    return was_said;
}

void stalls_check(struct stalls *s, uint32_t ranks_left, uint64_t now_ms)
{
    uint64_t at_ms = not_too_soon(s, now_ms);
    if (s->due_ms > at_ms && s->count >= ranks_left) {
        s->due_ms = at_ms;
    }
}

void stalls_ended(struct stalls *s, uint32_t rank)
{
    if (rank < s->world_size && remove_rank(s, &s->ranks[rank])) {
        s->is_said = false;
    }
}

/* ---- the report ---------------------------------------------------------- */

uint64_t stalls_due_ms(const struct stalls *s)
{
    return s->due_ms > 0 ? s->due_ms : NEVER_MS;
}

void stalls_hold(struct stalls *s, uint64_t now_ms)
{
    s->held_ms = now_ms;
}

bool stalls_put_off(struct stalls *s, uint64_t now_ms)
{
    if (s->held_ms == 0 || now_ms - s->held_ms >= s->limit_ms) {
        return false;
    }
    bool is_ever = s->limit_ms < NEVER_MS - s->held_ms;
    s->due_ms = is_ever ? s->held_ms + s->limit_ms : NEVER_MS;
    return true;
}

static uint64_t most_steps(const struct stalls *s)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->world_size; i++) {
        const struct stalls_rank *rank = &s->ranks[i];
        if (rank->kind == GPUL__STALL_ROW__KIND__BEHIND && rank->steps > most) {
            most = rank->steps;
        }
    }
    return most;
}

/* Returns whether all that stall are stopped by a signal. */
static bool part_ranks(struct stalls *s)
{
    uint64_t most = most_steps(s);
    bool are_stopped = true;
    s->since_ms = NEVER_MS;
    for (uint32_t i = 0; i < s->world_size; i++) {
        struct stalls_rank *rank = &s->ranks[i];
        if (rank->kind == 0) {
            rank->part = STALLS_WELL;
            continue;
        }
        rank->part = rank->kind == GPUL__STALL_ROW__KIND__SILENT ? STALLS_SILENT
                     : rank->steps < most                        ? STALLS_BEHIND
                                                                 : STALLS_FRONT;
        are_stopped &= strcmp(s->looks[rank->look].state, "T") == 0;
        if (rank->since_ms < s->since_ms) {
            s->since_ms = rank->since_ms;
        }
    }
    return are_stopped;
}

void stalls_report(struct stalls *s, const struct roster *roster,
                   uint32_t ranks_left, uint64_t now_ms,
                   struct stalls_report *out)
{
    bool are_stopped = part_ranks(s);
    *out = (struct stalls_report){.count = s->count};
    out->are_all_stopped = are_stopped && s->count >= ranks_left;
    stalls_words(s, roster, ranks_left, now_ms, out);
    s->due_ms = 0;
    s->is_said = true;
    s->gap_ms = s->gap_ms == 0 ? STALLS_GAP_MS : s->gap_ms * 2;
    s->gap_ms = s->gap_ms < STALLS_GAP_MS_MAX ? s->gap_ms : STALLS_GAP_MS_MAX;
    s->earliest_ms = now_ms + s->gap_ms;
}
