/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine is made of, by hwloc. Edge.
 *
 * hwloc lives in a short process of its own, which opens it at run time: it
 * costs nothing where no rank is bound, a machine without it runs all else, and
 * what it loads or trips over stays out of the agent.
 */
#ifndef WORKER_TOPOLOGY_H
#define WORKER_TOPOLOGY_H

#include "common/error.h"
#include "worker/binding.h"

/* The verb that makes this program that process. */
#define TOPOLOGY_VERB "topology"

/* Ask `program` (this program's own path), for five seconds at most. `root`
 * stands before the paths of /proc and /sys: "" in the program, a folder in
 * tests. Errors: GPUL_ESYS, with what is missing. */
int topology_read(struct binding_machine *out, const char *program,
                  const char *root, struct gpul_error *err);

/* The process: the machine on standard output. Returns its exit code; what is
 * wrong is a sentence on standard output then. */
int topology_main(const char *root);

#endif
