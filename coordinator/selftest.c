/* SPDX-License-Identifier: Apache-2.0
 *
 * Which self-test it is, and what follows from its results. On host memory
 * (LISTENING and PROBING) every node's probe listens, dials its right-hand
 * neighbour in node order, reduces, and reports. Skipped where there is
 * nothing to reduce.
 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "coordinator/core.h"

/* ---- the choice ---- */

static bool has_no_gpu(const struct roster *r, uint32_t node_rank,
                       const void *arg)
{
    (void)arg;
    return r->nodes[node_rank].gpus == 0;
}

/* With `auto` only where every node has a GPU; a mixture is worth a line. */
static bool wants_gpus(struct rendezvous *r)
{
    struct text names;
    if (r->job.backend != GPUL__SELF_TEST__BACKEND__BACKEND_AUTO) {
        return r->job.backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    }
    uint32_t without = missing_names(&names, &r->roster, has_no_gpu, NULL);
    if (without > 0 && without < r->roster.count) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL,
                       "no GPU on %s: the self-test runs on host memory, not "
                       "over NCCL",
                       names.bytes);
    }
    return without == 0;
}

void selftest_begin(struct rendezvous *r, const char *why)
{
    bool is_wanted = r->job.self_test != GPUL__SELF_TEST__LEVEL__OFF;
    if (!is_wanted || r->launches > 0) {
        running_begin(r, why);
    } else if (wants_gpus(r)) {
        gputest_begin(r, why);
    } else {
        selftest_begin_on_host(r, why);
    }
}

/* ---- on host memory ---- */

/* One token a generation. Mixing as in SplitMix64: Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", 2014. */
uint64_t selftest_token(const struct rendezvous *r)
{
    uint64_t z = r->config.seed + UINT64_C(0x9e3779b97f4a7c15) * r->generation;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* What a probe is given of a phase that lasts `bound_ms`. */
static uint32_t probe_bound_ms(uint32_t bound_ms)
{
    uint32_t half_ms = bound_ms / 2;
    return bound_ms - (half_ms < PROBE_SLACK_MS ? half_ms : PROBE_SLACK_MS);
}

static char *neighbour_name(const struct rendezvous *r, uint32_t node_rank,
                            uint32_t steps)
{
    uint32_t rank = (node_rank + steps) % r->roster.count;
    return wire_text(r->roster.nodes[rank].name);
}

void selftest_send_starts(struct rendezvous *r, Gpul__SelfTest__Backend backend)
{
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = r->job.self_test;
    start.node_count = r->roster.count;
    start.token = selftest_token(r);
    start.backend = backend;
    if (backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL) {
        start.deadline_ms = r->job.listen_deadline_ms;
        start.nccl_library = r->job.nccl_library;
    } else {
        start.sweep = &r->job.sweep;
        start.deadline_ms = probe_bound_ms(r->job.listen_deadline_ms);
    }
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        start.node_rank = i;
        start.address = r->roster.nodes[i].address;
        start.left_name = neighbour_name(r, i, r->roster.count - 1);
        start.right_name = neighbour_name(r, i, 1);
        core_send(r, &r->roster.nodes[i], &frame);
    }
}

static void tell_started(struct rendezvous *r)
{
    struct text text;
    text_format(&text, "all-reduce over %u nodes", r->roster.count);
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_STARTED;
    event.text = text.bytes;
    event.backend = wire_text(selftest_backend(r));
    core_tell_event(r, &event);
}

void selftest_begin_on_host(struct rendezvous *r, const char *why)
{
    if (r->roster.count == 1) {
        core_tell_text(r, GPUL__EVENT__KIND__SELF_TEST_SKIPPED, NULL,
                       "one node has nothing to reduce with");
        if (r->job.is_check) {
            checking_untested(r, "one node has nothing to reduce with");
        }
        running_begin(r, why);
        return;
    }
    core_enter(r, PHASE_LISTENING, r->job.listen_deadline_ms, "%s", why);
    core_await_all(r);
    verdict_init(&r->verdict);
    tell_started(r);
    selftest_send_starts(r, GPUL__SELF_TEST__BACKEND__BACKEND_HOST);
}

static void connect_probes(struct rendezvous *r)
{
    Gpul__ProbeConnect connect = GPUL__PROBE_CONNECT__INIT;
    connect.deadline_ms = probe_bound_ms(r->job.run_deadline_ms);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PROBE_CONNECT;
    frame.probe_connect = &connect;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        uint32_t right = i + 1 < r->roster.count ? i + 1 : 0;
        const struct node *neighbour = &r->roster.nodes[right];
        connect.address = neighbour->probe_address != NULL
                              ? neighbour->probe_address
                              : neighbour->address;
        connect.port = neighbour->probe_port;
        core_send(r, &r->roster.nodes[i], &frame);
    }
}

