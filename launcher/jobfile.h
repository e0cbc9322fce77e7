/* SPDX-License-Identifier: Apache-2.0
 *
 * A file with what a node needs to join, for the time of one job: mode 0600,
 * in a folder of mode 0700, new, nobody else's. Edge.
 */
#ifndef LAUNCHER_JOBFILE_H
#define LAUNCHER_JOBFILE_H

#include <limits.h>
#include <stddef.h>

#include "common/error.h"
#include "launcher/logdir.h"

struct jobfile {
    char path[PATH_MAX];     /* "": there is none */
    size_t folder_bytes;     /* so much of it is the folder */
    struct logdir_made made; /* above the folder, of the state directory */
};

/* Write the file `job_id` into `folder`, which is made if it is not there;
 * NULL: gpulaunch/jobs of the state directory. Errors: GPUL_EINVAL (the folder
 * is a link, another user's, or others may use it), GPUL_ESYS; the text has
 * the path. */
int jobfile_create(struct jobfile *f, const char *folder, const char *job_id,
                   const void *bytes, size_t n, struct gpul_error *err);

/* Remove it, and the folder and what was made above it if nothing else is in
 * it. An all-zero one, too. */
void jobfile_remove(struct jobfile *f);

#endif
