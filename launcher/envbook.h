/* SPDX-License-Identifier: Apache-2.0
 *
 * The environments that the agents reported, put together by rank, and how
 * `gpulaunch env` and `run --dry-run` print them. Edge (jansson).
 */
#ifndef LAUNCHER_ENVBOOK_H
#define LAUNCHER_ENVBOOK_H

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "gpulaunch.pb-c.h"
#include "launcher/plan.h"
#include "launcher/record.h"

struct envbook {
    Gpul__EnvReport **reports; /* copies, in order of arrival */
    size_t count;
    size_t capacity;
    size_t bytes;
};

/* What is kept at most; a report beyond it is refused. */
enum { ENVBOOK_BYTES_MAX = 256 << 20 };

void envbook_release(struct envbook *b);

/* Keep a copy. Errors: GPUL_ELIMIT, GPUL_ENOMEM. */
int envbook_add(struct envbook *b, const Gpul__EnvReport *report,
                struct gpul_error *err);

/* Append what the plan asks for: assignments, the table of --explain, the
 * plan and all ranks of --dry-run, or one JSON object. Errors: GPUL_ELIMIT,
 * GPUL_ENOMEM. */
int envbook_print(struct gpul_buf *out, struct envbook *b,
                  const struct plan *plan, const struct record *record,
                  const char *job_id);

#endif
