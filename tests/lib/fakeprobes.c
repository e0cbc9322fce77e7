/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakeprobes.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/probes.h"
#include "coordinator/text.h"
#include "proto/limits.h"
#include "tests/lib/fakenode.h"

enum { STEPS = 8 };

/* ---- the scout ---- */

struct scouted {
    Gpul__Library nccl;
    Gpul__Library cuda;
    Gpul__Device devices[GPUL_DEVICES_MAX];
    Gpul__Device *list[GPUL_DEVICES_MAX];
    char uuids[GPUL_DEVICES_MAX][32];
    char driver[16];
    char *finding;
    char *setting;
    Gpul__Nic nics[GPUL_NICS_MAX];
    Gpul__Nic *nic_list[GPUL_NICS_MAX];
};

static void find_libraries(struct scouted *s, Gpul__ProbeFacts *facts,
                           const struct fake_node *node)
{
    gpul__library__init(&s->nccl);
    gpul__library__init(&s->cuda);
    if (node->scout_error != NULL) {
        s->nccl.error = wire_text(node->scout_error);
    } else {
        s->nccl.path = wire_text("/lib/libnccl.so.2");
        s->nccl.version = wire_text(node->nccl_version);
        s->nccl.build_id = wire_text("8f3a");
    }
    snprintf(s->driver, sizeof(s->driver), "%u.%u", node->driver_version / 1000,
             node->driver_version % 1000 / 10);
    s->cuda.path = wire_text("/lib/libcuda.so.1");
    s->cuda.version = s->driver;
    s->cuda.version_code = node->driver_version;
    facts->nccl = &s->nccl;
    facts->cuda = &s->cuda;
}

static void find_devices(struct scouted *s, Gpul__ProbeFacts *facts,
                         const struct fake_node *node, uint32_t index)
{
    for (uint32_t i = 0; i < node->gpus; i++) {
        gpul__device__init(&s->devices[i]);
        uint32_t owner = i == 0 && node->has_twin ? 0 : index;
        snprintf(s->uuids[i], sizeof(s->uuids[i]), "GPU-%u-%u", owner, i);
        s->devices[i].index = i;
        s->devices[i].uuid = s->uuids[i];
        s->devices[i].model = wire_text(node->model);
        s->devices[i].link_gbps = node->link_gbps;
        s->devices[i].link_kind = node->link_gbps > 0 ? GPUL__LINK__LINK_NVLINK
                                                      : GPUL__LINK__LINK_NONE;
        s->list[i] = &s->devices[i];
    }
    if (node->finding != NULL && node->gpus > 0) {
        s->finding = wire_text(node->finding);
        s->devices[0].findings = &s->finding;
        s->devices[0].n_findings = 1;
    }
    facts->devices = s->list;
    facts->n_devices = node->gpus;
}

static void find_nics(struct scouted *s, Gpul__ProbeFacts *facts,
                      const struct fake_node *node)
{
    for (uint32_t i = 0; i < node->nics; i++) {
        gpul__nic__init(&s->nics[i]);
        s->nics[i].name = wire_text("mlx5");
        s->nics[i].kind = GPUL__LINK__LINK_RDMA;
        s->nics[i].gbits = node->nic_gbits;
        s->nic_list[i] = &s->nics[i];
    }
    facts->nics = s->nic_list;
    facts->n_nics = node->nics;
}

void fake_scout(struct cluster *c, uint32_t index)
{
    struct scouted scouted = {0};
    struct fake_node *node = &c->nodes[index];
    Gpul__Library nvml = GPUL__LIBRARY__INIT;
    Gpul__ProbeFacts facts = GPUL__PROBE_FACTS__INIT;
    nvml.error = wire_text("NVML was not found");
    facts.nvml = &nvml;
    find_libraries(&scouted, &facts, node);
    find_devices(&scouted, &facts, node, index);
    find_nics(&scouted, &facts, node);
    if (node->refused != NULL) {
        facts.refused_device = wire_text(node->refused);
    }
    facts.is_simulated = node->is_double;
    facts.has_scalable_init = !node->has_one_id;
    facts.has_comm_split = !node->has_no_split;
    if (node->setting != NULL) {
        scouted.setting = wire_text(node->setting);
        facts.settings = &scouted.setting;
        facts.n_settings = 1;
    }
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &facts;
    fake_send(c, node, &frame);
}

