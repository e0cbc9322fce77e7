/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input passes through: bytes down, credit up. The accounts are in
 * coordinator/input.h.
 */
#include <signal.h>

#include "coordinator/core.h"

/* Tell the front end what it may send. When nobody reads any more that is
 * nothing; other ranks may yet read, after a retry. */
static void grant(struct rendezvous *r)
{
    uint64_t bytes;
    while ((bytes = input_grant(&r->input)) > 0) {
        Gpul__InputCredit credit = GPUL__INPUT_CREDIT__INIT;
        credit.bytes = bytes;
        Gpul__Frame frame = GPUL__FRAME__INIT;
        frame.body_case = GPUL__FRAME__BODY_INPUT_CREDIT;
        frame.input_credit = &credit;
        core_tell(r, &frame);
    }
}

/* The connections of all that read; NULL without any. */
static uint32_t *reader_conns(struct rendezvous *r, uint32_t *count)
{
    *count = 0;
    if (r->input.readers.count == 0) {
        return NULL;
    }
    uint32_t *conns =
        outbox_alloc(&r->out, r->input.readers.count * sizeof(*conns));
    for (uint32_t i = 0; conns != NULL && i < r->roster.count; i++) {
        const struct node *node = &r->roster.nodes[i];
        if (input_is_read_by(&r->input, i) && node_is_here(node)) {
            conns[(*count)++] = node->conn;
        }
    }
    return conns;
}

/* To every node that reads, encoded once. */
static void pass_on(struct rendezvous *r, const Gpul__Input *input)
{
    uint32_t count;
    const uint32_t *conns = reader_conns(r, &count);
    Gpul__Input copy = *input;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = &copy;
    if (count == 1) {
        outbox_send(&r->out, conns[0], &frame);
    } else if (count > 1) {
        outbox_send_many(&r->out, conns, count, &frame);
    }
}

static void send_one(struct rendezvous *r, const struct node *node,
                     Gpul__Input *piece)
{
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = piece;
    core_send(r, node, &frame);
}

/* To this node, or to all that read: what has come before, in pieces as the
 * wire wants them. */
static void pass_again(struct rendezvous *r, const struct node *node,
                       const uint8_t *bytes, size_t n)
{
    Gpul__Input piece = GPUL__INPUT__INIT;
    for (size_t at = 0; at < n || r->input.has_end; at += piece.data.len) {
        size_t left = n - at;
        /* Borrowed for the encoding, which does not write. */
        piece.data.data = left > 0 ? (uint8_t *)(uintptr_t)(bytes + at) : NULL;
        piece.data.len =
            left < GPUL_INPUT_BYTES_MAX ? left : GPUL_INPUT_BYTES_MAX;
        piece.is_end = left == 0;
        if (node != NULL) {
            send_one(r, node, &piece);
        } else {
            pass_on(r, &piece);
        }
        if (piece.is_end) {
            return;
        }
    }
}

void relay_input_begin(struct rendezvous *r)
{
    if (!r->input.is_wanted) {
        return;
    }
    input_begin(&r->input);
    for (uint32_t i = 0; i < r->roster.count; i++) {
        const struct node *node = &r->roster.nodes[i];
        if (r->input.is_all || node_has_rank(node, r->input.rank)) {
            input_add(&r->input, i);
        }
    }
    pass_again(r, NULL, r->input.kept.data, r->input.kept.used);
    grant(r);
}

void relay_input_end(struct rendezvous *r)
{
    input_begin(&r->input);
}

void relay_input(struct rendezvous *r, const Gpul__Input *input)
{
    if (r->phase >= PHASE_DONE) {
        return;
    }
    int rc = input_take(&r->input, input);
    if (rc == GPUL_ENOMEM) {
        outbox_fail(&r->out, rc, "out of memory for standard input");
    } else if (rc == GPUL_ELIMIT && r->phase < PHASE_DRAINING) {
        outcome_decide(&r->outcome, OUTCOME_INTERNAL, "internal", NULL,
                       "the front end sent more standard input than the ranks "
                       "had room for");
        ending_begin(r, SIGTERM);
    } else if (rc == 0 &&
               (r->phase == PHASE_RUNNING || r->phase == PHASE_DRAINING)) {
        pass_on(r, input);
    }
}

void relay_input_credit(struct rendezvous *r, struct node *node,
                        const Gpul__InputCredit *credit)
{
    uint32_t index = roster_index(&r->roster, node);
    if (!input_is_read_by(&r->input, index)) {
        return;
    }
    if (!input_credit(&r->input, index, credit)) {
        peers_lose(r, node, "it took more standard input than it was sent");
        return;
    }
    grant(r);
}

void relay_input_left(struct rendezvous *r, const struct node *node)
{
    uint32_t index = roster_index(&r->roster, node);
    if (input_is_read_by(&r->input, index)) {
        input_drop(&r->input, index);
        grant(r);
    }
}

bool relay_input_is_owed(const struct rendezvous *r, const struct node *node)
{
    return input_is_owed(&r->input, roster_index(&r->roster, node));
}

void relay_input_away(struct rendezvous *r, const struct node *node)
{
    input_leave(&r->input, roster_index(&r->roster, node));
}

/* The end is said again: the agent before may have died of it. */
void relay_input_back(struct rendezvous *r, const struct node *node)
{
    uint32_t index = roster_index(&r->roster, node);
    const uint8_t *bytes;
    size_t n;
    if (input_lacks(&r->input, index, &bytes, &n)) {
        pass_again(r, node, bytes, n);
        input_return(&r->input, index);
    }
}
