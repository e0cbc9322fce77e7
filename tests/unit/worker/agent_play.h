/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent on a stage: the test says what happens, and reads what the agent
 * did about it as one line of text, e.g. "send(hello) lease_ports".
 */
#ifndef TESTS_UNIT_WORKER_AGENT_PLAY_H
#define TESTS_UNIT_WORKER_AGENT_PLAY_H

#include "worker/agent.h"

enum { PLAY_LINE_BYTES = 2048, PLAY_EPOCH = 4 };

struct play {
    struct agent *agent;
    struct agent_actions actions;
    Gpul__Facts facts;
    uint64_t now_ms;
    uint32_t epoch; /* stamped on what the coordinator sends */
    uint32_t generation;
    char line[PLAY_LINE_BYTES]; /* what the last step did */
    bool has_left;
};

/* At 1000 ms; join timeout 10 s. */
void play_open(struct play *p);
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
const char *play_probe_result(struct play *p);

/* Let time pass; the agent ticks once, at the end. */
const char *play_wait(struct play *p, uint64_t ms);

/* The coordinator speaks. */
const char *play_welcome(struct play *p);
const char *play_job(struct play *p, Gpul__Job__Mode mode);
/* Generation + 1: two nodes, this one is node 0 with ranks 0 and 1 of 3. */
const char *play_assign(struct play *p);
const char *play_roster(struct play *p);
const char *play_probe_start(struct play *p);
const char *play_probe_connect(struct play *p);
const char *play_launch(struct play *p);
const char *play_stop(struct play *p, int signal, uint32_t grace_ms);
const char *play_finish(struct play *p, bool keeps_logs);
const char *play_credit(struct play *p, uint64_t bytes);
const char *play_refuse(struct play *p, const char *text);
const char *play_ack(struct play *p);
const char *play_frame(struct play *p, Gpul__Frame *frame);

/* Straight to a state; fails if the way there is not as usual. */
void play_to_member(struct play *p);
void play_to_assigned(struct play *p);
void play_to_running(struct play *p);

#endif
