/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found out and made before anything is started: a session that
 * fails here leaves nothing behind.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/drawing.h"
#include "launcher/job_message.h"
#include "launcher/jobsecret.h"
#include "launcher/logdir.h"
#include "launcher/savefile.h"
#include "launcher/session_internal.h"
#include "proto/limits.h"
#include "proto/text.h"

/* 20261130-221500-3f9a2c41: sorts by time, unique by chance. */
static int draw_job_id(char *id, struct gpul_error *err)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return gpul_fail_errno(err, errno, "cannot draw a job id");
    }
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    char date[32];
    strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &utc);
    snprintf(id, SESSION_JOB_ID_BYTES, "%.15s-%08" PRIx32, date, random);
    return 0;
}

static int find_job_id(struct session *s, struct gpul_error *err)
{
    if (s->plan->job_id == NULL) {
        return draw_job_id(s->job_id, err);
    }
    snprintf(s->job_id, sizeof(s->job_id), "%s", s->plan->job_id);
    return 0;
}

static int prepare_logs(struct session *s, struct gpul_error *err)
{
    const char *asked = s->plan->log_dir;
    int rc = asked != NULL ? logdir_open(&s->log_root, &s->made, asked, err)
                           : logdir_open_default(&s->log_root, &s->made, err);
    if (rc != 0) {
        return asked != NULL ? gpul_wrap(err, rc, "--log-dir") : rc;
    }
    if (asprintf(&s->log_dir, "%s/%s", s->log_root, s->job_id) < 0) {
        s->log_dir = NULL;
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    return 0;
}

static int prepare_result(const struct session *s, struct gpul_error *err)
{
    const char *path = s->plan->result_path;
    int rc = path != NULL ? savefile_check(path, err) : 0;
    return rc == 0 ? drawing_check(&s->plan->drawings, err)
                   : gpul_wrap(err, rc, "--result");
}

/* GPUs of this machine show as device files, whatever driver library. */
static bool has_gpu(void)
{
    return access("/dev/nvidia0", F_OK) == 0 || access("/dev/kfd", F_OK) == 0;
}

/* The library's path as it means from any directory. Looked at here, since a
 * slip of the pen should not cost a launch. */
static int prepare_nccl(char *path, size_t n, const struct session *s,
                        const char *directory, struct gpul_error *err)
{
    const char *asked = s->plan->nccl_library;
    struct stat info;
    path[0] = '\0';
    if (asked == NULL) {
        return 0;
    }
    if (stat(asked, &info) != 0) {
        return gpul_fail_errno(err, errno, "--nccl-lib: %s", asked);
    }
    if (!S_ISREG(info.st_mode)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--nccl-lib: %s is not a file; name the library, "
                         "such as libnccl.so.2",
                         asked);
    }
    int used = asked[0] == '/' ? snprintf(path, n, "%s", asked)
                               : snprintf(path, n, "%s/%s", directory, asked);
    if (used >= (int)n) {
        return gpul_fail(err, GPUL_EINVAL, "--nccl-lib: the path is too long");
    }
    if (!gpul_text_is_valid(path, GPUL_TEXT_LINE)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--nccl-lib: %s has bytes that are not UTF-8 or "
                         "control characters; link it from another place",
                         path);
    }
    return 0;
}

/* The same on all nodes, so it goes with the job. */
static int draw_nccl_magic(uint64_t *magic, const struct session *s,
                           struct gpul_error *err)
{
    struct gpul_key key;
    *magic = 0;
    if (!s->is_sealed) {
        return 0;
    }
    int rc = gpul_key_derive(&key, &s->secret, s->job_id,
                             GPUL_CONTEXT_NCCL_MAGIC, err);
    if (rc == 0) {
        memcpy(magic, key.bytes, sizeof(*magic));
    }
    gpul_wipe(&key, sizeof(key));
    return rc;
}

static int prepare_job(struct session *s, struct gpul_error *err)
{
    char directory[PATH_MAX], nccl_library[GPUL_PATH_BYTES_MAX + 1];
    if (getcwd(directory, sizeof(directory)) == NULL) {
        return gpul_fail_errno(err, errno,
                               "cannot tell the working directory; cd to one "
                               "that exists");
    }
    uint64_t nccl_magic;
    int rc =
        prepare_nccl(nccl_library, sizeof(nccl_library), s, directory, err);
    if (rc == 0) {
        rc = draw_nccl_magic(&nccl_magic, s, err);
    }
    if (rc != 0) {
        return rc;
    }
    struct job_message message = {
        .job_id = s->job_id,
        .working_directory = directory,
        .log_dir = s->log_dir,
        .nccl_library = nccl_library,
        .nccl_magic = nccl_magic,
        .has_gpu = has_gpu(),
    };
    gpul_buf_init(&s->job_frame, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    return job_message_encode(&s->job_frame, s->plan, &message, err);
}

int session_prepare(struct session *s, struct gpul_error *err)
{
    int rc = find_job_id(s, err);
    if (rc == 0) {
        s->listening.port = s->plan->port;
        s->listening.advertised = s->plan->advertised;
        rc = reach_prepare(&s->reach, s->plan, &s->listening, err);
    }
    if (rc == 0) {
        struct jobsecret_request asked = jobsecret_asked(s->plan);
        asked.is_loopback = listening_is_loopback(&s->listening);
        rc = jobsecret_get(&s->secret, &s->is_sealed, &asked, err);
    }
    if (rc == 0) {
        rc = prepare_result(s, err);
    }
    if (rc == 0) {
        rc = prepare_logs(s, err);
    }
    if (rc == 0) {
        rc = prepare_job(s, err);
    }
    bool needs_file =
        s->plan->is_open || (s->plan->allocation.source == NODES_SLURM &&
                             s->plan->sruntask.count == 0);
    if (rc == 0 && needs_file) {
        rc = invite_prepare(&s->invite, s->plan,
                            s->is_sealed ? &s->secret : NULL, s->job_id, err);
    }
    if (rc != 0) {
        return rc;
    }
    s->credits = calloc(s->plan->node_count, sizeof(*s->credits));
    return s->credits != NULL ? 0
                              : gpul_fail(err, GPUL_ENOMEM, "out of memory");
}
