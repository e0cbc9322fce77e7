/* SPDX-License-Identifier: Apache-2.0
 *
 * How many failed jobs keep their logs in the default place. A folder is
 * removed only if it is certain to be one of ours: named as a job, marked by
 * the job that failed, this user's, and holding nothing but what our programs
 * write. Edge.
 */
#ifndef LAUNCHER_LOGKEEP_H
#define LAUNCHER_LOGKEEP_H

#include <stddef.h>

#include "common/error.h"

enum { LOGKEEP_JOBS = 20 };

/* The logs in <root>/<job_id> are those of a failed job that has ended: mark
 * them. The mark is what makes the folder one to be removed later. Errors:
 * GPUL_ESYS; then the folder stays for ever. */
int logkeep_mark(const char *root, const char *job_id, struct gpul_error *err);

/* Remove the marked folders in `root` but the newest `kept`. What cannot be
 * removed, or is in doubt, stays. Links are neither followed nor removed. */
void logkeep_prune(const char *root, size_t kept);

#endif
