/* SPDX-License-Identifier: Apache-2.0
 *
 * What the task of srun that is the front end leaves for the others: a file of
 * a few lines, of which each has a word and a value.
 *
 *   gpulaunch-meeting 1
 *   run RUN              of which run of the step it is
 *   job ID
 *   address HOST:PORT    once or several times
 *   secret HEX           not with --insecure
 *   end
 *
 * Pure. The bytes hold a secret: whoever has them wipes them.
 */
#ifndef LAUNCHER_MEETING_H
#define LAUNCHER_MEETING_H

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/hostport.h"
#include "launcher/sruntask.h"
#include "proto/limits.h"
#include "proto/secret.h"

enum { MEETING_BYTES_MAX = 8 << 10 };

struct meeting {
    char run[SRUNTASK_RUN_BYTES];
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    struct gpul_hostport at[GPUL_COORDINATORS_MAX];
    uint32_t count;
    char secret[GPUL_SECRET_TEXT_BYTES]; /* "": --insecure; no newline */
};

/* Append the lines. Errors: GPUL_ELIMIT. */
int meeting_format(struct gpul_buf *out, const struct meeting *m);

/* The text is cut in place. Errors: GPUL_EINVAL with the line; *m is all zero
 * then. The value of `secret` is for gpul_secret_parse. */
int meeting_parse(struct meeting *m, char *text, size_t n,
                  struct gpul_error *err);

#endif
