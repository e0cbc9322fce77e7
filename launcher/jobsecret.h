/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the secret of a job comes from: --secret-file or
 * GPULAUNCH_SECRET_FILE, else GPULAUNCH_SECRET, else the kernel. Edge.
 *
 * Happy path: take the variable out of the environment before anything else
 * runs, then get the secret once, before anything is started.
 * Failure: a file or a variable that holds no secret ends the start; nothing
 * is drawn in its place, since others wait for the one that was meant.
 */
#ifndef LAUNCHER_JOBSECRET_H
#define LAUNCHER_JOBSECRET_H

#include <stdbool.h>

#include "common/error.h"
#include "launcher/plan.h"
#include "proto/secret.h"

#define JOBSECRET_VARIABLE "GPULAUNCH_SECRET"

/* A value that is longer is cut, and is no secret either way. */
enum { JOBSECRET_TEXT_BYTES = 2 * GPUL_SECRET_TEXT_BYTES };

/* Take GPULAUNCH_SECRET out of the environment of this process, so that no
 * child inherits it, and overwrite it where /proc/PID/environ would show it
 * on. Returns `text` with its value, which the caller wipes in the end, or
 * NULL where it is not set or empty. */
char *jobsecret_take(char text[JOBSECRET_TEXT_BYTES]);

struct jobsecret_request {
    const char *file;          /* NULL: none */
    const char *file_spelling; /* what named it: "--secret-file" */
    char *text;                /* as taken, NULL: none; wiped here */
    bool is_insecure;          /* --insecure */
    bool is_loopback;          /* what the coordinator listens on */
    bool is_quiet;             /* no line but an error */
};

/* What the plan asks for, for a listener on loopback. */
struct jobsecret_request jobsecret_asked(const struct plan *plan);

/* The secret to *out, and *is_sealed = true; or, with --insecure, none (*out
 * is wiped) and false. Writes a line to standard error about --insecure and
 * about a secret in the environment. Errors: those of gpul_secret_read_file
 * and gpul_secret_parse; GPUL_EINVAL for --insecure with a listener that
 * others than this machine can reach. *out is wiped then. */
int jobsecret_get(struct gpul_secret *out, bool *is_sealed,
                  const struct jobsecret_request *request,
                  struct gpul_error *err);

#endif
