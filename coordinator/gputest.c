/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test on GPUs, docs/gpu-self-test.md: the scouts' facts compared,
 * then one probe for each device followed through its phases. A phase that
 * waits for probes ends when every rank has passed it; ranks may be ahead of
 * it, since what each says comes over its own node's connection.
 *
 * Happy path: gputest_begin -> gputest_facts of each node -> gputest_phase,
 * gputest_id and at last gputest_result of each probe -> selftest_pass.
 */
#include "common/units.h"
#include "coordinator/core.h"

static void out_of_memory(struct rendezvous *r)
{
    outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for the self-test");
}

void gputest_release(struct rendezvous *r)
{
    facts_release(&r->facts);
    probes_release(&r->scouts);
    probes_release(&r->probes);
}

/* ---- facts ---- */

void gputest_begin(struct rendezvous *r, const char *why)
{
    core_enter(r, PHASE_FACTS, r->job.listen_deadline_ms, "%s", why);
    core_await_all(r);
    if (facts_init(&r->facts, r->roster.count) != 0 ||
        probes_init(&r->scouts, r->roster.count, r->now_ms) != 0) {
        out_of_memory(r);
        return;
    }
    selftest_send_starts(r, GPUL__SELF_TEST__BACKEND__BACKEND_NCCL);
}

static void tell(struct rendezvous *r, Gpul__Event__Kind kind, const char *text)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = kind;
    event.text = wire_text(text);
    event.backend = wire_text(selftest_backend(r));
    event.is_simulated = r->facts.is_simulated;
    core_tell_event(r, &event);
}

static void tell_facts(struct rendezvous *r, bool is_good)
{
    struct text text;
    bool is_setting;
    for (size_t at = 0;
         facts_next_line(&r->facts, &text, &is_setting, &at, &r->roster);) {
        tell(r,
             is_setting ? GPUL__EVENT__KIND__SELF_TEST_SETTINGS
                        : GPUL__EVENT__KIND__SELF_TEST_FACTS,
             text.bytes);
    }
    for (size_t at = 0;
         is_good && facts_next_notice(&r->facts, &text, &at, &r->roster);) {
        if (r->job.is_check && checking_noticed(r, text.bytes)) {
            continue;
        }
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL, "%s", text.bytes);
    }
}

/* Is there a sweep to be had that the sweep of all ranks is not? */
static bool has_groups(const struct rendezvous *r)
{
    return r->roster.count > 1 && r->probes.count > r->roster.count;
}

/* Where NCCL cannot, that much is not known, and is said. */
static bool sweeps_nodes(const struct rendezvous *r)
{
    return has_groups(r) && !r->facts.has_no_split;
}

static void send_begin(struct rendezvous *r)
{
    Gpul__SelfTest self_test = GPUL__SELF_TEST__INIT;
    self_test.level = r->job.self_test;
    self_test.listen_deadline_ms = r->job.listen_deadline_ms;
    self_test.run_deadline_ms = r->job.run_deadline_ms;
    self_test.backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    self_test.nccl_library = r->job.nccl_library;
    self_test.sweep = &r->job.sweep;
    Gpul__ProbeBegin begin = GPUL__PROBE_BEGIN__INIT;
    begin.world_size = r->probes.count;
    begin.id_count = r->ids.count;
    begin.self_test = &self_test;
    begin.abort_deadline_ms = ABORT_DEADLINE_MS;
    begin.node_count = r->roster.count;
    begin.ranks_per_node = facts_ranks_per_node(&r->facts);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PROBE_BEGIN;
    frame.probe_begin = &begin;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        begin.first_rank = r->facts.first_ranks[i];
        begin.rank_count = facts_device_count(&r->facts, i);
        begin.node_first_rank = begin.first_rank;
        begin.node_rank_count = sweeps_nodes(r) ? begin.rank_count : 0;
        core_send(r, &r->roster.nodes[i], &frame);
    }
}

