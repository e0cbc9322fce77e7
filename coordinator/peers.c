/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections: a stranger until its Hello, then a node's only one. Each has
 * one deadline: the Hello's, later the lease that every message renews.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/units.h"
#include "coordinator/core.h"

static bool peer_exists(const struct rendezvous *r, uint32_t conn)
{
    return conn < r->peer_count && r->peers[conn].address != NULL;
}

void peers_expect(struct rendezvous *r, uint32_t conn, uint64_t ms)
{
    gpul_minheap_set(&r->silences, conn, r->now_ms + ms);
}

static void forget(struct rendezvous *r, uint32_t conn)
{
    gpul_minheap_remove(&r->silences, conn);
    guests_leave(&r->guests, conn);
    free(r->peers[conn].address);
    free(r->peers[conn].name);
    r->peers[conn] = (struct peer){0};
}

void peers_end(struct rendezvous *r, uint32_t conn)
{
    outbox_close(&r->out, conn);
    forget(r, conn);
}

/* `conn`: gives way to another one that has shown the same key. */
static void make_room(struct rendezvous *r, uint32_t conn)
{
    if (conn == GUESTS_NONE) {
        return;
    }
    uint64_t count = guests_refused(&r->guests, r->now_ms);
    if (count > 0) {
        outbox_log(&r->out, true,
                   "closed %" PRIu64 " connection%s with a key that said no "
                   "Hello: too many of one node; the last is of %s, from %s",
                   count, gpul_plural(count), r->peers[conn].name,
                   r->peers[conn].address);
    }
    peers_end(r, conn);
}

void peers_open(struct rendezvous *r, uint32_t conn, const char *address,
                const char *name)
{
    if (conn >= r->peer_count || peer_exists(r, conn) ||
        r->phase >= PHASE_DONE) {
        outbox_close(&r->out, conn);
        return;
    }
    struct peer *peer = &r->peers[conn];
    peer->address = text_copy(address);
    peer->name = name != NULL ? text_copy(name) : NULL;
    if (peer->address == NULL || (name != NULL && peer->name == NULL)) {
        outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for a connection");
        return;
    }
    peer->node = NULL;
    peer->pace = (struct pace){0};
    outbox_allow(&r->out, conn, GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HELLO));
    peers_expect(r, conn, GPUL_HELLO_DEADLINE_MS);
    if (name != NULL) {
        make_room(r, guests_enter(&r->guests, conn, name));
    }
}

void peers_turn_away(struct rendezvous *r, uint32_t conn,
                     Gpul__Refuse__Reason reason, const char *text)
{
    assert(peer_exists(r, conn)); /* who was closed would not hear of it */
    Gpul__Refuse refuse = GPUL__REFUSE__INIT;
    refuse.reason = reason;
    refuse.text = wire_text(text);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_REFUSE;
    frame.refuse = &refuse;
    outbox_send(&r->out, conn, &frame);
    outbox_log(&r->out, false, "refused %s: %s", r->peers[conn].address, text);
    peers_end(r, conn);
}

void peers_refuse(struct rendezvous *r, uint32_t conn,
                  Gpul__Refuse__Reason reason, const char *text)
{
    peers_turn_away(r, conn, reason, text);
    if (r->refusals_told < REFUSALS_TOLD_MAX) {
        r->refusals_told++;
        core_tell_text(r, GPUL__EVENT__KIND__NODE_REFUSED, NULL, "%s", text);
    }
}

void peers_depart(struct rendezvous *r, struct node *node, const char *why)
{
    relay_input_left(r, node);
    outbox_log(&r->out, false, "lost %s: %s", node->name, why);
    core_tell_member(r, GPUL__EVENT__KIND__NODE_LEFT, node, why);
    ending_lost(r, node, why);
}

bool peers_depart_gone(struct rendezvous *r, struct node *node)
{
    struct text words;
    if (r->phase == PHASE_GATHERING || node->last_words == NULL) {
        return false;
    }
    text_format(&words, "%s", node->last_words);
    peers_depart(r, node, words.bytes);
    return true;
}

void peers_lose(struct rendezvous *r, struct node *node, const char *why)
{
    uint32_t conn = node->conn;
    roster_leave(&r->roster, node);
    peers_end(r, conn);
    if (r->phase >= PHASE_DONE) {
        ending_left(r);
    } else {
        peers_depart(r, node, why);
    }
}

static void close_member(struct rendezvous *r, struct node *node,
                         const char *why)
{
    roster_leave(&r->roster, node);
    if (r->phase >= PHASE_DONE) {
        ending_left(r);
    } else if (!peers_depart_gone(r, node) && !away_begin(r, node, why)) {
        peers_depart(r, node, away_words(r, node, why));
    }
}

void peers_closed(struct rendezvous *r, uint32_t conn, const char *why)
{
    if (!peer_exists(r, conn)) {
        return;
    }
    struct node *node = r->peers[conn].node;
    forget(r, conn);
    if (node != NULL) {
        close_member(r, node, why != NULL ? why : "it closed its connection");
    }
}

static void expire(struct rendezvous *r, uint32_t conn)
{
    struct node *node = r->peers[conn].node;
    struct text why;
    if (node != NULL) {
        text_format(&why, "nothing was heard from it for %u s",
                    GPUL_LEASE_MS / 1000);
        peers_lose(r, node, why.bytes);
        return;
    }
    outbox_log(&r->out, false, "closed %s: it sent no Hello within %u s",
               r->peers[conn].address, GPUL_HELLO_DEADLINE_MS / 1000);
    peers_end(r, conn);
}

void peers_tick(struct rendezvous *r, bool is_late)
{
    uint64_t due_ms;
    uint32_t conn;
    while (gpul_minheap_peek(&r->silences, &due_ms, &conn) &&
           due_ms <= r->now_ms) {
        if (is_late) {
            peers_expect(r, conn, GPUL_HELLO_DEADLINE_MS);
        } else {
            expire(r, conn);
        }
    }
}
