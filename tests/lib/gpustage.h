/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU probes on a stage: real gpulaunch-worker processes with the doubles of
 * the GPU libraries (or with the machine's own), while the test is the agent
 * and the coordinator of all of them. One thread; every wait is bounded, and
 * a test that fails ends its processes.
 */
#ifndef TESTS_GPUSTAGE_H
#define TESTS_GPUSTAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpulaunch.pb-c.h"
#include "proto/frame.h"

enum {
    STAGE_PROBES_MAX = 320,
    STAGE_PATIENCE_MS = 120000, /* of every wait: then the test fails */
    STAGE_EPOCH = 3,
    STAGE_GENERATION = 7,
    STAGE_UUID_BYTES = 48,
};

struct stage_probe {
    pid_t pid;
    int pid_fd; /* readable when it has ended */
    int fd;     /* the agent's end; -1: closed */
    struct gpul_deframer in;
    char uuid[STAGE_UUID_BYTES];
    unsigned phases;     /* bit n: ProbePhase n has come */
    unsigned told_count; /* ProbePhases that came, repeated ones too */
    char text[1025];     /* of the last of them, as what follows */
    char call[65];
    Gpul__ProbePhase__State state;
    uint32_t since_ms;
    uint32_t progress;
    Gpul__Frame *id;     /* ProbeId */
    Gpul__Frame *facts;  /* ProbeFacts */
    Gpul__Frame *result; /* ProbeResult */
    bool is_gone;
    int status; /* of waitpid */
    uint64_t gone_ms;
};

struct stage_spec {
    const char *scenario; /* of the doubles; NULL: the machine's libraries */
    uint32_t nodes;       /* local-0 ... */
    uint32_t per_node;
    uint32_t count;    /* ranks; 0: nodes * per_node */
    uint32_t id_count; /* 0: 1 */
    const char *nccl_library;
    const char *const *uuids; /* of a machine's own devices, by local rank */
    Gpul__Sweep *sweep;       /* NULL: tiny, so that a test is quick */
    Gpul__SelfTest__Level level;
    uint32_t listen_deadline_ms; /* 0: the stage's patience */
    uint32_t run_deadline_ms;
    uint32_t abort_deadline_ms;
    bool has_no_uuids;    /* devices by index */
    bool sweeps_nodes;    /* after the sweep of all */
    bool shares_devices;  /* all ranks of a node on its first */
    uint32_t relay_count; /* of IDs; 0: all of them */
};

struct stage {
    struct stage_spec spec;
    uint32_t count;
    struct stage_probe probes[STAGE_PROBES_MAX];
    char folder[64]; /* of the scenario */
    bool has_relayed;
};

/* The UUID of a device in a scenario that stage_scenario wrote. */
void stage_uuid(char out[STAGE_UUID_BYTES], uint32_t node, uint32_t gpu);

/* Start the probes and send each its ProbeBegin; with `is_scout`, one a
 * node, ProbeStart. The stage is large: keep it static. */
void stage_start(struct stage *stage, const struct stage_spec *spec,
                 bool is_scout);

/* Take what comes, relay the IDs once all are there, until `is_it` holds for
 * every probe of `ranks` (bit n: rank n; 0: all). Fails the test when that
 * takes longer than STAGE_PATIENCE_MS. */
typedef bool (*stage_condition)(const struct stage_probe *probe);
void stage_until(struct stage *stage, uint64_t ranks, stage_condition is_it);

bool stage_has_result(const struct stage_probe *probe);
bool stage_is_gone(const struct stage_probe *probe);

void stage_send_stop(struct stage *stage, uint32_t rank);
void stage_stop_all(struct stage *stage);

/* Everything of it is gone; processes that are not, by SIGKILL. */
void stage_end(struct stage *stage);

#endif
