/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU probe's last word to its agent. Edge.
 */
#ifndef WORKER_PROBE_RESULT_H
#define WORKER_PROBE_RESULT_H

#include <stdbool.h>

#include "worker/probe_channel.h"
#include "worker/probe_work.h"

/* `why` is NULL after a sweep that came to its end. Only of a working thread
 * that is done (`is_done`) the rows, NCCL's words and what it knows of the
 * libraries are told: else it may be writing them. */
int probe_result_tell(struct probe_channel *channel,
                      const Gpul__ProbeBegin *begin,
                      const struct probe_work *work,
                      const struct gpul_error *why, const char *phase,
                      bool is_done, struct gpul_error *err);

#endif
