/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of srun's other than the first becomes a node of the job that task 0
 * is the front end of. Edge.
 *
 * Happy path: wait for the file that task 0 writes (meeting.h), become the
 * worker of this node, as by gpulaunch join. Its exit code is 0 when the job
 * is over, whatever came of it: that is for task 0 to say, and a code of ours
 * would only compete with it.
 * Failure: a file that is not there within the time to join, told with the
 * folder and who was to write it. One of an earlier run of a step of this
 * number is never taken.
 */
#ifndef LAUNCHER_SRUNJOIN_H
#define LAUNCHER_SRUNJOIN_H

#include "common/error.h"
#include "launcher/plan.h"

/* Returns only on failure, with the exit code of the program. */
int srunjoin_run(const struct plan *plan, struct gpul_error *err);

#endif
