/* SPDX-License-Identifier: Apache-2.0
 *
 * The all-reduce of the self-test on host memory: float32, sum, in place,
 * over the two TCP connections of a ringlink. Edge.
 *
 * Happy path: pieces go round the ring in the order of ringplan.h. One
 * thread sends and receives by turns, each as far as the kernel takes or
 * gives, and waits in poll() only when neither moves. A piece is small: it
 * is received into a scratch buffer, added to the data and sent on while it
 * is in the cache.
 *
 * Failure modes: a neighbour closes or breaks its connection, the agent goes
 * away, the deadline. The ring is unusable then, and the data undefined.
 *
 * On the wire there is nothing but elements, in host byte order: both sides
 * run the same plan. Unlike byte orders fail the check of the sums.
 */
#ifndef WORKER_COLLECTIVE_HOST_H
#define WORKER_COLLECTIVE_HOST_H

#include <stdint.h>

#include "common/error.h"
#include "worker/ringlink.h"

struct collective_host {
    const struct ringlink *link; /* borrowed, connected */
    float *scratch;              /* one piece */
    float *barrier;              /* one element for each rank */
};

/* Errors: GPUL_ENOMEM. */
int collective_host_init(struct collective_host *c, const struct ringlink *link,
                         struct gpul_error *err);
void collective_host_release(struct collective_host *c);

/* Replace data[i] by the sum of all ranks' data[i]. Every rank calls it with
 * the same count, 0 included. `deadline_ms` is a reading of gpul_clock_ms.
 * Errors: GPUL_ESYS, GPUL_ECLOSED, GPUL_ETIMEOUT; the text has the neighbour
 * and how far it got. */
int collective_host_allreduce(struct collective_host *c, float *data,
                              uint64_t count, uint64_t deadline_ms,
                              struct gpul_error *err);

/* Return when every rank has called it. */
int collective_host_barrier(struct collective_host *c, uint64_t deadline_ms,
                            struct gpul_error *err);

#endif
