/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/gate.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "coordinator/text.h"
#include "proto/limits.h"

/* Why a connection was refused: what it is, or what it did not do. */
enum reason {
    REASON_FULL = GPUL_STRANGER_COUNT,
    REASON_ADDRESS_FULL,
    REASON_SILENT,
    REASON_SLOW,
    REASON_YIELDED,
    REASON_NAME_FULL,
    REASON_COUNT,
};

/* The place of an entry in a queue; its times to leave are in order there,
 * since all have the same time. */
struct link {
    uint32_t before, after; /* GATE_NONE: none */
};

struct queue {
    uint32_t first, last;
};

enum { SILENT, WAITING, QUEUES };

struct entry {
    struct link links[QUEUES];
    uint64_t opened_ms;
    uint64_t source; /* 0: loopback, not counted */
    uint32_t conn;
    bool is_used;
    uint64_t name; /* that it claims, as a hash; 0: none yet */
    bool is_shaking;
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
};

struct tally {
    uint64_t of[REASON_COUNT];
    uint64_t total;
    char last_address[GPUL_ADDRESS_BYTES_MAX + 1];
};

struct gate {
    struct entry entries[GPUL_STRANGERS_MAX];
    struct queue queues[QUEUES]; /* SILENT: no handshake; WAITING: all */
    uint32_t free[GPUL_STRANGERS_MAX];
    uint32_t free_count;
    struct tally unsaid; /* in no line yet */
    struct tally all;    /* since the start, but see gate_total */
    enum reason last_reason;
    uint64_t next_line_ms;
    uint64_t crowd_end_ms; /* until then the oldest gives way */
    char hint[GPUL_ERROR_TEXT_BYTES];
    bool is_hint_taken;
};

struct gate *gate_create(void)
{
    struct gate *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return NULL;
    }
    for (int q = 0; q < QUEUES; q++) {
        g->queues[q] = (struct queue){GATE_NONE, GATE_NONE};
    }
    for (uint32_t i = 0; i < GPUL_STRANGERS_MAX; i++) {
        g->free[i] = GPUL_STRANGERS_MAX - 1 - i;
    }
    g->free_count = GPUL_STRANGERS_MAX;
    return g;
}

void gate_destroy(struct gate *g)
{
    free(g);
}

/* ---- queues ------------------------------------------------------------- */

static void push(struct gate *g, int q, uint32_t at)
{
    struct queue *queue = &g->queues[q];
    g->entries[at].links[q] = (struct link){queue->last, GATE_NONE};
    if (queue->last != GATE_NONE) {
        g->entries[queue->last].links[q].after = at;
    } else {
        queue->first = at;
    }
    queue->last = at;
}

static void pull(struct gate *g, int q, uint32_t at)
{
    struct queue *queue = &g->queues[q];
    const struct link *link = &g->entries[at].links[q];
    if (link->before != GATE_NONE) {
        g->entries[link->before].links[q].after = link->after;
    } else {
        queue->first = link->after;
    }
    if (link->after != GATE_NONE) {
        g->entries[link->after].links[q].before = link->before;
    } else {
        queue->last = link->before;
    }
}

static uint64_t due_ms(const struct gate *g, int q)
{
    static const uint64_t limits_ms[QUEUES] = {GPUL_FIRST_RECORD_MS,
                                               GPUL_PROOF_MS};
    uint32_t first = g->queues[q].first;
    return first == GATE_NONE ? UINT64_MAX
                              : g->entries[first].opened_ms + limits_ms[q];
}

/* ---- addresses ---------------------------------------------------------- */

static uint64_t number_of(const uint8_t *bytes, size_t n)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* What one machine may choose its addresses from, as a number. IPv4 has the
 * numbers of ::/32, which no network of IPv6 has. */
static uint64_t source_of(const char *address)
{
    static const uint8_t loopback[16] = {[15] = 1};
    uint8_t bytes[16];
    char literal[GPUL_ADDRESS_BYTES_MAX + 1];
    if (inet_pton(AF_INET, address, bytes) == 1) {
        return bytes[0] == 127 ? 0 : number_of(bytes, 4);
    }
    snprintf(literal, sizeof(literal), "%.*s", (int)strcspn(address, "%"),
             address);
    if (inet_pton(AF_INET6, literal, bytes) != 1) {
        return UINT64_MAX; /* all that has no address, together */
    }
    uint64_t network = number_of(bytes, 8);
    if (memcmp(bytes, loopback, sizeof(bytes)) == 0) {
        return 0;
    }
    return network != 0 ? network : UINT64_MAX;
}

