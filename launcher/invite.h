/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes of a job that waits for them are to run. Edge.
 */
#ifndef LAUNCHER_INVITE_H
#define LAUNCHER_INVITE_H

#include "common/buf.h"
#include "common/error.h"
#include "launcher/jobfile.h"
#include "launcher/listening.h"
#include "launcher/plan.h"
#include "proto/secret.h"

struct invite {
    char secret_path[PATH_MAX]; /* "": --insecure */
    struct jobfile file;        /* ours, if the user has none */
};

/* Make sure that there is a file of the secret (NULL: --insecure): the user's,
 * or else one that lasts as long as the job. Errors: those of jobfile_create.
 */
int invite_prepare(struct invite *invite, const struct plan *plan,
                   const struct gpul_secret *secret, const char *job_id,
                   struct gpul_error *err);

/* Append what to do, and the line to run, one for each address. GPUL_ELIMIT. */
int invite_append(struct gpul_buf *out, const struct invite *invite,
                  const struct plan *plan, const struct listening *listening,
                  const char *job_id);

/* Remove our file. An all-zero one, too. */
void invite_release(struct invite *invite);

#endif
