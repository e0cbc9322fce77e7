/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines that wait are a ring in the order of their numbers, which is the
 * order in which they leave; a number is never used again. A line that is put
 * off gets a new number and leaves a hole. Equal lines are found through a
 * table of hashes whose chains run from old to new.
 */
#include "launcher/folding.h"

#include <stdlib.h>
#include <string.h>

enum {
    HASH_COUNT = 2 * FOLDING_LINES_MAX,
    /* Entries of one chain that are looked at: a rank that says the same
     * line over and over makes long ones. */
    CHAIN_MAX = 64,
    NONE = UINT16_MAX,
};

struct entry {
    struct folding_line line; /* text owned */
    struct gpul_rankset ranks;
    uint32_t count;  /* ranks in it; 0: a hole */
    uint32_t newest; /* those of them that have said nothing since */
    uint64_t number;
    uint64_t hash;
    uint64_t due_ms;
    uint16_t next; /* in the chain: the next newer one, or NONE */
    uint16_t previous;
};

struct chain {
    uint16_t first;
    uint16_t last;
};

struct folding {
    uint32_t rank_count_max;
    uint32_t voices;
    uint64_t next_number; /* of the next line; from 1 on */
    size_t waiting;
    size_t bytes;
    uint64_t hurry_number; /* lines below this are due at hurry_ms */
    uint64_t hurry_ms;
    struct entry given; /* the entry that was taken last */
    uint64_t *last;     /* by rank: the number of its newest line, or 0 */
    struct chain chains[HASH_COUNT];
    struct entry entries[FOLDING_LINES_MAX];
};

static struct entry *entry_of(struct folding *f, uint64_t number)
{
    return &f->entries[number % FOLDING_LINES_MAX];
}

static uint64_t oldest(const struct folding *f)
{
    return f->next_number - f->waiting;
}

static void release_entry(struct entry *e)
{
    union {
        const uint8_t *text;
        void *memory;
    } u = {e->line.text};
    free(u.memory);
    gpul_rankset_release(&e->ranks);
    *e = (struct entry){0};
}

int folding_create(struct folding **out, uint32_t rank_count_max,
                   uint32_t voices)
{
    struct folding *f = calloc(1, sizeof(*f));
    *out = f;
    if (f == NULL) {
        return GPUL_ENOMEM;
    }
    f->last = calloc(rank_count_max > 0 ? rank_count_max : 1, sizeof(*f->last));
    if (f->last == NULL) {
        free(f);
        *out = NULL;
        return GPUL_ENOMEM;
    }
    f->rank_count_max = rank_count_max;
    f->voices = voices;
    f->next_number = 1;
    for (size_t i = 0; i < HASH_COUNT; i++) {
        f->chains[i] = (struct chain){NONE, NONE};
    }
    return 0;
}

void folding_destroy(struct folding *f)
{
    if (f == NULL) {
        return;
    }
    for (uint64_t n = oldest(f); n < f->next_number; n++) {
        release_entry(entry_of(f, n));
    }
    release_entry(&f->given);
    free(f->last);
    free(f);
}

/* FNV-1a, eight bytes at a time. */
static uint64_t hash_of(const struct folding_line *line)
{
    const uint64_t prime = 0x100000001b3u;
    uint64_t hash = 0xcbf29ce484222325u ^ line->way;
    size_t at = 0;
    for (; at + sizeof(uint64_t) <= line->n; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, line->text + at, sizeof(word));
        hash = (hash ^ word) * prime;
        hash ^= hash >> 32;
    }
    for (; at < line->n; at++) {
        hash = (hash ^ line->text[at]) * prime;
    }
    return hash ^ hash >> 29;
}

static bool is_same(const struct entry *e, const struct folding_line *line,
                    uint64_t hash)
{
    return e->hash == hash && e->line.way == line->way &&
           e->line.n == line->n &&
           (line->n == 0 || memcmp(e->line.text, line->text, line->n) == 0);
}

/* An equal line that this rank may join: the oldest as it stands, else the
 * oldest that can be put off. */
static struct entry *find(struct folding *f, uint32_t rank,
                          const struct folding_line *line, uint64_t hash)
{
    struct entry *movable = NULL;
    uint16_t at = f->chains[hash % HASH_COUNT].first;
    for (int i = 0; i < CHAIN_MAX && at != NONE; i++) {
        struct entry *e = &f->entries[at];
        if (e->number > f->last[rank] && is_same(e, line, hash)) {
            return e;
        }
        if (movable == NULL && e->newest == e->count &&
            e->number < f->last[rank] && is_same(e, line, hash)) {
            movable = e;
        }
        at = e->next;
    }
    return movable;
}

/* The rank's newest line is no longer the one that was. */
static void leave_newest(struct folding *f, uint32_t rank)
{
    if (f->last[rank] >= oldest(f)) {
        entry_of(f, f->last[rank])->newest--;
    }
}

static int join(struct folding *f, struct entry *e, uint32_t rank)
{
    size_t before = e->ranks.capacity;
    if (gpul_rankset_add(&e->ranks, rank, rank) != 0) {
        return GPUL_ENOMEM;
    }
    f->bytes += (e->ranks.capacity - before) * sizeof(*e->ranks.ranges);
    leave_newest(f, rank);
    f->last[rank] = e->number;
    e->count++;
    e->newest++;
    return 0;
}

