/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning of a worker that a remote shell has started: it greets on
 * standard output and takes its orders from standard input (proto/orders.h).
 * Edge.
 *
 * Happy path: greet, read lines until "end"; what follows them is left for
 * worker/client.h.
 * Failure: no orders within a minute, an end in between, orders that make no
 * sense.
 */
#ifndef WORKER_REMOTE_H
#define WORKER_REMOTE_H

#include "common/error.h"
#include "proto/orders.h"

/* The word that makes gpulaunch-worker one of these. Behind it may stand
 * REMOTE_COPY: the program is a copy in a directory of its own, which it
 * removes at once, so that nothing stays however it ends. */
#define REMOTE_VERB "remote"
#define REMOTE_COPY "--copy"

/* Errors: GPUL_ECLOSED (the session ended), GPUL_ETIMEOUT, GPUL_EINVAL,
 * GPUL_ELIMIT, GPUL_ESYS. *out holds a key: the caller wipes it. */
int remote_take_orders(struct gpul_orders *out, struct gpul_error *err);

/* Remove this program's file and the directory it is in, if that is empty
 * then. What cannot be removed stays. */
void remote_remove_copy(void);

#endif
