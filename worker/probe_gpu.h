/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe on one GPU: a rank of the self-test's communicator. Edge.
 *
 * Two threads. This one, controlling, reads and writes the agent's frames,
 * keeps the deadlines and never calls CUDA or NCCL; the other one
 * (worker/probe_work.h) does nothing else. So a library that hangs stops
 * neither a message nor the end of the process. (A third, of
 * worker/gpu_echo.h, asks the device whether it is well.)
 *
 * Happy path, all on the socket pair to the agent:
 *   1. ProbeBegin has come: which rank, which device
 *   2. ProbePhase CUDA goes; a root's ProbeId too
 *   3. ProbeIds comes
 *   4. ProbePhase INIT, COLL and END go
 *   5. ProbeResult goes, with the rows
 * While a phase lasts, its last ProbePhase is sent again with what the probe
 * does now: whenever that has changed for a second, and from three eighths of
 * the phase's bound on at every eighth, whether it has or not. So at half of
 * the bound and at its end it is known how each probe is, or that one says
 * nothing any more.
 *
 * Failure modes:
 *   - a library fails: ProbeResult with the error, its phase and NCCL's last
 *     words, then ncclCommAbort
 *   - Stop comes, or the agent goes: ncclCommAbort, and no result
 *   - a phase lasts longer than it may, and 5 s more, in which the agent was
 *     to say Stop: as a library's failure
 * The abort runs in a thread of its own; when it has returned, or after
 * abort_deadline_ms, the caller leaves the process by _exit, whatever the
 * other threads are doing.
 */
#ifndef WORKER_PROBE_GPU_H
#define WORKER_PROBE_GPU_H

#include "worker/probe_channel.h"

/* `command` is the first word of the ranks' command, or NULL. An error
 * means: nobody could be told. */
int probe_gpu_serve(struct probe_channel *channel,
                    const Gpul__ProbeBegin *begin, const char *command,
                    struct gpul_error *err);

#endif
