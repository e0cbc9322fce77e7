/* SPDX-License-Identifier: Apache-2.0
 *
 * The scout: looks at the GPU libraries and devices of its node before
 * anybody makes a communicator. Edge.
 *
 * Happy path: ProbeStart with backend NCCL has come; open and ask; ProbeFacts
 * goes. It makes no context on any device.
 *
 * Failure modes: what is missing is a fact, with ProbeFacts.error saying why
 * no self-test on GPUs is possible here. A library that hangs is told in
 * ProbePhase from three eighths of the bound on; the agent ends the scout
 * then, and says so, as it does of one that crashes.
 */
#ifndef WORKER_PROBE_SCOUT_H
#define WORKER_PROBE_SCOUT_H

#include "worker/probe_channel.h"

/* `command` is the first word of the ranks' command, or NULL. An error
 * means: nobody could be told. */
int probe_scout_serve(struct probe_channel *channel,
                      const Gpul__ProbeStart *start, const char *command,
                      struct gpul_error *err);

#endif
