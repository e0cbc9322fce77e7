/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakepairs.h"

#include "coordinator/text.h"
#include "tests/lib/fakenode.h"

enum { PORT = 41000, RTT_COUNT = 256, RTT_NS = 20000, SEGMENTS = 1000 };
#define RUN_NS UINT64_C(200000000)

void fake_pairs_listen(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    uint32_t port = PORT + node->node_rank;
    Gpul__PairListening listening = GPUL__PAIR_LISTENING__INIT;
    listening.ports = &port;
    listening.n_ports = 1;
    if (node->pair_error != NULL) {
        listening.n_ports = 0;
        listening.error = wire_text(node->pair_error);
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PAIR_LISTENING;
    frame.pair_listening = &listening;
    fake_send(c, node, &frame);
}

void fake_pairs_order(struct cluster *c, uint32_t index,
                      const Gpul__TrialStart *start)
{
    struct fake_node *node = &c->nodes[index];
    node->trial = start->trial;
    node->trial_peer = start->peer_rank;
    if (start->trial == node->dies_in_trial) {
        node->trial_peer = node->node_rank; /* nobody */
        fake_pairs_end(c, index);
    } else if (start->trial != node->hangs_in_trial) {
        cluster_plan(c, SIM_NODE_TIMER, index, FAKE_TRIAL, node->generation,
                     node->trial_ms);
    }
}

static uint32_t index_of(const struct cluster *c, uint32_t node_rank)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        if (c->nodes[i].node_rank == node_rank &&
            c->nodes[i].state != FAKE_AWAY) {
            return i;
        }
    }
    return 0; /* gone: as good as any */
}

/* GB/s from one to the other; 0: no connection. */
static double rate_of(struct cluster *c, uint32_t from, uint32_t to)
{
    double a = c->nodes[from].pair_gbps;
    double b = c->nodes[to].pair_gbps;
    double nodes = a < b ? a : b;
    double path = c->path_gbps != NULL ? c->path_gbps(c, from, to) : nodes;
    return path < nodes ? path : nodes;
}

void fake_pairs_tell(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    uint32_t peer = index_of(c, node->trial_peer);
    Gpul__TrialWay sending = GPUL__TRIAL_WAY__INIT;
    Gpul__TrialWay receiving = GPUL__TRIAL_WAY__INIT;
    if (rate_of(c, index, peer) > 0) {
        sending.rtt_count = RTT_COUNT;
        sending.rtt_min_ns = RTT_NS;
        sending.rtt_median_ns = RTT_NS;
        sending.segments = SEGMENTS;
    } else {
        sending.failure = GPUL__TRIAL_WAY__FAILURE__NO_CONNECTION;
        sending.text = wire_text("no connection within 3 s");
    }
    double rate = rate_of(c, peer, index);
    if (rate > 0) {
        receiving.bytes = (uint64_t)(rate * (double)RUN_NS);
        receiving.ns = RUN_NS;
    } else {
        receiving.failure = GPUL__TRIAL_WAY__FAILURE__NO_CALLER;
        receiving.text = wire_text("no dial has come");
    }
    Gpul__TrialResult result = GPUL__TRIAL_RESULT__INIT;
    result.trial = node->trial;
    result.sending = &sending;
    result.receiving = &receiving;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_TRIAL_RESULT;
    frame.trial_result = &result;
    fake_send(c, node, &frame);
}

void fake_pairs_end(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    Gpul__PairEnd end = GPUL__PAIR_END__INIT;
    if (node->dies_in_trial > 0 && node->trial == node->dies_in_trial) {
        end.error = wire_text("it was ended by signal 9 (SIGKILL)");
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PAIR_END;
    frame.pair_end = &end;
    fake_send(c, node, &frame);
}
