/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of a failed job before its last line: the first failure with
 * what that rank left behind, the failures after it, and who was stopped.
 * Pure.
 */
#ifndef LAUNCHER_FAILURE_TEXT_H
#define LAUNCHER_FAILURE_TEXT_H

#include "common/buf.h"
#include "launcher/record.h"

enum {
    FAILURE_TEXT_BYTES_MAX = 64 << 10,
    FAILURE_TAIL_LINES_MAX = 20,
    FAILURE_OTHERS_MAX = 10,
};

/* Torch's word on the first failing rank; each "" where there is none. */
struct failure_exception {
    const char *type;
    const char *message;
    const char *first; /* frames, "train.py:12 in main" */
    const char *last;
};

/* Append lines, each with its newline; none where there is nothing to add to
 * the last line: after a success, and of a job of one rank, whose output is
 * on the screen. `exception` may be NULL. Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int failure_text(struct gpul_buf *out, const struct record *r,
                 const struct failure_exception *exception);

#endif
