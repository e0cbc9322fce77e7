/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/rendezvous.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core.h"

int rendezvous_create(struct rendezvous **out,
                      const struct rendezvous_config *config, uint64_t now_ms,
                      struct gpul_error *err)
{
    struct rendezvous *r = calloc(1, sizeof(*r));
    *out = r;
    if (r == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    r->config = *config;
    r->now_ms = now_ms;
    r->phase = PHASE_START;
    r->phase_deadline_ms = now_ms + START_DEADLINE_MS;
    r->phase_half_ms = NEVER_MS;
    r->job_deadline_ms = NEVER_MS;
    r->warning_at_ms = NEVER_MS;
    outbox_init(&r->out);
    outcome_init(&r->outcome);
    gpul_buf_init(&r->roster_frames,
                  (size_t)GPUL_NODES_MAX * 2 * GPUL_ADDRESS_BYTES_MAX);
    return 0;
}

void rendezvous_destroy(struct rendezvous *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; r->peers != NULL && i < r->peer_count; i++) {
        free(r->peers[i].address);
        free(r->peers[i].name);
    }
    free(r->peers);
    free(r->rank_ended);
    stopped_release(&r->stopped);
    guests_release(&r->guests);
    gpul_minheap_release(&r->silences);
    gpul_minheap_release(&r->aways);
    gpul_buf_release(&r->roster_frames);
    gputest_release(r);
    checking_release(r);
    links_release(&r->links);
    pairtest_release(&r->pairtest);
    input_release(&r->input);
    stalls_release(&r->stalls);
    outcome_release(&r->outcome);
    roster_release(&r->roster);
    job_release(&r->job);
    outbox_release(&r->out);
    free(r);
}

static void acknowledge(struct rendezvous *r, const struct node *node,
                        const Gpul__Heartbeat *heartbeat)
{
    Gpul__HeartbeatAck ack = GPUL__HEARTBEAT_ACK__INIT;
    ack.sequence = heartbeat->sequence;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_HEARTBEAT_ACK;
    frame.heartbeat_ack = &ack;
    core_send(r, node, &frame);
}

/* Messages about a generation; older ones are the normal race. */
static void generation_message(struct rendezvous *r, struct node *node,
                               const Gpul__Frame *frame)
{
    if (frame->generation != r->generation) {
        return;
    }
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_READY:
        placing_ready(r, node, frame->ready);
        return;
    case GPUL__FRAME__BODY_SURVEY:
        checking_surveyed(r, node, frame->survey);
        return;
    case GPUL__FRAME__BODY_CLOCK_PONG:
        checking_pong(r, node, frame->clock_pong);
        return;
    case GPUL__FRAME__BODY_LINK_LISTENING:
        linking_listening(r, node, frame->link_listening);
        return;
    case GPUL__FRAME__BODY_LINK_REPORT:
        linking_report(r, node, frame->link_report);
        return;
    case GPUL__FRAME__BODY_PAIR_LISTENING:
        pairphase_listening(r, node, frame->pair_listening);
        return;
    case GPUL__FRAME__BODY_TRIAL_RESULT:
        pairphase_result(r, node, frame->trial_result);
        return;
    case GPUL__FRAME__BODY_PAIR_END:
        pairphase_ended(r, node, frame->pair_end);
        return;
    case GPUL__FRAME__BODY_PROBE_LISTENING:
        selftest_listening(r, node, frame->probe_listening);
        return;
    case GPUL__FRAME__BODY_PROBE_RESULT:
        if (phase_waits_for_probes(r->phase)) {
            gputest_result(r, node, frame->probe_result);
        } else {
            selftest_result(r, node, frame->probe_result);
        }
        return;
    case GPUL__FRAME__BODY_PROBE_FACTS:
        gputest_facts(r, node, frame->probe_facts);
        return;
    case GPUL__FRAME__BODY_PROBE_ID:
        gputest_id(r, node, frame->probe_id);
        return;
    case GPUL__FRAME__BODY_PROBE_PHASE:
        gputest_phase(r, node, frame->probe_phase);
        return;
    case GPUL__FRAME__BODY_EXITS:
        running_exits(r, node, frame->exits);
        return;
    case GPUL__FRAME__BODY_IDLE:
        ending_idle(r, node, frame->idle);
        return;
    case GPUL__FRAME__BODY_OUTPUT:
        relay_output(r, node, frame->output);
        return;
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        relay_input_credit(r, node, frame->input_credit);
        return;
    case GPUL__FRAME__BODY_STALL:
        hang_stall(r, node, frame->stall);
        return;
    case GPUL__FRAME__BODY_ENV_REPORT:
        relay_env_report(r, node, frame->env_report);
        return;
    default:
        peers_lose(r, node, "it sent a message out of turn");
        return;
    }
}

