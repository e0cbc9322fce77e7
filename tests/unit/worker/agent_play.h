/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent on a stage: the test says what happens, and reads what the agent
 * did about it as one line of text, e.g. "send(hello) lease_ports".
 */
#ifndef TESTS_UNIT_WORKER_AGENT_PLAY_H
#define TESTS_UNIT_WORKER_AGENT_PLAY_H

#include "worker/agent.h"

enum { PLAY_LINE_BYTES = 4096, PLAY_EPOCH = 4 };

struct play {
    struct agent *agent;
    struct agent_actions actions;
    Gpul__Facts facts;
    uint64_t now_ms;
    uint32_t epoch; /* stamped on what the coordinator sends */
    uint32_t generation;
    const char *log_dir;        /* of the job; NULL: none */
    char line[PLAY_LINE_BYTES]; /* what the last step did */
    bool has_left;
    bool may_fail; /* a step, and none is looked at; else that fails the test */
    int status;    /* of the last step */
};

/* At 1000 ms; join timeout 10 s. */
void play_open(struct play *p);
/* The same; it says what keeps it from joining. */
void play_open_telling(struct play *p);
/* The same where the coordinator has so many addresses. */
void play_open_several(struct play *p, uint32_t addresses);
/* The same for an agent after the first, whose keeper holds this. */
void play_open_held(struct play *p, struct agent_held held);
void play_close(struct play *p);

/* Each takes one step and returns p->line. */
const char *play_step(struct play *p, struct agent_event *event);
const char *play_event(struct play *p, enum agent_event_type type,
                       const char *text);
const char *play_ports(struct play *p, uint16_t port_base);
const char *play_signal(struct play *p, int signal);
/* `n` ranks from first_rank on end with this code. */
const char *play_exits(struct play *p, uint32_t first_rank, uint32_t n,
                       uint32_t code);
const char *play_gone(struct play *p, const char *unclean);
const char *play_keeper_lost(struct play *p, const char *unclean);
/* The probe over host memory: its address, its result. */
const char *play_listening(struct play *p);
const char *play_probe_result(struct play *p);
/* The probe of trials. */
const char *play_pair_listening(struct play *p);
const char *play_trial_result(struct play *p);
/* The scout: "GPU-0", ..., each with so much memory in use; or why not. */
const char *play_facts(struct play *p, uint32_t devices, uint64_t used_mib);

/* The same of a node whose NVML cannot be used: then used_mib is 0. */
const char *play_facts_without(struct play *p, uint32_t devices,
                               uint64_t used_mib, const char *nvml_error);
const char *play_no_facts(struct play *p, const char *error);
/* Probe i on a device. */
const char *play_probe_id(struct play *p, uint32_t probe);
const char *play_phase(struct play *p, uint32_t probe,
                       Gpul__ProbePhase__Phase phase);
const char *play_device_result(struct play *p, uint32_t probe,
                               const char *error);
/* Any of them. */
const char *play_probe_says(struct play *p, uint32_t probe, Gpul__Frame *frame);
const char *play_probe_ended(struct play *p, uint32_t probe, const char *how);

/* Let time pass; the agent ticks once, at the end. */
const char *play_wait(struct play *p, uint64_t ms);

/* The coordinator speaks. */
const char *play_welcome(struct play *p);
const char *play_job(struct play *p, Gpul__Job__Mode mode);
/* Generation + 1: two nodes, this one is node 0 with ranks 0 and 1 of 3. */
const char *play_assign(struct play *p);
const char *play_roster(struct play *p);
/* Token 77; the only page. */
const char *play_link_start(struct play *p);
const char *play_link_peers(struct play *p);
/* An order within 5 s; a trial of 9 s. */
const char *play_pair_start(struct play *p);
const char *play_trial_start(struct play *p);
const char *play_pair_end(struct play *p);
const char *play_probe_start(struct play *p);
const char *play_probe_connect(struct play *p);
/* Look at the GPUs, 5 s; then this many probes from rank 4 on: 3 s a phase,
 * 4 s for coll, 1.5 s for an abort. */
const char *play_scout(struct play *p);
const char *play_probe_begin(struct play *p, uint32_t ranks);
const char *play_probe_ids(struct play *p);
const char *play_launch(struct play *p);
const char *play_stop(struct play *p, int signal, uint32_t grace_ms);
const char *play_finish(struct play *p, bool keeps_logs);
const char *play_credit(struct play *p, uint64_t bytes);
const char *play_pass_signal(struct play *p, int signal);
const char *play_input(struct play *p, const char *data, bool is_end);
const char *play_refuse(struct play *p, const char *text);
const char *play_ack(struct play *p);
const char *play_frame(struct play *p, Gpul__Frame *frame);

/* Straight to a state; fails if the way there is not as usual. */
void play_to_member(struct play *p);
void play_to_assigned(struct play *p);
void play_to_running(struct play *p);

#endif