static int copy_text(struct entry *e, const struct folding_line *line)
{
    uint8_t *text = malloc(line->n > 0 ? line->n : 1);
    if (text == NULL) {
        return GPUL_ENOMEM;
    }
    if (line->n > 0) {
        memcpy(text, line->text, line->n);
    }
    e->line = *line;
    e->line.text = text;
    return 0;
}

static void link_entry(struct folding *f, struct entry *e)
{
    struct chain *chain = &f->chains[e->hash % HASH_COUNT];
    uint16_t at = (uint16_t)(e->number % FOLDING_LINES_MAX);
    e->next = NONE;
    e->previous = chain->last;
    if (chain->last == NONE) {
        chain->first = at;
    } else {
        f->entries[chain->last].next = at;
    }
    chain->last = at;
}

static void unlink_entry(struct folding *f, const struct entry *e)
{
    struct chain *chain = &f->chains[e->hash % HASH_COUNT];
    if (e->previous == NONE) {
        chain->first = e->next;
    } else {
        f->entries[e->previous].next = e->next;
    }
    if (e->next == NONE) {
        chain->last = e->previous;
    } else {
        f->entries[e->next].previous = e->previous;
    }
}

/* To the end of the ring. */
static struct entry *append(struct folding *f, const struct entry *made)
{
    struct entry *e = entry_of(f, f->next_number);
    *e = *made;
    e->number = f->next_number++;
    f->waiting++;
    link_entry(f, e);
    return e;
}

/* A line leaves with its own deadline all the same, and so must all that now
 * stand before it. */
static struct entry *put_off(struct folding *f, struct entry *e)
{
    struct entry moved = *e;
    unlink_entry(f, e);
    *e = (struct entry){.number = moved.number};
    e = append(f, &moved);
    for (size_t i = 0; i < e->ranks.count; i++) {
        const struct gpul_rankrange *r = &e->ranks.ranges[i];
        for (uint32_t rank = r->first; rank <= r->last; rank++) {
            f->last[rank] = e->number;
        }
    }
    bool is_hurrying = f->hurry_number > oldest(f);
    if (!is_hurrying || e->due_ms < f->hurry_ms) {
        f->hurry_ms = e->due_ms;
    }
    f->hurry_number = f->next_number;
    return e;
}

static bool is_over_full(const struct folding *f)
{
    return f->waiting >= FOLDING_LINES_MAX || f->bytes > FOLDING_BYTES_MAX;
}

int folding_add(struct folding *f, uint32_t rank,
                const struct folding_line *line, uint64_t now_ms)
{
    uint64_t hash = hash_of(line);
    struct entry *e = find(f, rank, line, hash);
    if (e != NULL && e->number > f->last[rank]) {
        return join(f, e, rank);
    }
    if (f->waiting == FOLDING_LINES_MAX) {
        return GPUL_ENOMEM; /* the caller has not taken what was due */
    }
    if (e != NULL) {
        return join(f, put_off(f, e), rank);
    }
    struct entry made = {.hash = hash, .due_ms = now_ms + FOLDING_WINDOW_MS};
    if (copy_text(&made, line) != 0) {
        return GPUL_ENOMEM;
    }
    gpul_rankset_init(&made.ranks);
    e = append(f, &made);
    f->bytes += line->n;
    if (join(f, e, rank) != 0) {
        unlink_entry(f, e);
        f->bytes -= line->n;
        release_entry(e); /* a hole */
        return GPUL_ENOMEM;
    }
    return 0;
}

void folding_hurry(struct folding *f)
{
    f->hurry_number = f->next_number;
    f->hurry_ms = 0;
}

static uint64_t due_of(const struct folding *f, const struct entry *e)
{
    if (e->count >= f->voices || is_over_full(f)) {
        return 0;
    }
    return e->number < f->hurry_number && f->hurry_ms < e->due_ms ? f->hurry_ms
                                                                  : e->due_ms;
}

static void drop_holes(struct folding *f)
{
    while (f->waiting > 0 && entry_of(f, oldest(f))->count == 0) {
        f->waiting--;
    }
}

bool folding_next(struct folding *f, uint64_t now_ms, struct folding_line *line,
                  const struct gpul_rankset **ranks)
{
    release_entry(&f->given);
    drop_holes(f);
    if (f->waiting == 0) {
        return false;
    }
    struct entry *e = entry_of(f, oldest(f));
    if (now_ms < due_of(f, e)) {
        return false;
    }
    unlink_entry(f, e);
    f->waiting--;
    f->bytes -= e->line.n + e->ranks.capacity * sizeof(*e->ranks.ranges);
    f->given = *e;
    *e = (struct entry){0};
    *line = f->given.line;
    *ranks = &f->given.ranks;
    return true;
}

uint64_t folding_deadline_ms(const struct folding *f)
{
    if (f->waiting == 0) {
        return UINT64_MAX;
    }
    return due_of(f, &f->entries[oldest(f) % FOLDING_LINES_MAX]);
}