static void member_message(struct rendezvous *r, struct node *node,
                           const Gpul__Frame *frame)
{
    if (frame->epoch != r->config.epoch) {
        return; /* meant for an earlier coordinator */
    }
    peers_expect(r, node->conn, GPUL_LEASE_MS);
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_HEARTBEAT:
        acknowledge(r, node, frame->heartbeat);
        return;
    case GPUL__FRAME__BODY_NOTICE:
        relay_notice(r, node, frame->notice);
        return;
    case GPUL__FRAME__BODY_LEAVE:
        ending_leave(r, node, frame->leave);
        return;
    default:
        generation_message(r, node, frame);
        return;
    }
}

static void peer_message(struct rendezvous *r, uint32_t conn,
                         const Gpul__Frame *frame)
{
    if (conn >= r->peer_count || r->peers[conn].address == NULL) {
        return; /* on its way when the connection was closed */
    }
    struct node *node = r->peers[conn].node;
    if (node != NULL &&
        !pace_take(&r->peers[conn].pace, frame, node->rank_count, r->now_ms)) {
        peers_lose(r, node, "it sent more messages than a node has cause for");
    } else if (node != NULL) {
        member_message(r, node, frame);
    } else if (frame->body_case == GPUL__FRAME__BODY_HELLO) {
        hello_judge(r, conn, frame);
    } else {
        peers_refuse(r, conn, GPUL__REFUSE__REASON__BAD_MESSAGE,
                     "the first message of a node must be a Hello");
    }
}

static void tell_waiting(struct rendezvous *r)
{
    struct waiting waiting;
    core_waiting(r, &waiting);
    r->phase_half_ms = NEVER_MS;
    if (waiting.have == waiting.need) {
        return;
    }
    outbox_log(&r->out, false, "%s: still waiting for %s", phase_name(r->phase),
               waiting.missing.bytes);
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__WAITING;
    event.have = waiting.have;
    event.need = waiting.need;
    event.text = waiting.missing.bytes;
    if (phase_is_on_gpus(r->phase)) {
        event.phase = wire_text(phase_short_name(r->phase));
    }
    core_tell_event(r, &event);
}

/* While a node is away, its probes are gone with its agent: what others say
 * of their end says nothing new. */
static uint64_t suspicion_due_ms(const struct rendezvous *r)
{
    bool is_due = r->suspicion.is_held && r->aways.count == 0;
    return is_due ? r->suspicion.due_ms : NEVER_MS;
}

/* Before the bound of the phase is; but on host memory who is silent at that
 * bound is the cause of all suspicion, and so is who is away. */
static void judge_suspicion(struct rendezvous *r)
{
    bool is_over = r->phase_deadline_ms <= r->now_ms;
    bool is_ring = r->phase == PHASE_LISTENING || r->phase == PHASE_PROBING;
    bool has_cause = is_ring || r->aways.count > 0;
    if (!r->suspicion.is_held ||
        (!is_over && suspicion_due_ms(r) > r->now_ms)) {
        return;
    }
    if (is_over && has_cause) {
        r->suspicion.is_held = false;
    } else {
        selftest_convict(r);
    }
}

static void tick(struct rendezvous *r, bool is_late)
{
    peers_tick(r, is_late);
    away_tick(r, is_late);
    if (r->phase_half_ms <= r->now_ms) {
        tell_waiting(r);
    }
    judge_suspicion(r);
    if (r->phase_deadline_ms <= r->now_ms) {
        ending_deadline(r);
    }
    hang_tick(r);
    if (r->warning_at_ms <= r->now_ms) {
        relay_warning(r);
    }
    if (r->job_deadline_ms <= r->now_ms) {
        operator_timeout(r);
    }
}

