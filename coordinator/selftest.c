/* SPDX-License-Identifier: Apache-2.0
 *
 * LISTENING and PROBING: every node's probe listens, dials its right-hand
 * neighbour in node order, reduces, and reports. Skipped where there is
 * nothing to reduce.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core.h"

/* One token a generation. Mixing as in SplitMix64: Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", 2014. */
static uint64_t ring_token(const struct rendezvous *r)
{
    uint64_t z = r->config.seed + UINT64_C(0x9e3779b97f4a7c15) * r->generation;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void start_probes(struct rendezvous *r)
{
    Gpul__ProbeStart start = GPUL__PROBE_START__INIT;
    start.level = r->job.self_test;
    start.node_count = r->roster.count;
    start.token = ring_token(r);
    start.deadline_ms = r->job.listen_deadline_ms;
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_PROBE_START;
    frame.probe_start = &start;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        start.node_rank = i;
        start.address = r->roster.nodes[i].address;
        core_send(r, &r->roster.nodes[i], &frame);
    }
}

void selftest_begin(struct rendezvous *r)
{
    bool is_wanted = r->job.self_test != GPUL__SELF_TEST__LEVEL__OFF;
    if (!is_wanted || r->generation > 1) {
        running_begin(r, "every node is ready");
        return;
    }
    if (r->roster.count == 1) {
        core_tell_text(r, GPUL__EVENT__KIND__SELF_TEST_SKIPPED, NULL,
                       "one node has nothing to reduce with");
        running_begin(r, "every node is ready");
        return;
    }
    core_enter(r, PHASE_LISTENING, r->job.listen_deadline_ms,
               "every node is ready");
    core_await_all(r);
    verdict_init(&r->verdict);
    core_tell_text(r, GPUL__EVENT__KIND__SELF_TEST_STARTED, NULL,
                   "all-reduce over %u nodes", r->roster.count);
    start_probes(r);
}

static void connect_probes(struct rendezvous *r)
{
    Gpul__ProbeConnect connect = GPUL__PROBE_CONNECT__INIT;
    connect.deadline_ms = r->job.run_deadline_ms;
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

static void fail(struct rendezvous *r, enum outcome_code code,
                 const struct node *node, const char *why)
{
    outcome_decide(&r->outcome, code,
                   code == OUTCOME_WRONG_DATA ? "self_test_wrong_data"
                                              : "self_test_failed",
                   node, "%s", why);
    ending_begin(r, SIGTERM);
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
        fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
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

static void pass(struct rendezvous *r)
{
    Gpul__SelfTestRow *pointers[GPUL_PROBE_ROWS_MAX];
    verdict_finish(&r->verdict, r->roster.count);
    for (size_t i = 0; i < r->verdict.row_count; i++) {
        pointers[i] = &r->verdict.rows[i];
    }
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_PASSED;
    event.have = r->roster.count;
    event.need = r->roster.count;
    event.rows = pointers;
    event.n_rows = r->verdict.row_count;
    core_tell_event(r, &event);
    running_begin(r, "the self-test passed");
}

void selftest_result(struct rendezvous *r, struct node *node,
                     const Gpul__ProbeResult *result)
{
    bool is_early = r->phase == PHASE_LISTENING;
    if ((!is_early && r->phase != PHASE_PROBING) ||
        (!is_early && node->has_answered)) {
        return;
    }
    struct text why;
    switch (verdict_add(&r->verdict, &why, node->name, result)) {
    case VERDICT_WRONG_DATA:
        fail(r, OUTCOME_WRONG_DATA, node, why.bytes);
        return;
    case VERDICT_ERROR:
        fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
        return;
    case VERDICT_GOOD:
        break;
    }
    if (is_early) {
        text_format(&why, "self-test: node %s has a result before it began",
                    node->name);
        fail(r, OUTCOME_CHECK_FAILED, node, why.bytes);
    } else if (core_answer(r, node)) {
        pass(r);
    }
}
