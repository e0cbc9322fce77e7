/* SPDX-License-Identifier: Apache-2.0
 *
 * A small file as a whole: host files. Edge.
 */
#ifndef LAUNCHER_READFILE_H
#define LAUNCHER_READFILE_H

#include "common/buf.h"
#include "common/error.h"

/* Append the contents; what `out` may hold is the bound. A pipe will do, as of
 * a shell's <(...). Errors: GPUL_ESYS, GPUL_ELIMIT, naming the path. */
int readfile(struct gpul_buf *out, const char *path, struct gpul_error *err);

#endif
