/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe: a short-lived process of its own that runs the self-test for
 * one node and tells its agent how it went. Edge.
 *
 * Happy path, all on the socket pair to the agent:
 *   1. ProbeStart comes: who we are, where to listen      (phase init)
 *   2. listen; ProbeListening goes
 *   3. ProbeConnect comes: where the right neighbour is
 *   4. dial it, let the left neighbour in
 *   5. run the sweep                                       (phase coll)
 *   6. ProbeResult goes, with the rows; exit 0
 *
 * Failure modes: a step that fails or does not end within the deadline that
 * came with it ends in a ProbeResult with an error and the phase, exit 0:
 * the probe has done its work. Only when there is nobody to tell, because
 * the agent has gone or does not speak the protocol, is the exit status not
 * 0; and a probe never outlives its agent.
 */
#ifndef WORKER_PROBE_H
#define WORKER_PROBE_H

#include "worker/sweep.h"

/* The body of `gpulaunch-worker probe`: the agent is on descriptor 3.
 * Returns the exit status of the process. */
int probe_main(void);

/* The same for a test: any descriptor, and a fault between all-reduce and
 * check (NULL: none). */
int probe_run(int agent_fd, sweep_fault_fn fault, void *arg);

#endif
