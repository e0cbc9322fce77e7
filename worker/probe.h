/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe: a short-lived process of its own that runs a part of the
 * self-test, or of a check, and tells its agent how it went. Its first frame
 * says which:
 *
 *     ProbeStart          the ring on host memory    worker/probe_host.h
 *     ProbeStart (NCCL)   a look at GPUs             worker/probe_scout.h
 *     ProbeBegin          a rank on one GPU          worker/probe_gpu.h
 *     PairStart           trials between two nodes   worker/probe_pairs.h
 *     SurveyStart         a look at the node         worker/probe_survey.h
 *
 * Edge.
 *
 * The exit status is 0 when the agent was told how it went, a failure of the
 * self-test included: the probe has done its work then. Only when there is
 * nobody to tell, because the agent has gone or does not speak the protocol,
 * it is not 0; and a probe never outlives its agent.
 */
#ifndef WORKER_PROBE_H
#define WORKER_PROBE_H

#include "worker/sweep.h"

/* The body of `gpulaunch-worker probe [COMMAND]`: the agent is on descriptor
 * 3. COMMAND, or NULL, is the first word of the ranks' command: their GPU
 * libraries are looked for where it lives. Returns the exit status of the
 * process, or ends it: threads of a GPU library may hang by then. */
int probe_main(const char *command);

/* The same for a test: any descriptor, and a fault between all-reduce and
 * check on host memory (NULL: none). */
int probe_run(int agent_fd, const char *command, sweep_fault_fn fault,
              void *arg);

#endif
