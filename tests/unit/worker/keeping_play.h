/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper's core on a stage: the test says what happens and reads what it
 * does, and what it says to its agent, as a line of text, which is good until
 * the next call.
 */
#ifndef TESTS_KEEPING_PLAY_H
#define TESTS_KEEPING_PLAY_H

#include <stdint.h>

#include "worker/keeping.h"

extern struct keeping play_keeper;
extern uint64_t play_now_ms;

/* With an agent that has been told that there is nothing; with ranks too. */
void play_open(void);
void play_open_ranks(uint32_t count);

const char *play_step(struct keeping_event event);
const char *play_type(enum keeping_event_type type);

/* What an agent says; `signal` is the status, too. */
const char *play_packet(enum keeper_packet_type type, int32_t signal);
const char *play_begin(uint32_t generation, uint32_t ranks);
const char *play_start(uint32_t slot);
const char *play_close_input(uint32_t slot);

/* START and its answer. */
void play_start_rank(uint32_t slot);

const char *play_exited(uint32_t slot, int32_t status);
const char *play_agent(int32_t pid);
const char *play_signaled(int32_t signal);

/* Let time pass to the next deadline, which must be so far away. */
const char *play_wait(uint64_t ms);

/* What the agent is told, at most so many packets of it. */
const char *play_told(void);
const char *play_told_some(int most);

#endif