void fake_scout_hang(struct cluster *c, uint32_t index)
{
    const struct fake_node *node = &c->nodes[index];
    bool is_inside =
        node->scout_state == GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
    Gpul__ProbePhase phase = GPUL__PROBE_PHASE__INIT;
    phase.state = node->scout_state;
    phase.call = wire_text(is_inside ? "cuInit" : "");
    phase.since_ms = (uint32_t)c->now_ms;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    fake_send(c, node, &frame);
}

/* ---- probes ---- */

static const struct fake_probe *probe_of(const struct fake_node *node,
                                         uint32_t local)
{
    static const struct fake_probe well = {.fault = FAKE_WELL};
    return local < FAKE_PROBES_MAX ? &node->probes[local] : &well;
}

static void plan_step(struct cluster *c, uint32_t index, uint32_t local,
                      enum probes_step step)
{
    const struct fake_node *node = &c->nodes[index];
    const struct fake_probe *probe = probe_of(node, local);
    uint64_t late_ms = probe->at == (uint32_t)step ? probe->after_ms : 0;
    cluster_plan(c, SIM_PROBE, index, local * STEPS + (uint32_t)step,
                 node->generation, node->step_ms + late_ms);
}

void fake_probes_begin(struct cluster *c, uint32_t index,
                       const Gpul__ProbeBegin *begin)
{
    struct fake_node *node = &c->nodes[index];
    node->probe_first = begin->first_rank;
    node->probe_world = begin->world_size;
    node->sweeps_node = begin->node_rank_count > 1;
    node->id_count = begin->id_count;
    for (uint32_t local = 0; local < begin->rank_count; local++) {
        plan_step(c, index, local, PROBES_CUDA);
    }
}

void fake_probes_connect(struct cluster *c, uint32_t index,
                         const Gpul__ProbeIds *ids)
{
    struct fake_node *node = &c->nodes[index];
    if (ids->n_ids != node->id_count) {
        fprintf(stderr, "%s: %zu IDs and not %u\n", node->name, ids->n_ids,
                node->id_count);
        abort();
    }
    for (uint32_t local = 0; local < node->gpus; local++) {
        const struct fake_probe *probe = probe_of(node, local);
        if (probe->fault <= FAKE_REPEATS || probe->at > PROBES_CUDA) {
            plan_step(c, index, local, PROBES_INIT);
        }
    }
}

static void send_phase(struct cluster *c, const struct fake_node *node,
                       uint32_t rank, uint32_t step)
{
    static const char *const words[] = {
        "", "context there", "communicator ready", "sweep done", "destroyed"};
    Gpul__ProbePhase phase = GPUL__PROBE_PHASE__INIT;
    phase.probe_rank = rank;
    phase.phase = (Gpul__ProbePhase__Phase)step;
    phase.text = wire_text(words[step]);
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    fake_send(c, node, &frame);
}

/* It has passed all before `step`, and has been so since then. */
static void say_state(struct cluster *c, uint32_t index, uint32_t number,
                      const struct fake_probe *probe)
{
    const struct fake_node *node = &c->nodes[index];
    uint32_t step = number % STEPS;
    bool is_inside = probe->state == GPUL__PROBE_PHASE__STATE__STATE_INSIDE;
    Gpul__ProbePhase phase = GPUL__PROBE_PHASE__INIT;
    phase.probe_rank = node->probe_first + number / STEPS;
    phase.phase = (Gpul__ProbePhase__Phase)(step - 1);
    phase.state = probe->state;
    phase.call = wire_text(is_inside ? "ncclAllReduce" : "");
    phase.since_ms = (uint32_t)c->now_ms;
    phase.progress = probe->progress;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    fake_send(c, node, &frame);
    cluster_plan(c, SIM_PROBE, index, number, node->generation, SAY_EVERY_MS);
}

