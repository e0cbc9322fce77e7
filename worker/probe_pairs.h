/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe of the trials between two nodes: one process for all of them. It
 * listens on one address of each rail, then takes one order after the other.
 * Edge; docs/check.md, "Pair trials".
 *
 * Happy path, all on the socket pair to the agent:
 *   1. PairStart has come: who we are, where to listen
 *   2. listen; PairListening goes
 *   3. TrialStart comes, worker/trialrun.h runs it, TrialResult goes
 *   4. that again and again
 *   5. PairEnd comes
 *
 * Failure modes: no address to listen on ends it with an error in
 * PairListening; no order within idle_ms ends it with words on standard error;
 * what fails in a trial is its result.
 */
#ifndef WORKER_PROBE_PAIRS_H
#define WORKER_PROBE_PAIRS_H

#include "worker/probe_channel.h"

/* From PairStart to PairEnd. An error means: nobody could be told. */
int probe_pairs_serve(struct probe_channel *channel,
                      const Gpul__PairStart *start, struct gpul_error *err);

#endif
