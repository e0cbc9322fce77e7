/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders that must be there before something can be created. Edge.
 */
#ifndef GPUL_COMMON_MAKEPARENTS_H
#define GPUL_COMMON_MAKEPARENTS_H

#include "common/error.h"

/* Make every missing folder above the last component of `path`, for this user
 * alone (0700). What is there stays as it is, whatever it is. Errors:
 * GPUL_EINVAL (empty or longer than PATH_MAX), GPUL_ESYS; the text names the
 * folder. */
int gpul_make_parents(const char *path, struct gpul_error *err);

#endif
