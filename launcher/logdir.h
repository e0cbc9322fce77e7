/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the ranks' logs go, made sure of before anything starts. Edge.
 */
#ifndef LAUNCHER_LOGDIR_H
#define LAUNCHER_LOGDIR_H

#include <limits.h>
#include <stddef.h>

#include "common/error.h"

/* Which folders were not there before. */
struct logdir_made {
    char path[PATH_MAX]; /* as it was asked for */
    size_t old_bytes;    /* this much of it was there */
};

/* Create `wanted` (0700, parents too) and prove that a file can be written
 * there. On success *out is its absolute path, the caller's to free.
 * Errors: GPUL_EINVAL (also for a path that no message can carry), GPUL_ESYS,
 * GPUL_ENOMEM; the text names the path, and nothing is left of it that was not
 * there. */
int logdir_open(char **out, struct logdir_made *made, const char *wanted,
                struct gpul_error *err);

/* The same for the default place: gpulaunch/logs in the state directory
 * (XDG_STATE_HOME, else ~/.local/state), or if that cannot be had
 * gpulaunch-<uid> in TMPDIR or /tmp, which must be the caller's own. */
int logdir_open_default(char **out, struct logdir_made *made,
                        struct gpul_error *err);

/* The same for what is beside the logs: gpulaunch in the state directory, or
 * else the same folder of TMPDIR or /tmp. */
int logdir_open_state(char **out, struct logdir_made *made,
                      struct gpul_error *err);

/* Where that is or would be; nothing is made, or tried. For who only looks for
 * what another process of the user's puts there. Returns as above. */
int logdir_find_state(char **out, struct gpul_error *err);

/* Remove those folders again, as far as they are empty. */
void logdir_unmake(const struct logdir_made *made);

#endif
