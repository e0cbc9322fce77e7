/* SPDX-License-Identifier: Apache-2.0
 *
 * The result file of one run of a sweep, read back. Edge (jansson).
 */
#ifndef LAUNCHER_SCALERESULT_H
#define LAUNCHER_SCALERESULT_H

#include <jansson.h>

#include "common/error.h"
#include "launcher/scalebook.h"

/* Owns all that its outcome points to. */
struct scaleresult {
    json_t *root;
    struct scalebook_rank *ranks;
    struct dossier found;
    struct scalebook_outcome outcome; /* without figures of lines */
};

/* Read the file that `run --metrics --result` has left, to be released in any
 * case. Errors: GPUL_EINVAL (it is not there, or is none), GPUL_ENOMEM. */
int scaleresult_read(struct scaleresult *r, const char *path,
                     struct gpul_error *err);

void scaleresult_release(struct scaleresult *r);

#endif
