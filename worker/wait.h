/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way in which a probe waits: for its sockets, for its agent to go
 * away, and never past a deadline. Edge.
 */
#ifndef WORKER_WAIT_H
#define WORKER_WAIT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* poll() until one of fds[0 .. n-1] is ready. `deadline_ms` is a reading of
 * gpul_clock_ms. Returns 0, GPUL_ETIMEOUT, GPUL_ESYS. */
int wait_any(struct pollfd *fds, size_t n, uint64_t deadline_ms,
             struct gpul_error *err);

/* The same while work is done for the agent on fds[0], which has nothing to
 * say meanwhile: whatever comes from it means that the work is off.
 * Returns GPUL_ECLOSED then. */
int wait_watched(struct pollfd *fds, size_t n, uint64_t deadline_ms,
                 struct gpul_error *err);

#endif
