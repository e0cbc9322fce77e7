/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is either whole or not there: written beside its place, then
 * renamed. A symbolic link is followed when it is this user's or root's, never
 * when somebody else may have put it there. Edge.
 */
#ifndef LAUNCHER_SAVEFILE_H
#define LAUNCHER_SAVEFILE_H

#include <stddef.h>

#include "common/error.h"

/* Could `path` be written now? Tries it beside the place and leaves nothing.
 * Errors: GPUL_EINVAL (a directory, a link to nothing or of somebody else),
 * GPUL_ESYS; the text names the path. */
int savefile_check(const char *path, struct gpul_error *err);

/* Replace `path` by these bytes, synced to disk. Something that is no
 * regular file (a terminal, a pipe, /dev/stdout) is written as it is.
 * On failure the old file is untouched. Errors: as savefile_check. */
int savefile_write(const char *path, const void *bytes, size_t n,
                   struct gpul_error *err);

#endif
