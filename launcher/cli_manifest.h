/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb manifest: its own options, and those of run that it hands on to
 * the gpulaunch which will run the command. Pure.
 */
#ifndef LAUNCHER_CLI_MANIFEST_H
#define LAUNCHER_CLI_MANIFEST_H

#include "common/buf.h"
#include "common/error.h"
#include "launcher/plan.h"

/* Read what follows the verb. The environment has no say: the file is for
 * other machines. Errors as those of cli_parse. */
int cli_manifest_parse(struct plan *plan, int argc, char *const argv[],
                       struct gpul_error *err);

/* Append its help text. */
int cli_manifest_help(struct gpul_buf *out);

/* Its own options, for the test of the man page. */
const struct gpul_option *cli_manifest_options(size_t *count);

#endif
