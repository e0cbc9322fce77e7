/* SPDX-License-Identifier: Apache-2.0
 *
 * What the probes measured, over all of them. A collective is as slow as its
 * slowest rank, so each time of a row is the largest that any has. Pure.
 *
 * Bandwidth as in common/bandwidth.h; the time is the median.
 */
#ifndef COORDINATOR_VERDICT_H
#define COORDINATOR_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bandwidth.h"
#include "coordinator/text.h"
#include "proto/limits.h"
#include "proto/message.h"

struct verdict {
    Gpul__SelfTestRow rows[GPUL_PROBE_ROWS_MAX];
    size_t row_count;
    size_t world_row_count; /* of all ranks; those within nodes follow */
    uint64_t fastest_ns[GPUL_PROBE_ROWS_MAX]; /* the least median of any rank */
    uint32_t result_count;                    /* probes added so far */
};

enum verdict_kind {
    VERDICT_GOOD = 0,
    VERDICT_ERROR,      /* exit code 20 */
    VERDICT_WRONG_DATA, /* exit code 21 */
};

/* Whose result it is. */
struct verdict_source {
    const char *node_name;
    uint32_t rank; /* of the self-test: the node rank on host memory */
    bool has_device;
    const char *device_uuid; /* "": not known */
    const char *phase;       /* what was going on, where it does not say */
    bool sweeps_node;        /* it owes rows from within its node too */
};

/* What the figures are measured against. */
struct verdict_world {
    uint32_t ranks;
    uint32_t nodes;
    uint32_t node_ranks; /* of each node; 0: not the same everywhere */
    bool has_devices;
    struct gpul_links links;
};

void verdict_init(struct verdict *v);

/* "rank 5 (node c, device GPU-1)", "node c" on host memory. */
void verdict_name(struct text *out, const struct verdict_source *from);

/* Add the result of one probe. Not good: `why` is the sentence, which names
 * the probe (and, for wrong data, the element and the message). */
enum verdict_kind verdict_add(struct verdict *v, struct text *why,
                              const struct verdict_source *from,
                              const Gpul__ProbeResult *result);

/* All have been added: compute bandwidths and ceilings. */
void verdict_finish(struct verdict *v, const struct verdict_world *world);

/* All-reduce of all ranks at its largest size; NULL if it was not measured. */
const Gpul__SelfTestRow *verdict_largest(const struct verdict *v);

/* The row whose slowest rank is worth a name: in a ring all wait for all, so
 * an all-reduce takes as long on every rank, whichever is slow; but those of
 * the other nodes do not wait within a node. So the largest all-reduce within
 * the nodes, or else of all ranks, where it took half as long again on that
 * rank as on another; NULL: nobody stands out. */
const Gpul__SelfTestRow *verdict_telling(const struct verdict *v,
                                         const struct verdict_world *world);

#endif
