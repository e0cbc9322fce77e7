/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank that failed has left behind, as the coordinator gets it. Edge
 * (it reads files of the rank).
 */
#ifndef WORKER_LEFTOVERS_H
#define WORKER_LEFTOVERS_H

#include "proto/message.h"
#include "worker/lastwords.h"
#include "worker/ranklogs.h"

/* NULL: nothing, or no memory for it. To be freed by the schema's own free,
 * with the Exit that it belongs to. */
Gpul__Evidence *leftovers_collect(struct lastwords *words,
                                  struct ranklogs *logs, uint32_t rank);

#endif
