/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of a run as one JSON object; docs/operations.md has its keys.
 * Times are seconds, sizes bytes, rates bytes a second. Edge (jansson).
 */
#ifndef LAUNCHER_RESULT_H
#define LAUNCHER_RESULT_H

#include "common/buf.h"
#include "launcher/plan.h"
#include "launcher/record.h"

struct result {
    const struct plan *plan;
    const struct record *record; /* with its end */
    const char *job_id;
    const char *log_dir; /* where logs were kept, NULL: nowhere */
    const char *message; /* the last sentence */
    int exit_code;       /* of gpulaunch */
};

/* Append the object and a newline. Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int result_print(struct gpul_buf *out, const struct result *result);

#endif
