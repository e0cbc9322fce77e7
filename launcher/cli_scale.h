/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb scale: its own options, and those of run that it hands on to the
 * gpulaunch of each measurement. Pure.
 */
#ifndef LAUNCHER_CLI_SCALE_H
#define LAUNCHER_CLI_SCALE_H

#include "common/buf.h"
#include "common/error.h"
#include "launcher/plan.h"

/* Read what follows the verb. What run would say of the options, for any of
 * the counts of nodes, is said here. Errors as those of cli_parse. */
int cli_scale_parse(struct plan *plan, int argc, char *const argv[],
                    gpul_getenv_fn getenv, void *getenv_arg,
                    struct gpul_error *err);

/* Is it for scale itself to say, also where the environment says it? Then the
 * runs may not see the variable. */
bool cli_scale_owns(enum option option);

/* Append its help text. */
int cli_scale_help(struct gpul_buf *out);

/* Its own options, for the test of the man page. */
const struct gpul_option *cli_scale_options(size_t *count);

#endif
