/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/guests.h"

#include <assert.h>
#include <stdlib.h>

#include "common/error.h"
#include "coordinator/text.h"
#include "proto/limits.h"

/* 12 bytes: there is one for each node. Two names of one hash share a bound. */
struct guest {
    uint32_t name;         /* as a hash, never 0; 0: it is none */
    uint32_t newer, older; /* in its bucket; GUESTS_NONE: none */
};

enum { CONNS_A_BUCKET = 8 };

int guests_init(struct guests *g, uint32_t count)
{
    uint32_t buckets = 1;
    while (buckets < count / CONNS_A_BUCKET) {
        buckets *= 2;
    }
    *g = (struct guests){.mask = buckets - 1};
    g->conns = calloc(count, sizeof(*g->conns));
    g->newest = malloc(buckets * sizeof(*g->newest));
    if (g->conns == NULL || g->newest == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t i = 0; i < buckets; i++) {
        g->newest[i] = GUESTS_NONE;
    }
    return 0;
}

void guests_release(struct guests *g)
{
    free(g->conns);
    free(g->newest);
    *g = (struct guests){0};
}

static uint32_t *bucket_of(struct guests *g, uint32_t name)
{
    return &g->newest[(name >> 1) & g->mask];
}

void guests_leave(struct guests *g, uint32_t conn)
{
    struct guest *guest = &g->conns[conn];
    if (guest->name == 0) {
        return;
    }
    if (guest->newer != GUESTS_NONE) {
        g->conns[guest->newer].older = guest->older;
    } else {
        *bucket_of(g, guest->name) = guest->older;
    }
    if (guest->older != GUESTS_NONE) {
        g->conns[guest->older].newer = guest->newer;
    }
    guest->name = 0;
}

/* The oldest of a name that has too many; names that share a bucket are few,
 * since nobody chooses the names whose keys he has. */
static uint32_t too_many_of(struct guests *g, uint32_t name)
{
    uint32_t count = 0, oldest = GUESTS_NONE;
    for (uint32_t at = *bucket_of(g, name); at != GUESTS_NONE;
         at = g->conns[at].older) {
        if (g->conns[at].name == name) {
            oldest = at;
            count++;
        }
    }
    return count > GPUL_GUESTS_OF_NAME_MAX ? oldest : GUESTS_NONE;
}

uint32_t guests_enter(struct guests *g, uint32_t conn, const char *name)
{
    struct guest *guest = &g->conns[conn];
    uint64_t whole = text_hash(name);
    uint32_t hash = (uint32_t)(whole ^ whole >> 32) | 1;
    uint32_t *newest = bucket_of(g, hash);
    assert(guest->name == 0);
    *guest =
        (struct guest){.name = hash, .newer = GUESTS_NONE, .older = *newest};
    if (*newest != GUESTS_NONE) {
        g->conns[*newest].newer = conn;
    }
    *newest = conn;
    uint32_t oldest = too_many_of(g, hash);
    if (oldest != GUESTS_NONE) {
        guests_leave(g, oldest);
    }
    return oldest;
}

uint64_t guests_refused(struct guests *g, uint64_t now_ms)
{
    uint64_t refused = ++g->refused;
    if (now_ms < g->next_line_ms) {
        return 0;
    }
    g->refused = 0;
    g->next_line_ms = now_ms + GPUL_STRANGER_LINE_MS;
    return refused;
}
