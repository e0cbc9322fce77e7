/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch secret: one secret, to a new file or to standard output. Edge.
 */
#ifndef LAUNCHER_MAKESECRET_H
#define LAUNCHER_MAKESECRET_H

#include "common/error.h"

/* Write a new secret to `path`, which must not exist: a regular file of mode
 * 0600, whole or not there. Errors: GPUL_EINVAL (it exists), GPUL_ESYS; the
 * text names the path. */
int makesecret_file(const char *path, struct gpul_error *err);

/* Write one to `fd`, an open descriptor. Where others could read it there, a
 * line on standard error says how to do better. *why is the errno of a write
 * that failed. Errors: GPUL_ESYS. */
int makesecret_print(int fd, int *why, struct gpul_error *err);

#endif