/* Most probes listen where the node is; only others cost memory. */
static void keep_address(struct rendezvous *r, struct node *node,
                         const char *address)
{
    free(node->probe_address);
    node->probe_address = NULL;
    if (strcmp(address, node->address) != 0) {
        node->probe_address = text_copy(address);
        if (node->probe_address == NULL) {
            outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for an address");
        }
    }
}

void selftest_listening(struct rendezvous *r, struct node *node,
                        const Gpul__ProbeListening *listening)
{
    if (r->phase != PHASE_LISTENING || node->has_answered) {
        return;
    }
    if (listening->port == 0 || listening->port > UINT16_MAX) {
        struct text why;
        text_format(&why, "self-test: the probe of node %s listens on port %u",
                    node->name, listening->port);
        selftest_fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
        return;
    }
    keep_address(r, node, listening->address);
    node->probe_port = listening->port;
    if (core_answer(r, node)) {
        core_enter(r, PHASE_PROBING, r->job.run_deadline_ms,
                   "every probe listens");
        core_await_all(r);
        connect_probes(r);
    }
}

/* Every probe has spoken, so nobody is left to explain the first error. */
static void convict_if_last(struct rendezvous *r, struct node *node)
{
    if (r->phase == PHASE_PROBING && core_answer(r, node)) {
        selftest_convict(r);
    }
}

void selftest_result(struct rendezvous *r, struct node *node,
                     const Gpul__ProbeResult *result)
{
    bool is_early = r->phase == PHASE_LISTENING;
    if ((!is_early && r->phase != PHASE_PROBING) ||
        (!is_early && node->has_answered)) {
        return;
    }
    if (r->suspicion.is_held && r->suspicion.node == node) {
        return; /* a failure cannot be taken back */
    }
    struct text why;
    const struct verdict_source from = {
        .node_name = node->name,
        .rank = roster_index(&r->roster, node),
        .phase = "init",
    };
    enum verdict_kind kind = verdict_add(&r->verdict, &why, &from, result);
    if (kind != VERDICT_GOOD) {
        selftest_blame(r, kind, node, why.bytes, result->is_remote);
        convict_if_last(r, node);
    } else if (is_early) {
        text_format(&why, "self-test: node %s has a result before it began",
                    node->name);
        selftest_fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
    } else if (r->suspicion.is_held) {
        convict_if_last(r, node);
    } else if (core_answer(r, node)) {
        const struct verdict_world world = {.ranks = r->roster.count,
                                            .nodes = r->roster.count};
        selftest_pass(r, &world);
    }
}

/* ---- what follows ---- */

const char *selftest_backend(const struct rendezvous *r)
{
    if (r->probes.count == 0 && r->phase != PHASE_FACTS) {
        return "host-tcp";
    }
    return r->facts.is_simulated ? "double" : "nccl";
}

static const char *reason_token(enum outcome_code code)
{
    switch (code) {
    case OUTCOME_WRONG_DATA:
        return "self_test_wrong_data";
    case OUTCOME_SLOW:
        return "self_test_slow";
    default:
        return "self_test_failed";
    }
}

void selftest_fail(struct rendezvous *r, enum outcome_code code,
                   const struct node *node, const char *why)
{
    r->suspicion.is_held = false;
    if (r->job.is_check) {
        checking_failed(r, code, node, why);
        return;
    }
    outcome_decide(&r->outcome, code, reason_token(code), node, "%s", why);
    ending_begin(r, SIGTERM);
}

/* Probes on host memory that ran out of time wait with their errors for the
 * end of the phase: until then an agent may have killed the one that hangs. */
static uint64_t hold_until_ms(const struct rendezvous *r)
{
    bool is_ring = r->phase == PHASE_LISTENING || r->phase == PHASE_PROBING;
    uint64_t soon_ms = r->now_ms + REMOTE_HOLD_MS;
    uint32_t bound_ms = r->phase == PHASE_LISTENING ? r->job.listen_deadline_ms
                                                    : r->job.run_deadline_ms;
    uint64_t slack_ms = bound_ms - probe_bound_ms(bound_ms);
    bool is_late = is_ring && r->now_ms + slack_ms >= r->phase_deadline_ms;
    return is_late ? r->phase_deadline_ms : soon_ms;
}

void selftest_blame(struct rendezvous *r, enum verdict_kind kind,
                    const struct node *node, const char *why, bool is_remote)
{
    if (kind == VERDICT_WRONG_DATA) {
        selftest_fail(r, OUTCOME_WRONG_DATA, node, why);
    } else if (!is_remote) {
        selftest_fail(r, OUTCOME_CHECK_FAILED, node, why);
    } else if (!r->suspicion.is_held) {
        r->suspicion = (struct suspicion){
            .is_held = true,
            .due_ms = hold_until_ms(r),
            .node = node,
        };
        text_format(&r->suspicion.why, "%s", why);
        outbox_log(&r->out, false, "held back: %s", why);
    }
}