static void begin_probes(struct rendezvous *r)
{
    struct text text;
    uint32_t ranks = facts_rank_count(&r->facts);
    core_enter(r, PHASE_CUDA, r->job.listen_deadline_ms,
               "every node can use NCCL");
    core_await_all(r);
    verdict_init(&r->verdict);
    ids_init(&r->ids, ranks, r->facts.has_one_id);
    if (probes_init(&r->probes, ranks, r->now_ms) != 0) {
        out_of_memory(r);
        return;
    }
    text_format(&text, "NCCL over %u device%s of %u node%s", ranks,
                gpul_plural(ranks), r->roster.count,
                gpul_plural(r->roster.count));
    tell(r, GPUL__EVENT__KIND__SELF_TEST_STARTED, text.bytes);
    if (has_groups(r) && !sweeps_nodes(r)) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL,
                       "could not check all-reduce within each node: NCCL has "
                       "no ncclCommSplit; 2.18 and later have it");
    }
    send_begin(r);
}

/* NCCL was not asked for: what is no fault of the job is not its end. */
static bool may_use_host(const struct rendezvous *r, enum facts_verdict verdict)
{
    return r->job.backend == GPUL__SELF_TEST__BACKEND__BACKEND_AUTO &&
           (verdict == FACTS_UNUSABLE || verdict == FACTS_SHARED);
}

static void compare(struct rendezvous *r)
{
    struct facts_judgement judgement;
    if (facts_judge(&r->facts, &judgement, &r->roster) != 0) {
        out_of_memory(r);
        return;
    }
    bool is_good = judgement.verdict == FACTS_GOOD;
    tell_facts(r, is_good);
    if (is_good) {
        begin_probes(r);
    } else if (may_use_host(r, judgement.verdict)) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, judgement.node, "%s: %s",
                       r->roster.count == 1
                           ? "the self-test is skipped"
                           : "the self-test runs on host memory, not over NCCL",
                       judgement.why.bytes);
        gputest_release(r);
        selftest_begin_on_host(r, "NCCL cannot be used");
    } else {
        struct text why;
        text_format(&why, "self-test phase facts: %s", judgement.why.bytes);
        selftest_fail(r, OUTCOME_CHECK_FAILED, judgement.node, why.bytes);
    }
}

void gputest_facts(struct rendezvous *r, struct node *node,
                   const Gpul__ProbeFacts *report)
{
    if (r->phase != PHASE_FACTS || node->has_answered) {
        return;
    }
    uint32_t node_rank = roster_index(&r->roster, node);
    if (facts_add(&r->facts, node_rank, report) != 0) {
        out_of_memory(r);
    } else if (core_answer(r, node)) {
        compare(r);
    }
}

/* ---- phases ---- */

static bool lacks_step(const struct probes *p, uint32_t rank, const void *arg)
{
    const enum probes_step *step = arg;
    return p->steps[rank] < *step;
}

static bool lacks_id(const struct probes *p, uint32_t rank, const void *arg)
{
    const struct ids *ids = arg;
    uint32_t index;
    (void)p;
    return ids_is_root(ids, rank, &index) && !ids->given[index];
}

/* What every rank must have passed for the phase to end. */
static enum probes_step step_of(enum phase phase)
{
    switch (phase) {
    case PHASE_CUDA:
        return PROBES_CUDA;
    case PHASE_INIT:
        return PROBES_INIT;
    case PHASE_COLL:
        return PROBES_COLL;
    default:
        return PROBES_END;
    }
}

static bool is_complete(const struct rendezvous *r)
{
    return r->phase == PHASE_UID
               ? r->ids.have == r->ids.count
               : r->probes.passed[step_of(r->phase)] == r->probes.count;
}

static uint32_t bound_of(const struct rendezvous *r)
{
    return r->phase == PHASE_COLL ? r->job.run_deadline_ms
                                  : r->job.listen_deadline_ms;
}

