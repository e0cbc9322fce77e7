/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes are tasks of the step of srun that this is task 0 of. This node is
 * a child; for the others a file says where the job is, how it is called and
 * what its secret is (meeting.h), on a file system that all nodes share. They
 * come by themselves (srunjoin.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/jobfile.h"
#include "launcher/meeting.h"
#include "launcher/ownaddr.h"
#include "launcher/reach_internal.h"

static int prepare(struct reach *r, const struct plan *plan,
                   struct listening *listening, struct gpul_error *err)
{
    struct jobfile *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    r->state = file;
    return ownaddr_find(listening, plan->address, err);
}

static void fill(struct meeting *m, const struct reach_job *job)
{
    *m = (struct meeting){.count = 0};
    m->count = listening_told(job->listening, m->at);
    snprintf(m->run, sizeof(m->run), "%s", job->plan->sruntask.run);
    snprintf(m->job_id, sizeof(m->job_id), "%s", job->job_id);
    if (job->secret != NULL) {
        gpul_secret_format(m->secret, job->secret);
        m->secret[strcspn(m->secret, "\n")] = '\0';
    }
}

static int tell_others(struct jobfile *file, const struct reach_job *job,
                       struct gpul_error *err)
{
    struct meeting m;
    struct gpul_buf text;
    gpul_buf_init(&text, MEETING_BYTES_MAX);
    fill(&m, job);
    int rc = meeting_format(&text, &m);
    rc = rc != 0 ? gpul_fail(err, rc, "too many addresses for a file")
                 : jobfile_replace(file, NULL, job->plan->sruntask.name,
                                   text.data, text.used, err);
    gpul_wipe(&m, sizeof(m));
    if (text.used > 0) {
        gpul_wipe(text.data, text.used);
    }
    gpul_buf_release(&text);
    return rc == 0
               ? 0
               : gpul_wrap(err, rc, "a file for the other tasks of this step");
}

static int start(struct reach *r, const struct reach_job *job,
                 struct gpul_error *err)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    int rc = tell_others(r->state, job, err);
    if (rc == 0) {
        rc = reach_start_here(r, job, job->plan->sruntask.node, null_fd, err);
    }
    close(null_fd);
    return rc;
}

static void release(struct reach *r)
{
    if (r->state != NULL) {
        jobfile_remove(r->state);
        free(r->state);
        r->state = NULL;
    }
}

const struct reach_way reach_srun = {
    .prepare = prepare,
    .start = start,
    .release = release,
};
