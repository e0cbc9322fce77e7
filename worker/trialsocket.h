/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial between two nodes asks of the system: its sockets, and how the
 * connection and this thread have fared. Edge.
 */
#ifndef WORKER_TRIALSOCKET_H
#define WORKER_TRIALSOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"

/* Listen on a literal address and a port of the system's choice. Returns a
 * descriptor that never blocks, or a failure: GPUL_EINVAL, GPUL_ESYS. */
int trialsocket_listen(const char *address, uint16_t *port,
                       struct gpul_error *err);

/* A connection under way from one literal address to another, or -1 and errno:
 * it has failed at once. */
int trialsocket_dial(const char *from, const char *to, uint16_t port);

/* Fill in how many segments of data were sent so far, and of these again:
 * TCP_INFO. Nothing is changed where the system does not tell. */
void trialsocket_segments(int fd, Gpul__TrialWay *way);

/* What this thread has spent on a processor and waited for one, in ns. False:
 * the kernel does not tell. */
bool trialsocket_busy(uint64_t *busy_ns);

#endif
