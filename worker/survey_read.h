/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at this node for a check. Edge.
 *
 * Happy path: survey_read forks a process for each theme, which looks, tells
 * each fact as it finds it, and ends; then all facts are in. A theme that
 * does not end in time is killed and not waited for, since the kernel may not
 * let go of it: its facts until then count, and "survey.AREA" says for each of
 * its areas why the others are missing. The same where one crashes.
 */
#ifndef WORKER_SURVEY_READ_H
#define WORKER_SURVEY_READ_H

#include "common/error.h"
#include "worker/survey.h"

struct survey_request {
    const char *root; /* before every path of /proc, /sys, /etc and /dev; "" */
    const char *const *environment; /* of the ranks, NULL-terminated */
    const char *command; /* its first word; NULL: none is looked for */
    const char *working_directory; /* of the command; NULL: this one's */
    const char *data_dir;          /* whose reading is timed; NULL: none */
    const char *salt;              /* of digests: the job's ID */
    uint32_t deadline_ms;          /* of a theme */
    uint32_t storage_ms;           /* of the one that reads data_dir */
};

/* What both usually are. */
enum { SURVEY_DEADLINE_MS = 5000, SURVEY_STORAGE_MS = 25000 };

/* Look, in this process's children: it has no other threads, and is no
 * process that others wait for. Errors: GPUL_ENOMEM, GPUL_ESYS (no process at
 * all could be made). */
int survey_read(struct survey *out, const struct survey_request *request,
                struct gpul_error *err);

#endif
