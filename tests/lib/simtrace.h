/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as lines of a story.
 */
#ifndef TESTS_LIB_SIMTRACE_H
#define TESTS_LIB_SIMTRACE_H

#include "tests/lib/cluster.h"

/* What the coordinator sends: to one node, or to all (NULL). Welcome and
 * HeartbeatAck are left out; "joined" tells it, and silence. */
void trace_node_frame(struct cluster *c, const struct sim_link *link,
                      const Gpul__Frame *frame);

/* What it tells the front end. */
void trace_operator_frame(struct cluster *c, const Gpul__Frame *frame);

#endif
