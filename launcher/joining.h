/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch join: this machine becomes a node of a job that waits for nodes.
 * Edge.
 *
 * Happy path: take the secret, wait for the address, derive the key of this
 * node, become gpulaunch-worker (exec), which joins and does the rest.
 * Failure before that: told by the return value. What goes wrong later, the
 * worker tells.
 */
#ifndef LAUNCHER_JOINING_H
#define LAUNCHER_JOINING_H

#include "common/error.h"
#include "launcher/plan.h"
#include "proto/secret.h"

/* Returns only on failure, with the exit code of the program. The secret is
 * the caller's to wipe; NULL: the plan says where it is. */
int joining_run(const struct plan *plan, const struct gpul_secret *secret,
                struct gpul_error *err);

/* The exit code for a failure before there is a worker: that of a worker that
 * never became a member for GPUL_ETIMEOUT, else that of a fault of ours. */
int joining_exit_code(int status);

#endif