/* A probe says how it is at every eighth of the bound from the third on; two
 * of these may be on their way, on machines that are busy. */
static uint64_t silence_ms(uint64_t bound_ms)
{
    return bound_ms / 4 > SILENCE_MS_MIN ? bound_ms / 4 : SILENCE_MS_MIN;
}

static struct culprit_case case_of(const struct rendezvous *r)
{
    uint64_t bound_ms = bound_of(r);
    uint64_t left_ms =
        r->phase_deadline_ms > r->now_ms ? r->phase_deadline_ms - r->now_ms : 0;
    return (struct culprit_case){
        .probes = &r->probes,
        .facts = &r->facts,
        .roster = &r->roster,
        .now_ms = r->now_ms,
        .elapsed_ms = bound_ms > left_ms ? bound_ms - left_ms : 0,
        .silence_ms = silence_ms(bound_ms),
    };
}

static bool lacks_facts(const struct probes *p, uint32_t node, const void *arg)
{
    const struct roster *roster = arg;
    (void)p;
    return !roster->nodes[node].has_answered;
}

void gputest_append_scout(struct text *out, const struct rendezvous *r)
{
    struct culprit_case c = case_of(r);
    c.probes = &r->scouts;
    c.lacks = lacks_facts;
    c.arg = &r->roster;
    culprit_append_scout(out, &c);
}

void gputest_waiting(const struct rendezvous *r, struct waiting *out)
{
    enum probes_step step = step_of(r->phase);
    struct culprit_case c = case_of(r);
    if (r->phase == PHASE_UID) {
        out->unit = "roots";
        out->have = r->ids.have;
        out->need = r->ids.count;
        c.lacks = lacks_id;
        c.arg = &r->ids;
    } else {
        out->unit = "ranks";
        out->have = r->probes.passed[step];
        out->need = r->probes.count;
        c.lacks = lacks_step;
        c.arg = &step;
    }
    culprit_name(&out->missing, &c);
}

static void send_ids(struct rendezvous *r)
{
    ProtobufCBinaryData list[GPUL_UNIQUE_IDS_MAX];
    Gpul__ProbeIds ids = GPUL__PROBE_IDS__INIT;
    ids_fill(&ids, list, &r->ids);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PROBE_IDS;
    frame.probe_ids = &ids;
    core_send_all(r, &frame);
}

static void finish(struct rendezvous *r)
{
    const struct verdict_world world = {
        .ranks = r->probes.count,
        .nodes = r->roster.count,
        .has_devices = true,
        .links = r->facts.rates,
        .node_ranks = facts_ranks_per_node(&r->facts),
    };
    selftest_pass(r, &world);
    if (r->phase == PHASE_RUNNING) {
        gputest_release(r);
    }
}

static void enter_next(struct rendezvous *r)
{
    uint32_t bound_ms = r->job.listen_deadline_ms;
    switch (r->phase) {
    case PHASE_CUDA:
        core_enter(r, PHASE_UID, bound_ms, "every device has a context");
        return;
    case PHASE_UID:
        core_enter(r, PHASE_INIT, bound_ms, "every root has made its ID");
        send_ids(r);
        return;
    case PHASE_INIT:
        core_enter(r, PHASE_COLL, r->job.run_deadline_ms,
                   "every communicator is ready");
        return;
    case PHASE_COLL:
        core_enter(r, PHASE_END, bound_ms, "every sweep is done");
        return;
    default:
        finish(r);
        return;
    }
}

static void advance(struct rendezvous *r)
{
    while (phase_waits_for_probes(r->phase) && !r->suspicion.is_held &&
           r->aways.count == 0 && is_complete(r)) {
        enter_next(r);
    }
}

/* False: the message is not this node's to send. */
static bool speaks_for(struct rendezvous *r, struct node *node, uint32_t rank)
{
    if (rank < r->probes.count &&
        facts_node(&r->facts, rank) == roster_index(&r->roster, node)) {
        return true;
    }
    peers_lose(r, node, "it spoke for a self-test rank of another node");
    return false;
}

