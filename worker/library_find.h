/* SPDX-License-Identifier: Apache-2.0
 *
 * worker/library_search.h on this machine: looks which Pythons the prefixes
 * have. Edge.
 */
#ifndef WORKER_LIBRARY_FIND_H
#define WORKER_LIBRARY_FIND_H

#include "worker/library_search.h"

/* `command` is the first word of the training command, or NULL: it is looked
 * up in the PATH of in->environment, and in->program is ignored. Errors as
 * library_search; a folder that cannot be read has no Python. */
int library_find(struct library_candidates *out,
                 const struct library_search *in, const char *command,
                 struct gpul_error *err);

#endif
