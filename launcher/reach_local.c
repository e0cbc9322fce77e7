/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of this machine: each is a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/hostport.h"
#include "launcher/reach_internal.h"
#include "proto/keypipe.h"

enum { NUMBER_BYTES = 32, ADDRESS_BYTES = 80 };

int reach_start_here(struct reach *r, const struct reach_job *job,
                     uint32_t index, int null_fd, struct gpul_error *err)
{
    char program[] = "gpulaunch-worker";
    char connect[] = "--connect", id_flag[] = "--job", name_flag[] = "--name";
    char join[] = "--join-timeout", insecure[] = "--insecure";
    char seconds[NUMBER_BYTES], id[NAME_MAX];
    char *name = job->plan->nodes.list[index].name;
    const struct gpul_hostport *at = &job->listening->at[0];
    struct gpul_buf address;
    gpul_buf_init(&address, ADDRESS_BYTES);
    const char *text = NULL;
    if (gpul_hostport_append(&address, at->host, at->port) == 0) {
        text = gpul_buf_text(&address);
    }
    if (text == NULL) {
        gpul_buf_release(&address);
        return gpul_fail(err, GPUL_ENOMEM, "out of memory for an address");
    }
    snprintf(seconds, sizeof(seconds), "%" PRIu32,
             (job->plan->join_timeout_ms - 1) / 1000 + 1);
    snprintf(id, sizeof(id), "%s", job->job_id);
    char *arguments[] = {program,
                         connect,
                         (char *)(uintptr_t)text,
                         id_flag,
                         id,
                         name_flag,
                         name,
                         join,
                         seconds,
                         job->secret == NULL ? insecure : NULL,
                         NULL};
    int key_fd;
    int rc = reach_open_key(&key_fd, job, name, err);
    if (rc == 0) {
        struct gpul_spawn_fd fds[] = {{null_fd, 0},
                                      {null_fd, 1},
                                      {-1, 2},
                                      {key_fd, GPUL_KEYPIPE_OF_NODE}};
        /* Should we be killed, the coordinator stops the job; but it cannot
         * tell a worker that has not joined yet. */
        const struct reach_program worker = {.path = r->worker_path,
                                             .arguments = arguments};
        rc = reach_spawn(r, &r->workers[index], &worker, fds,
                         key_fd >= 0 ? 4 : 3, SIGTERM, err);
    }
    if (key_fd >= 0) {
        close(key_fd);
    }
    gpul_buf_release(&address);
    return rc;
}

static int start(struct reach *r, const struct reach_job *job,
                 struct gpul_error *err)
{
    int rc = 0;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    for (uint32_t i = 0; rc == 0 && i < r->worker_count; i++) {
        rc = reach_start_here(r, job, i, null_fd, err);
    }
    close(null_fd);
    return rc;
}

/* It is nobody's but this machine's. */
static int prepare(struct reach *r, const struct plan *plan,
                   struct listening *listening, struct gpul_error *err)
{
    (void)r;
    (void)plan;
    (void)err;
    listening_add(listening, "127.0.0.1");
    return 0;
}

const struct reach_way reach_local = {
    .prepare = prepare,
    .start = start,
    .is_node_child = true,
};