void gputest_phase(struct rendezvous *r, struct node *node,
                   const Gpul__ProbePhase *phase)
{
    uint32_t rank = phase->probe_rank;
    if (r->phase == PHASE_FACTS) {
        if (probes_say(&r->scouts, roster_index(&r->roster, node), phase,
                       r->now_ms) != 0) {
            out_of_memory(r);
        }
        return;
    }
    if (!phase_waits_for_probes(r->phase) || !speaks_for(r, node, rank)) {
        return;
    }
    if (probes_say(&r->probes, rank, phase, r->now_ms) != 0) {
        out_of_memory(r);
        return;
    }
    /* Only the result tells that the process is gone too. */
    enum probes_step step = phase->phase < GPUL__PROBE_PHASE__PHASE__COLL
                                ? (enum probes_step)phase->phase
                                : PROBES_COLL;
    if (probes_pass(&r->probes, rank, step)) {
        advance(r);
    }
}

/* ---- unique IDs ---- */

static void refuse_id(struct rendezvous *r, const struct node *node,
                      uint32_t index, const char *what)
{
    struct text why;
    uint32_t rank = ids_root(&r->ids, index);
    text_format(&why,
                "self-test phase uid: UID-911 rank %u (node %s) gave unique "
                "ID %u %s; an ID serves one communicator once",
                rank, node->name, index, what);
    selftest_fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
}

void gputest_id(struct rendezvous *r, struct node *node,
                const Gpul__ProbeId *id)
{
    if (r->phase != PHASE_CUDA && r->phase != PHASE_UID &&
        r->phase != PHASE_INIT) {
        return;
    }
    if (id->index >= r->ids.count) {
        peers_lose(r, node, "it sent a unique ID that nobody asked for");
        return;
    }
    if (!speaks_for(r, node, ids_root(&r->ids, id->index))) {
        return;
    }
    switch (ids_take(&r->ids, id->index, id->id.data)) {
    case IDS_TAKEN:
        advance(r);
        return;
    case IDS_REPEATED:
        refuse_id(r, node, id->index, "twice");
        return;
    case IDS_REUSED:
        refuse_id(r, node, id->index, "with the bytes of another root's");
        return;
    }
}

/* ---- results ---- */

/* The others connect to the root, so its end is worth a word of its own. */
static void append_root(struct text *why, const struct rendezvous *r,
                        uint32_t rank)
{
    uint32_t index;
    bool is_needed = r->probes.passed[PROBES_INIT] < r->probes.count &&
                     ids_is_root(&r->ids, rank, &index) && r->ids.given[index];
    if (is_needed) {
        text_append(why, "; it is the root of unique ID %u, which it had given",
                    index);
    }
}

void gputest_result(struct rendezvous *r, struct node *node,
                    const Gpul__ProbeResult *result)
{
    struct text why;
    uint32_t rank = result->probe_rank;
    if (!speaks_for(r, node, rank) || r->probes.steps[rank] == PROBES_END) {
        return;
    }
    r->facts.is_simulated |= result->is_simulated;
    const struct verdict_source from = {
        .node_name = node->name,
        .rank = rank,
        .has_device = true,
        .device_uuid = result->device_uuid[0] != 0
                           ? result->device_uuid
                           : facts_uuid(&r->facts, rank),
        .phase = phase_short_name(r->phase),
        .sweeps_node =
            sweeps_nodes(r) &&
            facts_device_count(&r->facts, roster_index(&r->roster, node)) > 1,
    };
    enum verdict_kind kind = verdict_add(&r->verdict, &why, &from, result);
    if (kind == VERDICT_GOOD) {
        probes_pass(&r->probes, rank, PROBES_END);
        advance(r);
        return;
    }
    if (kind == VERDICT_ERROR) {
        append_root(&why, r, rank);
    }
    selftest_blame(r, kind, node, why.bytes, result->is_remote);
}
