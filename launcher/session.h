/* SPDX-License-Identifier: Apache-2.0
 *
 * One job from its plan to its exit code: start the coordinator and the
 * nodes, send the job, pass output and progress on, bring everything to an
 * end. Edge.
 */
#ifndef LAUNCHER_SESSION_H
#define LAUNCHER_SESSION_H

#include "common/error.h"
#include "launcher/plan.h"

enum {
    SESSION_EXIT_DEADLINE = 40,  /* as of a worker that never became a member */
    SESSION_EXIT_INTERNAL = 125, /* gpulaunch's own failure, wrong usage too */
    SESSION_EXIT_PIPE = 128 + 13, /* SIGPIPE: nobody reads standard output */
};

/* Run the plan (verbs RUN and ENV). *exit_code is that of gpulaunch; all that
 * is to be said has been said, unless the job could not even be started: then
 * a failure is returned, nothing is running, and its text is for the user. */
int session_run(const struct plan *plan, int *exit_code,
                struct gpul_error *err);

#endif