static void dispatch(struct rendezvous *r, const struct rendezvous_event *event,
                     bool is_late)
{
    switch (event->kind) {
    case RENDEZVOUS_PEER_OPENED:
        peers_open(r, event->conn, event->text, event->name);
        return;
    case RENDEZVOUS_PEER_CLOSED:
        peers_closed(r, event->conn, event->text);
        return;
    case RENDEZVOUS_PEER_MESSAGE:
        peer_message(r, event->conn, event->frame);
        return;
    case RENDEZVOUS_OPERATOR_MESSAGE:
        operator_message(r, event->frame);
        return;
    case RENDEZVOUS_OPERATOR_CLOSED:
        operator_closed(r);
        return;
    case RENDEZVOUS_NOTICE:
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL, "%s", event->text);
        return;
    case RENDEZVOUS_STRANGERS:
        r->stranger_count = event->count;
        text_format(&r->strangers, "%s", event->text);
        return;
    case RENDEZVOUS_TICK:
        tick(r, is_late);
        return;
    }
}

int rendezvous_step(struct rendezvous *r, struct rendezvous_actions *actions,
                    const struct rendezvous_event *event,
                    struct gpul_error *err)
{
    uint64_t due_ms = rendezvous_next_deadline_ms(r);
    bool is_late = event->now_ms > due_ms && event->now_ms - due_ms > STALL_MS;
    *actions = (struct rendezvous_actions){0};
    assert(event->now_ms >= r->now_ms);
    r->now_ms = event->now_ms;
    r->real_ns = event->real_ns;
    outbox_clear(&r->out);
    if (r->phase != PHASE_OVER) {
        dispatch(r, event, is_late);
    }
    if (r->out.error.status != 0) {
        return gpul_fail(err, r->out.error.status, "%s", r->out.error.text);
    }
    actions->items = r->out.items;
    actions->count = r->out.count;
    return 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t rendezvous_next_deadline_ms(const struct rendezvous *r)
{
    uint64_t due_ms = earlier(r->phase_deadline_ms, r->phase_half_ms);
    due_ms = earlier(due_ms, r->job_deadline_ms);
    due_ms = earlier(due_ms, r->warning_at_ms);
    due_ms = earlier(due_ms, suspicion_due_ms(r));
    due_ms = earlier(due_ms, hang_due_ms(r));
    uint64_t first_ms;
    uint32_t id;
    if (gpul_minheap_peek(&r->silences, &first_ms, &id)) {
        due_ms = earlier(due_ms, first_ms);
    }
    if (gpul_minheap_peek(&r->aways, &first_ms, &id)) {
        due_ms = earlier(due_ms, first_ms);
    }
    return r->phase == PHASE_OVER ? NEVER_MS : due_ms;
}

/* ---- invariants ---- */

static void check_connections(const struct rendezvous *r)
{
    uint32_t members = 0;
    for (uint32_t conn = 0; conn < r->peer_count; conn++) {
        const struct peer *peer = &r->peers[conn];
        assert((peer->address != NULL) == (r->silences.places[conn] != 0));
        assert(peer->node == NULL || peer->address != NULL);
        assert(peer->node == NULL || peer->node->conn == conn);
        members += peer->node != NULL;
    }
    assert(members == r->roster.joined);
}

static void check_ranks(const struct rendezvous *r)
{
    uint32_t next = 0;
    uint32_t ranks_left = 0;
    uint64_t uncredited_bytes = 0;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        const struct node *node = &r->roster.nodes[i];
        assert(node->first_rank == next && node->rank_count > 0);
        assert(node->ranks_left <= node->rank_count);
        next += node->rank_count;
        ranks_left += node->ranks_left;
        uncredited_bytes += node->uncredited_bytes + node->orphan_bytes;
    }
    assert(next == r->world_size);
    assert(r->rank_ended == NULL || ranks_left == r->ranks_left);
    assert(uncredited_bytes == r->uncredited_bytes);
}

