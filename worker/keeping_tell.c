/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent is told, and in which order: STATE; what there was when STATE
 * was sent, slot by slot (its number is in STATE, so it may not grow on the
 * way); then what has happened since.
 */
#include "worker/keeping.h"

#include <assert.h>
#include <string.h>

static bool replays_gone(const struct keeping *k)
{
    return k->generation != 0 && k->is_gone;
}

static uint32_t count_following(const struct keeping *k)
{
    uint32_t count = replays_gone(k) ? k->unclean_count + 1 : 0;
    for (uint32_t i = 0; i < k->rank_count; i++) {
        count += k->slots[i].state != KEEPING_EMPTY ? 1 : 0;
        count += k->slots[i].state == KEEPING_ENDED ? 1 : 0;
    }
    return count;
}

static void fill_state(const struct keeping *k, struct keeper_packet *p)
{
    p->type = KEEPER_STATE;
    p->instance = k->instance;
    p->agent = k->agent - 1;
    p->generation = k->generation;
    p->attempt = k->attempt;
    p->first_rank = k->first_rank;
    p->rank_count = k->rank_count;
    p->grace_ms = k->grace_ms;
    p->orphan_ms = k->orphan_ms;
    p->signal = k->stop_signal;
    p->following = count_following(k);
}

static void fill_rank(const struct keeping *k, uint32_t slot,
                      enum keeper_packet_type type, struct keeper_packet *p)
{
    const struct keeping_slot *s = &k->slots[slot];
    p->type = type;
    p->slot = slot;
    p->at_ms = s->started_ms;
    if (s->state == KEEPING_FAILED) {
        p->exec_errno = s->exec_errno;
        memcpy(p->text, s->text, sizeof(p->text));
        return;
    }
    p->pid = s->pid;
    if (type == KEEPER_RANK) {
        p->kept_fds = s->kept_fds;
        p->has_input = s->has_input;
    }
}

static void fill_exit(const struct keeping *k, uint32_t slot,
                      struct keeper_packet *p)
{
    const struct keeping_slot *s = &k->slots[slot];
    p->type = KEEPER_EXIT;
    p->slot = slot;
    p->status = s->status;
    p->at_ms = s->ended_ms;
    p->cpu_ms = s->cpu_ms;
    p->rss_bytes = s->rss_bytes;
    p->is_out_of_memory = s->is_out_of_memory;
}

static void fill_end(const struct keeping *k, struct keeper_packet *p)
{
    if (k->told_unclean < k->unclean_count) {
        p->type = KEEPER_UNCLEAN;
        memcpy(p->text, k->unclean[k->told_unclean], sizeof(p->text));
    } else {
        p->type = KEEPER_GONE;
    }
}

/* The next slot with something left to replay, from the cursor on. */
static uint32_t find_replay(const struct keeping *k)
{
    uint32_t slot = k->cursor;
    while (slot < k->rank_count && !k->slots[slot].replays_rank &&
           !k->slots[slot].replays_exit) {
        slot++;
    }
    return slot;
}

static bool next_replay(const struct keeping *k, struct keeper_packet *p)
{
    uint32_t slot = find_replay(k);
    if (slot < k->rank_count) {
        if (k->slots[slot].replays_rank) {
            fill_rank(k, slot, KEEPER_RANK, p);
        } else {
            fill_exit(k, slot, p);
        }
        return true;
    }
    if (k->replays_gone) {
        fill_end(k, p);
        return true;
    }
    return false;
}

/* Which slot owes something; there is one. */
static uint32_t find_owing(const struct keeping *k)
{
    for (uint32_t i = 0; i < k->rank_count; i++) {
        uint32_t slot = (k->cursor + i) % k->rank_count;
        if (k->slots[slot].owes_started || k->slots[slot].owes_exit) {
            return slot;
        }
    }
    assert(false);
    return 0;
}

static uint32_t lowest_bit(uint64_t mask)
{
    uint32_t bit = 0;
    while ((mask >> bit & 1) == 0) {
        bit++;
    }
    return bit;
}

static bool next_news(const struct keeping *k, struct keeper_packet *p)
{
    if (k->owing > 0) {
        uint32_t slot = find_owing(k);
        if (k->slots[slot].owes_started) {
            fill_rank(k, slot, KEEPER_STARTED, p);
        } else {
            fill_exit(k, slot, p);
        }
        return true;
    }
    if (k->owes_gone) {
        fill_end(k, p);
        return true;
    }
    if (k->owed_signals != 0) {
        p->type = KEEPER_SIGNAL;
        p->signal = (int32_t)lowest_bit(k->owed_signals) + 1;
        return true;
    }
    if (k->owes_alive) {
        p->type = KEEPER_ALIVE;
        return true;
    }
    return false;
}

bool keeping_next_packet(const struct keeping *k, struct keeper_packet *packet)
{
    memset(packet, 0, sizeof(*packet));
    switch (k->telling) {
    case KEEPING_TELLS_STATE:
        fill_state(k, packet);
        return true;
    case KEEPING_TELLS_REPLAY:
        return next_replay(k, packet) || next_news(k, packet);
    case KEEPING_TELLS_NEWS:
        return next_news(k, packet);
    case KEEPING_TELLS_NOBODY:
        break;
    }
    return false;
}

/* What there is now is replayed; what is owed already is among it. */
static void start_replay(struct keeping *k)
{
    for (uint32_t i = 0; i < k->rank_count; i++) {
        struct keeping_slot *s = &k->slots[i];
        s->replays_rank = s->state != KEEPING_EMPTY;
        s->replays_exit = s->state == KEEPING_ENDED;
        s->owes_started = false;
        s->owes_exit = false;
    }
    k->owing = 0;
    k->cursor = 0;
    k->told_unclean = 0;
    k->replays_gone = replays_gone(k);
    k->owes_gone = false;
    k->owes_alive = false;
    k->telling = KEEPING_TELLS_REPLAY;
}

static void clear(struct keeping *k, bool *flag)
{
    *flag = false;
    k->owing--;
}

static void end_told(struct keeping *k, bool *owes)
{
    if (k->told_unclean < k->unclean_count) {
        k->told_unclean++;
    } else {
        *owes = false;
        k->told_unclean = 0;
    }
}

static void news_told(struct keeping *k)
{
    if (k->owing > 0) {
        k->cursor = find_owing(k);
        struct keeping_slot *s = &k->slots[k->cursor];
        clear(k, s->owes_started ? &s->owes_started : &s->owes_exit);
    } else if (k->owes_gone) {
        end_told(k, &k->owes_gone);
    } else if (k->owed_signals != 0) {
        k->owed_signals &= k->owed_signals - 1;
    } else {
        k->owes_alive = false;
    }
}

static void replay_told(struct keeping *k)
{
    k->cursor = find_replay(k);
    if (k->cursor < k->rank_count) {
        struct keeping_slot *s = &k->slots[k->cursor];
        if (s->replays_rank) {
            s->replays_rank = false;
        } else {
            s->replays_exit = false;
        }
    } else {
        end_told(k, &k->replays_gone);
    }
}

static bool is_replayed(const struct keeping *k)
{
    return find_replay(k) == k->rank_count && !k->replays_gone;
}

void keeping_packet_sent(struct keeping *k)
{
    if (k->telling == KEEPING_TELLS_STATE) {
        start_replay(k);
    } else if (k->telling == KEEPING_TELLS_REPLAY) {
        replay_told(k);
    } else {
        news_told(k);
    }
    if (k->telling == KEEPING_TELLS_REPLAY && is_replayed(k)) {
        k->telling = KEEPING_TELLS_NEWS;
        k->cursor = 0;
    }
}
