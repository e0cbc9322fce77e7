/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the ranks' logs go, made sure of before anything starts. Edge.
 */
#ifndef LAUNCHER_LOGDIR_H
#define LAUNCHER_LOGDIR_H

#include "common/error.h"

/* Create `wanted` (0700, parents too) and prove that a file can be written
 * there. On success *out is its absolute path, the caller's to free.
 * Errors: GPUL_EINVAL (also for a path that no message can carry), GPUL_ESYS,
 * GPUL_ENOMEM; the text names the path. */
int logdir_open(char **out, const char *wanted, struct gpul_error *err);

/* The same for the default place: gpulaunch/logs in the state directory
 * (XDG_STATE_HOME, else ~/.local/state), or if that cannot be had
 * gpulaunch-<uid> in TMPDIR or /tmp, which must be the caller's own. */
int logdir_open_default(char **out, struct gpul_error *err);

#endif