void selftest_convict(struct rendezvous *r)
{
    r->suspicion.is_held = false;
    if (!r->outcome.is_decided) {
        struct text why = r->suspicion.why;
        selftest_fail(r, OUTCOME_CHECK_FAILED, r->suspicion.node, why.bytes);
    }
}

const struct node *selftest_slowest(const struct rendezvous *r,
                                    struct text *why,
                                    const struct verdict_world *world)
{
    struct text who;
    const Gpul__SelfTestRow *row = verdict_telling(&r->verdict, world);
    if (row == NULL) {
        text_append(why,
                    "; all %s took about as long, so which one is slow "
                    "cannot be told",
                    world->has_devices ? "ranks" : "nodes");
        return NULL;
    }
    uint32_t rank = row->slowest_rank;
    const struct node *node =
        &r->roster
             .nodes[world->has_devices ? facts_node(&r->facts, rank) : rank];
    const struct verdict_source slowest = {
        .node_name = node->name,
        .rank = rank,
        .has_device = world->has_devices,
        .device_uuid = world->has_devices ? facts_uuid(&r->facts, rank) : "",
    };
    verdict_name(&who, &slowest);
    text_append(why, "; %sit took longest on %s",
                row->scope == GPUL__SCOPE__SCOPE_NODE ? "within its node " : "",
                who.bytes);
    return node;
}

static void tell_rows(struct rendezvous *r, const struct verdict_world *world,
                      Gpul__Event__Kind kind)
{
    Gpul__SelfTestRow *pointers[GPUL_PROBE_ROWS_MAX];
    for (size_t i = 0; i < r->verdict.row_count; i++) {
        pointers[i] = &r->verdict.rows[i];
    }
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = kind;
    event.have = world->ranks;
    event.need = world->ranks;
    event.rows = pointers;
    event.n_rows = r->verdict.row_count;
    event.backend = wire_text(selftest_backend(r));
    event.is_simulated = r->facts.is_simulated;
    core_tell_event(r, &event);
}

/* --min-busbw. False: the job ended by it. */
static bool is_fast_enough(struct rendezvous *r,
                           const struct verdict_world *world)
{
    struct text why;
    char size[UNITS_TEXT_BYTES];
    const Gpul__SelfTestRow *row = verdict_largest(&r->verdict);
    double wanted_gbps = r->job.sweep.busbw_min_gbps;
    if (wanted_gbps <= 0) {
        return true;
    }
    if (row == NULL || row->busbw_gbps <= 0) {
        selftest_fail(
            r, OUTCOME_CHECK_FAILED, NULL,
            "self-test phase coll: --min-busbw cannot be judged, since there "
            "is no busbw of an all-reduce; it takes two ranks");
        return false;
    }
    if (row->busbw_gbps >= wanted_gbps) {
        return true;
    }
    gpul_format_size(size, row->bytes);
    text_format(&why,
                "self-test phase coll: busbw of all-reduce at %s is %.2f GB/s, "
                "below the %.2f GB/s of --min-busbw",
                size, row->busbw_gbps, wanted_gbps);
    const struct node *node = selftest_slowest(r, &why, world);
    tell_rows(r, world, GPUL__EVENT__KIND__SELF_TEST_SLOW);
    selftest_fail(r, OUTCOME_SLOW, node, why.bytes);
    return false;
}

/* Sizes that were asked for and not run: memory, or host memory's own end.
 * A size in a row is rounded down to whole elements. */
static void tell_cut(struct rendezvous *r)
{
    const Gpul__Sweep *s = &r->job.sweep;
    const Gpul__SelfTestRow *row = verdict_largest(&r->verdict);
    bool is_full = r->job.self_test == GPUL__SELF_TEST__LEVEL__FULL;
    uint64_t factor = s->factor > 1 ? s->factor : is_full ? 2 : 8;
    uint64_t asked = s->bytes_max > s->bytes_min ? s->bytes_max : s->bytes_min;
    if (row != NULL && row->bytes + sizeof(float) <= asked / factor) {
        core_tell_text(r, GPUL__EVENT__KIND__NOTICE, NULL,
                       "the largest all-reduce of the self-test had %" PRIu64
                       " bytes, though %" PRIu64
                       " were asked for: there is no room for more",
                       row->bytes, asked);
    }
}

void selftest_pass(struct rendezvous *r, const struct verdict_world *world)
{
    assert(!r->suspicion.is_held);
    verdict_finish(&r->verdict, world);
    if (r->job.is_check) {
        bool is_slow = checking_tested(r, world);
        tell_cut(r);
        tell_rows(r, world,
                  is_slow ? GPUL__EVENT__KIND__SELF_TEST_SLOW
                          : GPUL__EVENT__KIND__SELF_TEST_PASSED);
        running_begin(r, "the self-test is over");
        return;
    }
    if (!is_fast_enough(r, world)) {
        return;
    }
    tell_cut(r);
    tell_rows(r, world, GPUL__EVENT__KIND__SELF_TEST_PASSED);
    running_begin(r, "the self-test passed");
}
