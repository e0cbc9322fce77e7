/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a phase of the self-test on GPUs waits for: of all ranks that it
 * lacks, the ones that hold up the others. Pure.
 *
 * NCCL tells nobody who is late: all wait for all. But a probe knows of
 * itself whether it waits, and its agent whether it is stopped. So of the
 * ranks that are missing those of the first kind below are named, and of
 * these those that have come least far; of ranks that wait at the same step,
 * those in which NCCL has. Where all wait alike, that is said.
 */
#ifndef COORDINATOR_CULPRIT_H
#define COORDINATOR_CULPRIT_H

#include "coordinator/facts.h"
#include "coordinator/probes.h"
#include "coordinator/text.h"

enum culprit_kind {
    CULPRIT_STOPPED, /* its agent sees that its process is stopped */
    CULPRIT_SILENT,  /* it was to say how it is, and has not */
    CULPRIT_INSIDE,  /* a call of a library has not come back for long */
    CULPRIT_DEAF,    /* its device does not answer */
    CULPRIT_WORKS,   /* on the host, for long */
    CULPRIT_UNKNOWN, /* it has not said how it is */
    CULPRIT_WAITS,   /* for others */
};

struct culprit_case {
    const struct probes *probes;
    const struct facts *facts;
    const struct roster *roster;
    probes_lack_fn lacks;
    const void *arg;
    uint64_t now_ms;
    uint64_t elapsed_ms; /* of the phase */
    uint64_t silence_ms; /* a probe that is well says something within it */
};

/* "rank 7 (node c, device GPU-1), inside ncclAllReduce for 15 s; the other 7
 * wait; it said last: ..." or "ranks 3,8-9 (nodes node[1-2]); rank 3, device
 * GPU-2, said last: ...", or "nobody". Ten ranges and ten nodes are named, then
 * there are counts. It looks at every rank: for when a bound is near. */
void culprit_name(struct text *out, const struct culprit_case *c);

/* Of scouts, one a node, whose nodes stand in `out`: append how the one is
 * that holds up the others, ", inside cuInit for 12 s", or where several are
 * missing "; node c, inside cuInit for 12 s". Nothing if that is not known. */
void culprit_append_scout(struct text *out, const struct culprit_case *c);

#endif
