/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU probe's last word to its agent. Edge.
 */
#ifndef WORKER_PROBE_RESULT_H
#define WORKER_PROBE_RESULT_H

#include <stdbool.h>

#include "worker/probe_channel.h"
#include "worker/probe_work.h"

struct probe_ending {
    const struct gpul_error *why; /* NULL: its sweep came to its end */
    const char *phase;
    /* Only of a working thread that is done the rows, NCCL's words and what
     * it knows of the libraries are told: else it may be writing them. */
    bool is_done;
    bool has_waited; /* it ran out of time while it waited for others */
};

int probe_result_tell(struct probe_channel *channel,
                      const Gpul__ProbeBegin *begin,
                      const struct probe_work *work,
                      const struct probe_ending *ending,
                      struct gpul_error *err);

#endif
