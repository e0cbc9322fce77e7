/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line and the GPULAUNCH_* environment in, a checked plan out.
 * Pure: whatever is wrong is found here, before anything is started.
 */
#ifndef LAUNCHER_CLI_H
#define LAUNCHER_CLI_H

#include "common/buf.h"
#include "common/error.h"
#include "launcher/plan.h"

/* The most nodes that one machine may be asked to play: each takes one
 * descriptor, and the usual limit of a process is 1024. */
enum { CLI_LOCAL_NODES_MAX = 1000 };

/* Read argv[0..argc-1] (without the program name) into `plan`, which the
 * caller releases in any case. A flag wins over the environment, which wins
 * over the default, and what the user says over what a scheduler does. The
 * strings must outlive the plan. If plan->nodes_file is set the plan is whole
 * only after cli_settle.
 * Errors: GPUL_EINVAL, or GPUL_ENOMEM; the text is one sentence that says
 * what is wrong and what to do. */
int cli_parse(struct plan *plan, int argc, char *const argv[],
              gpul_getenv_fn getenv, void *getenv_arg, struct gpul_error *err);

/* The nodes are in a file (plan->nodes_file), whose contents are these: read
 * them, and do the rest of cli_parse. Errors: GPUL_EINVAL, GPUL_ELIMIT or
 * GPUL_ENOMEM, as there. */
int cli_settle(struct plan *plan, const char *file, size_t bytes,
               struct gpul_error *err);

/* Take a scheduler's time limit for --timeout, unless that was given; now_s is
 * the time since 1970. GPUL_EINVAL: --signal does not fit into it. */
int cli_limit(struct plan *plan, uint64_t now_s, struct gpul_error *err);

/* Append the help text of a topic: 0 (the program), PLAN_RUN, PLAN_CHECK,
 * PLAN_DOCTOR, PLAN_ENV, PLAN_SECRET, PLAN_JOIN, PLAN_MANIFEST, PLAN_REPORT,
 * PLAN_DIFF or PLAN_SCALE. */
int cli_help(struct gpul_buf *out, enum plan_verb topic);

/* Append one line per setting: its value and where that came from. */
int cli_explain(struct gpul_buf *out, const struct plan *plan);

/* The option that a variable GPULAUNCH_<name> of the caller was probably
 * meant for, as the name of its variable; NULL if it is one, or is like
 * none. */
const char *cli_nearest_variable(const char *name);

#endif
