/* SPDX-License-Identifier: Apache-2.0
 *
 * PAIRING, mode CHECK: pairs of nodes are measured, round after round, until
 * the search for a bad one has its answer. docs/check.md, "Pair trials".
 *
 * Happy path: pairphase_begin -> pairphase_listening of each node ->
 * pairphase_result of the nodes of a round, and again -> pairphase_ended of
 * each node -> selftest_begin. One order a node and round, one answer: O(N)
 * messages a round.
 */
#include "coordinator/core.h"

#define MIB (UINT64_C(1) << 20)

enum {
    /* Each way of a trial, and what ends it on a fast link. */
    RUN_MS = 200,
    BYTES_MAX_MIB = 256,
    /* Both ways of a trial, dials that are not answered included. */
    TRIAL_MS = 12000,
    /* A probe is killed when it is this late; then its agent says so. */
    LATE_MS = 4000,
    /* Between two orders there is at most one trial of others. */
    IDLE_MS = TRIAL_MS + LATE_MS + 14000,
    OPEN_MS = 10000,
    CLOSE_MS = 10000,
};

/* A wait within the phase, from now on. */
static void await_until(struct rendezvous *r, uint64_t bound_ms)
{
    r->phase_deadline_ms = r->now_ms + bound_ms;
    r->phase_half_ms = r->now_ms + bound_ms / 2;
}

static void out_of_memory(struct rendezvous *r, const struct gpul_error *err)
{
    outbox_fail(&r->out, err->status, err->text);
}

uint32_t pairphase_bound_ms(const struct rendezvous *r)
{
    switch (r->pairtest.step) {
    case PAIRTEST_ROUND:
        return TRIAL_MS + LATE_MS;
    case PAIRTEST_CLOSING:
        return CLOSE_MS;
    default:
        return OPEN_MS;
    }
}

const char *pairphase_doing(const struct rendezvous *r)
{
    switch (r->pairtest.step) {
    case PAIRTEST_ROUND:
        return "told the result of their trial";
    case PAIRTEST_CLOSING:
        return "ended their probe of the pair trials";
    default:
        return "started their probe of the pair trials";
    }
}

/* NULL: there is something to measure. */
static const char *why_not(const struct rendezvous *r)
{
    if (r->roster.count == 1) {
        return "there is only one node";
    }
    return r->roster.is_spread ? NULL : "all nodes are on one host";
}

/* False: there will be none, or no memory is left. */
static bool prepare(struct rendezvous *r, const char *why)
{
    struct gpul_error err;
    const char *text = why_not(r);
    pairtest_release(&r->pairtest);
    int rc = text == NULL ? pairtest_init(&r->pairtest, r->roster.count, &err)
                          : GPUL_ENOTFOUND;
    if (rc == GPUL_ENOMEM) {
        out_of_memory(r, &err);
    } else if (rc != 0) {
        pairreport_skipped(r, text != NULL ? text : err.text, text == NULL);
        selftest_begin(r, why);
    }
    return rc == 0;
}

void pairphase_begin(struct rendezvous *r, const char *why)
{
    if (r->job.self_test == GPUL__SELF_TEST__LEVEL__OFF) {
        selftest_begin(r, why); /* nothing is to be measured */
        return;
    }
    if (!prepare(r, why)) {
        return;
    }
    core_enter(r, PHASE_PAIRING, OPEN_MS, "%s", why);
    core_await_all(r);
    Gpul__PairStart start = GPUL__PAIR_START__INIT;
    start.node_count = r->roster.count;
    start.idle_ms = IDLE_MS;
    start.n_addresses = 1;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PAIR_START;
    frame.pair_start = &start;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        start.node_rank = i;
        start.addresses = &r->roster.nodes[i].address;
        core_send(r, &r->roster.nodes[i], &frame);
    }
}

/* ---- rounds -------------------------------------------------------------- */

/* One for each pair and round; nobody can guess it. Both nodes get the same. */
static uint64_t token_of(const struct rendezvous *r, uint32_t a, uint32_t b)
{
    uint64_t low = a < b ? a : b;
    return selftest_token(r) ^ ((uint64_t)r->pairtest.trial << 32 | low);
}

