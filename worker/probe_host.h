/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe on host memory: one process for each node, a ring of TCP
 * connections between them. Edge.
 *
 * Happy path, all on the socket pair to the agent:
 *   1. ProbeStart has come: who we are, where to listen   (phase init)
 *   2. listen; ProbeListening goes
 *   3. ProbeConnect comes: where the right neighbour is
 *   4. dial it, let the left neighbour in
 *   5. run the sweep                                       (phase coll)
 *   6. ProbeResult goes, with the rows
 *
 * Failure modes: a step that fails or does not end within the deadline that
 * came with it ends in a ProbeResult with an error and the phase.
 */
#ifndef WORKER_PROBE_HOST_H
#define WORKER_PROBE_HOST_H

#include "worker/probe_channel.h"
#include "worker/sweep.h"

/* From ProbeStart to ProbeResult. A `fault` is put between all-reduce and
 * check (NULL: none). An error means: nobody could be told. */
int probe_host_serve(struct probe_channel *channel,
                     const Gpul__ProbeStart *start, sweep_fault_fn fault,
                     void *arg, struct gpul_error *err);

#endif
