/* SPDX-License-Identifier: Apache-2.0
 *
 * What the probes measured, over all nodes. A collective is as slow as its
 * slowest rank, so each time of a row is the largest that any node has. Pure.
 *
 * Bandwidth as nccl-tests defines it (doc/PERFORMANCE.md there): algbw is the
 * message size over the time, busbw = algbw * 2(n-1)/n for an all-reduce over
 * n; GB/s are 1e9 bytes a second. The time is the median.
 */
#ifndef COORDINATOR_VERDICT_H
#define COORDINATOR_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/text.h"
#include "proto/limits.h"
#include "proto/message.h"

struct verdict {
    Gpul__SelfTestRow rows[GPUL_PROBE_ROWS_MAX];
    size_t row_count;
    uint32_t result_count; /* nodes added so far */
};

enum verdict_kind {
    VERDICT_GOOD = 0,
    VERDICT_ERROR,      /* exit code 20 */
    VERDICT_WRONG_DATA, /* exit code 21 */
};

void verdict_init(struct verdict *v);

/* Add the result of one node. Not good: `why` is the sentence, which names
 * the node (and, for wrong data, the element and the message size). */
enum verdict_kind verdict_add(struct verdict *v, struct text *why,
                              const char *node_name,
                              const Gpul__ProbeResult *result);

/* All have been added: compute the bandwidths of an all-reduce over n. */
void verdict_finish(struct verdict *v, uint32_t n);

#endif