/* Its first two bytes say whose it is. */
static void send_ids(struct cluster *c, const struct fake_node *node,
                     uint32_t rank)
{
    uint8_t bytes[GPUL_UNIQUE_ID_BYTES] = {0};
    Gpul__ProbeId id = GPUL__PROBE_ID__INIT;
    id.id.data = bytes;
    id.id.len = sizeof(bytes);
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &id;
    for (uint32_t i = 0; !node->never_ids && i < node->id_count; i++) {
        uint64_t root = (uint64_t)i * node->probe_world / node->id_count;
        if (root == rank) {
            id.index = i;
            bytes[0] = node->reuses_id ? 0 : (uint8_t)i;
            bytes[1] = node->reuses_id ? 0 : (uint8_t)rank;
            fake_send(c, node, &frame);
        }
    }
}

static void fill_fault(Gpul__ProbeResult *result, enum fake_fault fault,
                       uint32_t step)
{
    static const char *const phases[] = {"", "cuda", "init", "coll", "end"};
    result->phase = wire_text(phases[step]);
    switch (fault) {
    case FAKE_DIES:
        result->error = wire_text("it was ended by signal 9 (SIGKILL)");
        return;
    case FAKE_REMOTE:
        result->error = wire_text("ncclAllReduce: remote error (6)");
        result->library_error = wire_text("connection closed by remote peer");
        result->is_remote = true;
        return;
    case FAKE_WRONG:
        result->phase = wire_text("coll");
        result->wrong_elements = 1;
        result->first_wrong_offset = 4711;
        result->first_wrong_bytes = 1 << 20;
        result->first_wrong_bit = 23;
        result->first_wrong_collective =
            GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE;
        return;
    default:
        return;
    }
}

static void send_result(struct cluster *c, const struct fake_node *node,
                        uint32_t rank, enum fake_fault fault, uint32_t step)
{
    Gpul__ProbeRow row = GPUL__PROBE_ROW__INIT;
    Gpul__ProbeRow inner;
    Gpul__ProbeRow *rows[] = {&row, &inner};
    row.bytes = 1 << 20;
    row.count = 1 << 18;
    row.iterations = 5;
    row.min_ns = node->probe_ns / 2;
    row.median_ns = node->probe_ns + rank;
    row.max_ns = node->probe_ns * 2;
    row.collective = GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE;
    inner = row;
    inner.scope = GPUL__SCOPE__SCOPE_NODE;
    inner.median_ns = node->probe_ns / 2 + rank;
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    result.probe_rank = rank;
    result.rows = rows;
    result.n_rows = node->sweeps_node ? 2 : 1;
    fill_fault(&result, fault, step);
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    fake_send(c, node, &frame);
}

static void pass(struct cluster *c, uint32_t index, uint32_t local,
                 uint32_t step)
{
    const struct fake_node *node = &c->nodes[index];
    const struct fake_probe *probe = probe_of(node, local);
    uint32_t rank = node->probe_first + local;
    bool is_liar = probe->fault == FAKE_LIES && probe->at == step;
    if (probe->fault == FAKE_REPENTS && probe->at == step) {
        send_result(c, node, rank, FAKE_REMOTE, step);
    }
    send_phase(c, node, is_liar ? node->probe_world - 1 - rank : rank, step);
    switch (step) {
    case PROBES_CUDA:
        send_ids(c, node, rank);
        if (probe->fault == FAKE_REPEATS) {
            send_ids(c, node, rank);
        }
        return;
    case PROBES_END:
        send_result(c, node, rank, FAKE_WELL, step);
        return;
    default:
        plan_step(c, index, local, (enum probes_step)(step + 1));
        return;
    }
}

void fake_probe_step(struct cluster *c, uint32_t index, uint32_t number,
                     uint32_t generation)
{
    struct fake_node *node = &c->nodes[index];
    uint32_t local = number / STEPS;
    uint32_t step = number % STEPS;
    const struct fake_probe *probe = probe_of(node, local);
    if (node->state != FAKE_ASSIGNED || node->is_mute ||
        node->generation != generation) {
        return;
    }
    if (probe->fault <= FAKE_REPEATS || probe->at != step) {
        pass(c, index, local, step);
    } else if (probe->fault == FAKE_HANGS) {
        say_state(c, index, number, probe);
    } else if (probe->fault != FAKE_SILENT) {
        send_result(c, node, node->probe_first + local, probe->fault, step);
    }
}
