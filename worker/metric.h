/* SPDX-License-Identifier: Apache-2.0
 *
 * The figure that a rank tells: a line written to GPULAUNCH_METRIC_FD, the
 * last one if there are several. What it is written to is a piece of memory
 * of a fixed size, so that a write neither blocks nor is lost with an agent
 * that reads late; what is over the size fails with EPERM. Edge.
 */
#ifndef WORKER_METRIC_H
#define WORKER_METRIC_H

#include "proto/limits.h"

/* Two descriptors of it, close-on-exec: ends[0] to be read by us, ends[1] for
 * the rank. Returns 0 or an errno. */
int metric_open(int ends[2]);

/* The last line that is not empty, without its end and harmless, cut to
 * GPUL_METRIC_BYTES_MAX; "" if there is none. */
void metric_read(char text[GPUL_METRIC_BYTES_MAX + 1], int fd);

#endif
