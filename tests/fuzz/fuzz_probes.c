/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_probes.h"

#include "coordinator/text.h"
#include "proto/limits.h"

enum { DEVICES = 3 };

static void make_devices(Gpul__ProbeFacts *facts, uint32_t conn, uint8_t choice)
{
    static Gpul__Device devices[DEVICES];
    static Gpul__Device *list[DEVICES];
    static char uuids[DEVICES][3];
    static char *finding;
    finding = wire_text("power is capped");
    facts->devices = list;
    facts->n_devices = choice & 3u;
    for (size_t i = 0; i < facts->n_devices; i++) {
        gpul__device__init(&devices[i]);
        uuids[i][0] = (char)('0' + ((choice & 64u) != 0 ? 0 : conn));
        uuids[i][1] = (char)('a' + (int)i);
        devices[i].uuid = uuids[i];
        devices[i].findings = &finding;
        devices[i].n_findings = choice >> 7;
        list[i] = &devices[i];
    }
}

static void make_facts(Gpul__Frame *frame, uint32_t conn, uint8_t choice)
{
    static Gpul__Library nccl;
    static Gpul__Library cuda;
    static Gpul__ProbeFacts facts;
    gpul__library__init(&nccl);
    gpul__library__init(&cuda);
    gpul__probe_facts__init(&facts);
    nccl.version = wire_text((choice & 4u) != 0 ? "2.27.3" : "2.28.9");
    nccl.error = wire_text((choice & 8u) != 0 ? "it was not found" : "");
    facts.nccl = (choice & 16u) != 0 ? NULL : &nccl;
    facts.cuda = &cuda;
    facts.has_scalable_init = (choice & 32u) != 0;
    make_devices(&facts, conn, choice);
    frame->body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame->probe_facts = &facts;
}

static void make_id(Gpul__Frame *frame, uint8_t choice)
{
    static uint8_t bytes[GPUL_UNIQUE_ID_BYTES];
    static Gpul__ProbeId id;
    gpul__probe_id__init(&id);
    bytes[0] = choice;
    id.index = choice < 200 ? 0 : choice;
    id.id.data = bytes;
    id.id.len = sizeof(bytes);
    frame->body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame->probe_id = &id;
}

static void make_phase(Gpul__Frame *frame, uint8_t choice)
{
    static Gpul__ProbePhase phase;
    gpul__probe_phase__init(&phase);
    phase.probe_rank = choice & 7u;
    phase.phase = (Gpul__ProbePhase__Phase)((choice >> 3) % 5);
    phase.text = wire_text((choice & 32u) != 0 ? "connecting" : "");
    phase.state = (Gpul__ProbePhase__State)(choice % 6);
    phase.call = wire_text((choice & 64u) != 0 ? "ncclSend" : "");
    phase.since_ms = (choice & 128u) != 0 ? UINT32_MAX : choice;
    phase.progress = choice & 15u;
    frame->body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame->probe_phase = &phase;
}

void fuzz_probes_make(Gpul__Frame *frame, uint8_t kind, uint32_t conn,
                      uint8_t choice)
{
    if (kind == 0) {
        make_facts(frame, conn, choice);
    } else if (kind == 1) {
        make_id(frame, choice);
    } else {
        make_phase(frame, choice);
    }
}
