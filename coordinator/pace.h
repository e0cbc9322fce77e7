/* SPDX-License-Identifier: Apache-2.0
 *
 * How many messages a node may send: what its ranks and devices can give cause
 * for, several times over. A node that sends more is broken or broken into,
 * and would keep the coordinator from the others. Pure.
 *
 * Messages are counted by what they speak of, so that many ranks that end at
 * once do not stand in the way of a heartbeat. Each kind has a bucket that
 * runs empty at a rate and may hold a burst (proto/limits.h). A burst holds
 * what an honest node sends in a lease: that much may wait for a coordinator
 * that was stopped for a moment. Output, and credit for input, are not
 * counted: they are bounded in bytes, by credit.
 */
#ifndef COORDINATOR_PACE_H
#define COORDINATOR_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

enum pace_kind {
    PACE_CONTROL, /* of the node itself: heartbeats, notices, phases */
    PACE_PROBES,  /* of its devices, in a self-test on GPUs */
    PACE_RANKS,   /* ends and stalls of its ranks */
    PACE_REPORTS, /* environments of its ranks: so many in all */
    PACE_KINDS,
};

/* All zero of a new connection. */
struct pace {
    uint64_t used[PACE_KINDS]; /* thousandths of a message */
    uint64_t at_ms[PACE_KINDS];
};

/* Count this message of a node with so many ranks. False: it is too many. */
bool pace_take(struct pace *p, const Gpul__Frame *frame, uint32_t ranks,
               uint64_t now_ms);

#endif
