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

/* The same for a file that others wait for: one that is there already is taken
 * the place of, and at no time is there half a file. */
int jobfile_replace(struct jobfile *f, const char *folder, const char *name,
                    const void *bytes, size_t n, struct gpul_error *err);

/* The folder that NULL means, for who waits for a file in it: nothing is made.
 * Errors: those of logdir_find_state. */
int jobfile_default_folder(char out[PATH_MAX], struct gpul_error *err);

/* Remove it, and the folder and what was made above it if nothing else is in
 * it. An all-zero one, too. */
void jobfile_remove(struct jobfile *f);

#endif
