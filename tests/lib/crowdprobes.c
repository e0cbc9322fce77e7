/* SPDX-License-Identifier: Apache-2.0
 *
 * A crowd with a device for each rank, and its self-test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/crowd.h"

static void scout(struct crowd *c, uint32_t node)
{
    char uuids[GPUL_DEVICES_MAX][48];
    Gpul__Device devices[GPUL_DEVICES_MAX];
    Gpul__Device *list[GPUL_DEVICES_MAX];
    Gpul__Library nccl = GPUL__LIBRARY__INIT;
    Gpul__Library cuda = GPUL__LIBRARY__INIT;
    Gpul__ProbeFacts facts = GPUL__PROBE_FACTS__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    nccl.version = wire_text("2.28.9");
    cuda.version = wire_text("13.0");
    cuda.version_code = 13000;
    for (uint32_t i = 0; i < c->ranks_per_node; i++) {
        gpul__device__init(&devices[i]);
        snprintf(uuids[i], sizeof(uuids[i]), "GPU-%08x-0000-0000-0000-%012x",
                 node, i);
        devices[i].uuid = uuids[i];
        devices[i].model = wire_text("NVIDIA H200");
        list[i] = &devices[i];
    }
    facts.nccl = &nccl;
    facts.cuda = &cuda;
    facts.devices = list;
    facts.n_devices = c->ranks_per_node;
    facts.has_scalable_init = true;
    facts.has_comm_split = true;
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &facts;
    crowd_say(c, node, &frame);
}

static void say_phase(struct crowd *c, uint32_t node,
                      Gpul__ProbePhase__Phase phase, const char *words)
{
    Gpul__ProbePhase body = GPUL__PROBE_PHASE__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    body.phase = phase;
    body.text = wire_text(words);
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &body;
    for (uint32_t i = 0; i < c->ranks_per_node; i++) {
        body.probe_rank = node * c->ranks_per_node + i;
        crowd_say(c, node, &frame);
    }
}

static void make_contexts(struct crowd *c, uint32_t node)
{
    say_phase(c, node, GPUL__PROBE_PHASE__PHASE__CUDA, "context made");
}

/* The IDs whose roots are here: rank floor(index * ranks / count). */
static void give_ids(struct crowd *c, uint32_t node)
{
    uint64_t ranks = (uint64_t)c->node_count * c->ranks_per_node;
    uint8_t bytes[GPUL_UNIQUE_ID_BYTES] = {0};
    Gpul__ProbeId id = GPUL__PROBE_ID__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    id.id.data = bytes;
    id.id.len = sizeof(bytes);
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &id;
    for (uint32_t i = 0; i < GPUL_UNIQUE_IDS_MAX; i++) {
        if (i * ranks / GPUL_UNIQUE_IDS_MAX / c->ranks_per_node == node) {
            id.index = i;
            bytes[0] = (uint8_t)i;
            bytes[1] = (uint8_t)(i >> 8);
            crowd_say(c, node, &frame);
        }
    }
}

static void make_communicators(struct crowd *c, uint32_t node)
{
    say_phase(c, node, GPUL__PROBE_PHASE__PHASE__INIT,
              "communicator ready after 12.3 s");
}

static void sweep(struct crowd *c, uint32_t node)
{
    say_phase(c, node, GPUL__PROBE_PHASE__PHASE__COLL, "sweep done");
}

static void finish_probes(struct crowd *c, uint32_t node)
{
    Gpul__ProbeRow row = GPUL__PROBE_ROW__INIT;
    Gpul__ProbeRow inner;
    Gpul__ProbeRow *rows[] = {&row, &inner};
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    row.bytes = 1 << 20;
    row.count = 1 << 18;
    row.iterations = 5;
    result.rows = rows;
    result.n_rows = c->ranks_per_node > 1 ? 2 : 1;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    for (uint32_t i = 0; i < c->ranks_per_node; i++) {
        result.probe_rank = node * c->ranks_per_node + i;
        row.median_ns = 1000000 + result.probe_rank;
        inner = row;
        inner.scope = GPUL__SCOPE__SCOPE_NODE;
        crowd_say(c, node, &frame);
    }
}

void crowd_test_gpus(struct crowd *c)
{
    crowd_everybody(c, scout);
    crowd_everybody(c, make_contexts);
    crowd_everybody(c, give_ids);
    crowd_everybody(c, make_communicators);
    crowd_everybody(c, sweep);
    rendezvous_check(c->core);
    crowd_everybody(c, finish_probes);
}
