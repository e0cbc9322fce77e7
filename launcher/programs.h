/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the other programs of gpulaunch are: beside this one, or in
 * ../libexec/gpulaunch. Edge.
 */
#ifndef LAUNCHER_PROGRAMS_H
#define LAUNCHER_PROGRAMS_H

#include <limits.h>

#include "common/error.h"

/* The path of the program of this name. Errors: GPUL_ENOTFOUND naming both
 * places, GPUL_ESYS. */
int programs_find(char out[PATH_MAX], const char *name, struct gpul_error *err);

#endif
