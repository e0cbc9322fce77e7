/* SPDX-License-Identifier: Apache-2.0
 *
 * A secret or key on its way from a program to its child: in a pipe that is
 * filled before the child starts. So it is in no argument list and no
 * environment, and nobody ever waits to write it: it always fits.
 *
 * It goes as text, one line as in a file, so that what was left out or cut
 * off is seen.
 */
#ifndef GPUL_PROTO_KEYPIPE_H
#define GPUL_PROTO_KEYPIPE_H

#include "common/error.h"
#include "proto/secret.h"

/* How long a child waits for the line. */
#define GPUL_KEYPIPE_MS 10000u

/* Where a child finds it. */
#define GPUL_KEYPIPE_OF_NODE 3        /* a node's key, in the keeper */
#define GPUL_KEYPIPE_OF_COORDINATOR 5 /* the secret, in the coordinator */

/* A pipe that holds the line and then ends: *fd is its reading end, which is
 * closed on exec. GPUL_ESYS. */
int gpul_keypipe_put_secret(int *fd, const struct gpul_secret *secret,
                            struct gpul_error *err);
int gpul_keypipe_put_key(int *fd, const struct gpul_key *key,
                         struct gpul_error *err);

/* Read the line from an inherited descriptor and close that in any case.
 * GPUL_EINVAL (no pipe, no such line), GPUL_ETIMEOUT, GPUL_ESYS, with the
 * descriptor and what was expected in it; *out is wiped then. */
int gpul_keypipe_take_secret(struct gpul_secret *out, int fd,
                             struct gpul_error *err);
int gpul_keypipe_take_key(struct gpul_key *out, int fd, struct gpul_error *err);

#endif