static uint32_t count_of(const struct gate *g, uint64_t source)
{
    uint32_t count = 0;
    uint32_t at = g->queues[WAITING].first;
    while (at != GATE_NONE) {
        count += g->entries[at].source == source;
        at = g->entries[at].links[WAITING].after;
    }
    return count;
}

/* ---- refusals ----------------------------------------------------------- */

static void count(struct tally *t, enum reason reason, const char *address)
{
    t->of[reason]++;
    t->total++;
    snprintf(t->last_address, sizeof(t->last_address), "%s", address);
}

static void refuse(struct gate *g, enum reason reason, const char *address)
{
    count(&g->unsaid, reason, address);
    g->last_reason = reason;
    if (reason != (enum reason)GPUL_STRANGER_CLOSED) {
        count(&g->all, reason, address);
    }
}

static const char *words(enum reason reason)
{
    switch (reason) {
    case REASON_FULL:
        return "too many that have shown no key";
    case REASON_ADDRESS_FULL:
        return "too many from one address that have shown no key";
    case REASON_SILENT:
        return "began no handshake";
    case REASON_SLOW:
        return "too slow to show a key";
    case REASON_YIELDED:
        return "gave way to another";
    case REASON_NAME_FULL:
        return "too many handshakes of one node";
    default:
        return gpul_stranger_words((enum gpul_stranger)reason);
    }
}

/* "HTTP (10), a wrong secret (2); the last from 10.0.0.7", behind what the line
 * has. */
static void append_tally(const struct tally *t, char line[GATE_LINE_BYTES])
{
    size_t used = strlen(line);
    const char *before = "";
    for (int r = 0; r < REASON_COUNT; r++) {
        if (t->of[r] > 0) {
            used += (size_t)snprintf(line + used, GATE_LINE_BYTES - used,
                                     "%s%s (%" PRIu64 ")", before,
                                     words((enum reason)r), t->of[r]);
            before = ", ";
        }
    }
    used += (size_t)snprintf(line + used, GATE_LINE_BYTES - used,
                             "; the last from %s", t->last_address);
    assert(used < GATE_LINE_BYTES);
}

uint64_t gate_total(const struct gate *g, char line[GATE_LINE_BYTES])
{
    line[0] = 0;
    if (g->all.total > 0) {
        append_tally(&g->all, line);
    }
    return g->all.total;
}

bool gate_line(struct gate *g, char line[GATE_LINE_BYTES], uint64_t now_ms)
{
    struct tally *t = &g->unsaid;
    if (t->total == 0 || now_ms < g->next_line_ms) {
        return false;
    }
    if (t->total == 1) {
        snprintf(line, GATE_LINE_BYTES,
                 "closed a connection from %s without the job's key: %s",
                 t->last_address, words(g->last_reason));
    } else {
        snprintf(
            line, GATE_LINE_BYTES,
            "closed %" PRIu64 " connections without the job's key: ", t->total);
        append_tally(t, line);
    }
    memset(t, 0, sizeof(*t));
    g->next_line_ms = now_ms + GPUL_STRANGER_LINE_MS;
    return true;
}

/* ---- room --------------------------------------------------------------- */

static struct entry *entry_of(struct gate *g, uint32_t ticket)
{
    assert(ticket < GPUL_STRANGERS_MAX && g->entries[ticket].is_used);
    return &g->entries[ticket];
}

static bool is_address_full(const struct gate *g, uint64_t source)
{
    return source != 0 && count_of(g, source) >= GPUL_STRANGERS_OF_ADDRESS_MAX;
}

/* The oldest of a queue, if it is so old; only_source: of that source. */
static uint32_t oldest_of(const struct gate *g, int q,
                          const uint64_t *only_source, uint64_t born_before_ms)
{
    uint32_t at = g->queues[q].first;
    while (at != GATE_NONE && only_source != NULL &&
           g->entries[at].source != *only_source) {
        at = g->entries[at].links[q].after;
    }
    return at != GATE_NONE && g->entries[at].opened_ms <= born_before_ms
               ? at
               : GATE_NONE;
}

/* Give the place back. */
static void leave(struct gate *g, uint32_t ticket)
{
    struct entry *e = entry_of(g, ticket);
    if (!e->is_shaking) {
        pull(g, SILENT, ticket);
    }
    pull(g, WAITING, ticket);
    e->is_used = false;
    g->free[g->free_count++] = ticket;
}

