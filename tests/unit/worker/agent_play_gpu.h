/* SPDX-License-Identifier: Apache-2.0
 *
 * Short cuts of the tests of the agent in a self-test on GPUs: a scout that
 * tells of two devices, one probe on each (ranks 4 and 5 of the self-test).
 */
#ifndef TESTS_AGENT_PLAY_GPU_H
#define TESTS_AGENT_PLAY_GPU_H

#include "agent_play.h"

#define ENDED "it ended without a result"
#define CRASH "it was ended by signal 11 (Segmentation fault)"
#define LATE "it did not end in time and was killed"

#define SCOUT "start_scout(probe_start)"
#define WATCH "start_watch(probe_start)"

/* The scout has told of two devices with 100 MiB in use, and is gone. */
void play_to_facts(struct play *p);
void play_to_probes(struct play *p);

enum phase { CUDA, UID, INIT, COLL, END };

/* Both probes are in this phase. */
void play_to_phase(struct play *p, enum phase phase);

/* Both probes have passed; the scout looks at the memory. */
void play_to_clearing(struct play *p);

/* The probe is stopped by this signal, or (0) goes on. */
const char *play_halted(struct play *p, uint32_t probe, int signal);

/* One tick after each 250 ms, with the lease renewed, until so much time has
 * passed or the agent has done something beside its heartbeat. */
const char *play_pass(struct play *p, uint64_t ms);

#endif