static void order_trial(struct rendezvous *r, uint32_t i)
{
    const struct pairtest_node *self = &r->pairtest.nodes[i];
    const struct pairtest_node *peer = &r->pairtest.nodes[self->partner];
    Gpul__TrialStart start = GPUL__TRIAL_START__INIT;
    start.trial = r->pairtest.trial;
    start.token = token_of(r, i, self->partner);
    start.peer_rank = self->partner;
    start.peer_address = r->roster.nodes[self->partner].address;
    start.peer_port = peer->port;
    start.dials_first = self->dials_first;
    start.run_ms = RUN_MS;
    start.bytes_max = BYTES_MAX_MIB * MIB;
    start.deadline_ms = TRIAL_MS;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_TRIAL_START;
    frame.trial_start = &start;
    core_send(r, &r->roster.nodes[i], &frame);
}

/* Nodes that rest have nothing to say; that they live, their leases tell. */
static void order_round(struct rendezvous *r)
{
    await_until(r, pairphase_bound_ms(r));
    core_await_all(r);
    for (uint32_t i = 0; i < r->roster.count; i++) {
        if (r->pairtest.nodes[i].partner == PAIRTEST_RESTS) {
            core_answer(r, &r->roster.nodes[i]);
        } else {
            order_trial(r, i);
        }
    }
}

static void close_probes(struct rendezvous *r)
{
    r->pairtest.step = PAIRTEST_CLOSING;
    await_until(r, CLOSE_MS);
    core_await_all(r);
    Gpul__PairEnd end = GPUL__PAIR_END__INIT;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PAIR_END;
    frame.pair_end = &end;
    core_send_all(r, &frame);
}

static void begin_round(struct rendezvous *r)
{
    if (pairtest_next(&r->pairtest)) {
        order_round(r);
    } else {
        pairreport_verdicts(r);
        close_probes(r);
    }
}

static void fail(struct rendezvous *r, const struct node *node, const char *why)
{
    struct text text;
    text_format(&text, "the probe of the pair trials on node %s failed: %s",
                node->name, why);
    selftest_fail(r, OUTCOME_CHECK_FAILED, node, text.bytes);
}

void pairphase_listening(struct rendezvous *r, struct node *node,
                         const Gpul__PairListening *listening)
{
    if (r->phase != PHASE_PAIRING || r->pairtest.step != PAIRTEST_OPENING ||
        node->has_answered) {
        return;
    }
    if (listening->error[0] != 0) {
        fail(r, node, listening->error);
        return;
    }
    r->pairtest.nodes[roster_index(&r->roster, node)].port =
        (uint16_t)listening->ports[0];
    if (core_answer(r, node)) {
        begin_round(r);
    }
}

static void finish_round(struct rendezvous *r)
{
    struct gpul_error err;
    pairreport_round(r);
    if (pairtest_finish(&r->pairtest, &err) != 0) {
        out_of_memory(r, &err);
        return;
    }
    begin_round(r);
}

void pairphase_result(struct rendezvous *r, struct node *node,
                      const Gpul__TrialResult *result)
{
    if (r->phase != PHASE_PAIRING || r->pairtest.step != PAIRTEST_ROUND ||
        node->has_answered) {
        return;
    }
    uint32_t node_rank = roster_index(&r->roster, node);
    int told = pairtest_tell(&r->pairtest, node_rank, result);
    if (told < 0) {
        outbox_fail(&r->out, told, "out of memory for the result of a trial");
    } else if (r->pairtest.nodes[node_rank].has_told && core_answer(r, node)) {
        finish_round(r);
    }
}

void pairphase_ended(struct rendezvous *r, struct node *node,
                     const Gpul__PairEnd *end)
{
    if (r->phase != PHASE_PAIRING) {
        return;
    }
    if (r->pairtest.step != PAIRTEST_CLOSING) {
        fail(r, node,
             end->error[0] != 0 ? end->error : "it ended before its time");
    } else if (core_answer(r, node)) {
        pairtest_release(&r->pairtest);
        selftest_begin(r, "the pair trials are over");
    }
}