/* Give the ticket back; the caller's number. */
static uint32_t turn_out(struct gate *g, uint32_t ticket, enum reason reason)
{
    uint32_t conn = entry_of(g, ticket)->conn;
    refuse(g, reason, g->entries[ticket].address);
    leave(g, ticket);
    return conn;
}

uint32_t gate_make_room(struct gate *g, const char *address, uint64_t now_ms)
{
    static const uint64_t ages_ms[QUEUES] = {GPUL_YIELD_SILENT_MS,
                                             GPUL_YIELD_MS};
    uint64_t source = source_of(address);
    bool is_crowded = is_address_full(g, source);
    if (now_ms >= g->crowd_end_ms || (!is_crowded && g->free_count > 0)) {
        return GATE_NONE;
    }
    for (int q = 0; q < QUEUES; q++) {
        uint32_t at = now_ms < ages_ms[q]
                          ? GATE_NONE
                          : oldest_of(g, q, is_crowded ? &source : NULL,
                                      now_ms - ages_ms[q]);
        if (at != GATE_NONE) {
            return turn_out(g, at, REASON_YIELDED);
        }
    }
    return GATE_NONE;
}

/* ---- events ------------------------------------------------------------- */

uint32_t gate_opened(struct gate *g, uint32_t conn, const char *address,
                     uint64_t now_ms)
{
    uint64_t source = source_of(address);
    if (g->free_count == 0) {
        refuse(g, REASON_FULL, address);
        return GATE_NONE;
    }
    if (is_address_full(g, source)) {
        refuse(g, REASON_ADDRESS_FULL, address);
        return GATE_NONE;
    }
    uint32_t ticket = g->free[--g->free_count];
    struct entry *e = &g->entries[ticket];
    *e = (struct entry){
        .opened_ms = now_ms, .source = source, .conn = conn, .is_used = true};
    snprintf(e->address, sizeof(e->address), "%s", address);
    push(g, SILENT, ticket);
    push(g, WAITING, ticket);
    return ticket;
}

/* The oldest of those that claim this name, if they are too many. */
static uint32_t too_many_of(const struct gate *g, uint64_t name)
{
    uint32_t count = 0, oldest = GATE_NONE;
    uint32_t at = g->queues[WAITING].first;
    for (; at != GATE_NONE; at = g->entries[at].links[WAITING].after) {
        if (g->entries[at].name == name) {
            oldest = oldest == GATE_NONE ? at : oldest;
            count++;
        }
    }
    return count > GPUL_STRANGERS_OF_NAME_MAX ? oldest : GATE_NONE;
}

uint32_t gate_claimed(struct gate *g, uint32_t ticket, const char *name)
{
    struct entry *e = entry_of(g, ticket);
    if (!e->is_shaking) {
        e->is_shaking = true;
        pull(g, SILENT, ticket);
    }
    e->name = text_hash(name);
    uint32_t oldest = e->name != 0 ? too_many_of(g, e->name) : GATE_NONE;
    return oldest == GATE_NONE ? GATE_NONE
                               : turn_out(g, oldest, REASON_NAME_FULL);
}

void gate_proved(struct gate *g, uint32_t ticket)
{
    leave(g, ticket);
}

void gate_closed(struct gate *g, uint32_t ticket, enum gpul_stranger kind,
                 const char *hint)
{
    refuse(g, (enum reason)kind, entry_of(g, ticket)->address);
    if (hint != NULL && g->hint[0] == 0) {
        snprintf(g->hint, sizeof(g->hint), "%s", hint);
    }
    leave(g, ticket);
}

uint32_t gate_expel(struct gate *g, uint64_t now_ms)
{
    for (int q = 0; q < QUEUES; q++) {
        if (due_ms(g, q) <= now_ms) {
            g->crowd_end_ms = now_ms + GPUL_CROWD_MS;
            return turn_out(g, g->queues[q].first,
                            q == SILENT ? REASON_SILENT : REASON_SLOW);
        }
    }
    return GATE_NONE;
}

const char *gate_take_hint(struct gate *g)
{
    if (g->hint[0] == 0 || g->is_hint_taken) {
        return NULL;
    }
    g->is_hint_taken = true;
    return g->hint;
}

uint64_t gate_next_deadline_ms(const struct gate *g)
{
    uint64_t due = g->unsaid.total > 0 ? g->next_line_ms : UINT64_MAX;
    for (int q = 0; q < QUEUES; q++) {
        uint64_t other = due_ms(g, q);
        due = other < due ? other : due;
    }
    return due;
}

uint32_t gate_held(const struct gate *g)
{
    return GPUL_STRANGERS_MAX - g->free_count;
}