/* Whoever reads is there, has ranks, and has taken no more than was sent. */
/* Who is away has all that it will not be sent again. */
static void check_input_away(const struct rendezvous *r)
{
    const struct input *in = &r->input;
    uint64_t from = in->received;
    uint32_t first;
    gpul_minheap_peek(&in->away, &from, &first);
    assert(in->waiting.used == in->received - from);
    for (size_t i = 0; i < in->away.count; i++) {
        uint32_t id = in->away.items[i].id;
        assert(r->roster.nodes[id].is_away || r->phase >= PHASE_DONE);
        assert(input_is_read_by(in, id));
    }
}

static void check_input(const struct rendezvous *r)
{
    const struct input *in = &r->input;
    for (size_t i = 0; i < in->readers.count; i++) {
        const struct node *node = &r->roster.nodes[in->readers.items[i].id];
        assert(node_is_here(node) || node->is_away || r->phase >= PHASE_DONE);
        assert(in->is_all || node_has_rank(node, in->rank));
        assert(in->readers.items[i].key <= in->received);
    }
    assert(in->received <= in->granted);
    assert(in->kept.used == 0 || in->kept.used == in->received);
}

/* `pending` says how many nodes the phase waits for: never none, or it would
 * have ended. */
static void check_pending(const struct rendezvous *r)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        const struct node *node = &r->roster.nodes[i];
        pending += r->phase == PHASE_GATHERING ? !node_is_here(node)
                                               : !node->has_answered;
    }
    assert(r->phase == PHASE_RUNNING || pending == r->pending);
    assert(pending > 0);
}

/* A place of an open roster belongs to a connection. */
static void check_names(const struct rendezvous *r)
{
    const struct roster *roster = &r->roster;
    if (r->phase < PHASE_GATHERING || roster->count == 0) {
        return;
    }
    assert(!roster->is_open || r->phase != PHASE_GATHERING ||
           roster->named == roster->joined);
    assert(roster->is_open || roster->named == roster->count);
    for (uint32_t i = 0; i < roster->named; i++) {
        assert(roster_find(roster, roster->by_name[i]->name) ==
               roster->by_name[i]);
    }
}

/* Who is away is waited for; a generation is not put together without it. */
static void check_aways(const struct rendezvous *r)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        const struct node *node = &r->roster.nodes[i];
        assert(node->is_away == (r->aways.places[i] != 0));
        assert(!node->is_away || (!node_is_here(node) && !node->is_idle));
        assert(!node->is_away || !node->has_answered ||
               r->phase == PHASE_RUNNING);
    }
    assert(r->aways.count == 0 ||
           (r->phase >= PHASE_ASSIGNING && r->phase <= PHASE_DRAINING &&
            r->phase != PHASE_REPORTING));
}

static bool has_ports(const struct rendezvous *r)
{
    for (uint32_t i = 0; i < r->roster.count; i++) {
        if (r->roster.nodes[i].port_base == 0) {
            return false;
        }
    }
    return true;
}

/* The counters say what the ranks have passed, and no phase is behind it. */
static void check_probes(const struct rendezvous *r)
{
    uint32_t passed[PROBES_STEP_COUNT] = {0};
    struct waiting waiting;
    for (uint32_t rank = 0; rank < r->probes.count; rank++) {
        for (int step = 1; step <= r->probes.steps[rank]; step++) {
            passed[step]++;
        }
    }
    assert(memcmp(passed, r->probes.passed, sizeof(passed)) == 0);
    assert(r->probes.count == facts_rank_count(&r->facts));
    gputest_waiting(r, &waiting);
    assert(waiting.have < waiting.need || r->suspicion.is_held ||
           r->aways.count > 0);
}

void rendezvous_check(const struct rendezvous *r)
{
    assert(r->outcome.is_decided == (r->phase >= PHASE_DRAINING));
    check_connections(r);
    check_names(r);
    check_input(r);
    check_input_away(r);
    if (r->generation > 0) {
        check_ranks(r);
    }
    if (r->phase >= PHASE_GATHERING && r->phase <= PHASE_DRAINING) {
        check_pending(r);
        check_aways(r);
    }
    if (r->phase >= PHASE_FACTS && r->phase <= PHASE_RUNNING) {
        assert(has_ports(r));
    }
    if (phase_waits_for_probes(r->phase)) {
        check_probes(r);
    }
    assert(r->phase != PHASE_OVER || r->roster.joined == 0);
}
