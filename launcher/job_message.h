/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan as the Job message that the coordinator gets. Pure.
 */
#ifndef LAUNCHER_JOB_MESSAGE_H
#define LAUNCHER_JOB_MESSAGE_H

#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "launcher/plan.h"

struct job_message {
    const char *job_id;
    const char *working_directory;
    const char *log_dir;      /* <log directory>/<job id>, or "" */
    const char *nccl_library; /* absolute, or "" */
    uint64_t nccl_magic;      /* NCCL_SOCKET_MAGIC of the job; 0: none */
    bool has_gpu;             /* decides what --per-node auto means */
};

/* Append the whole frame. Errors: GPUL_ELIMIT (the command and the -x values
 * do not fit a message; the text has the bound), GPUL_ENOMEM. */
int job_message_encode(struct gpul_buf *out, const struct plan *plan,
                       const struct job_message *m, struct gpul_error *err);

#endif
