/* SPDX-License-Identifier: Apache-2.0
 *
 * Reaching nodes by starting them here: the coordinator and N workers as
 * children of the front end, each in a process group of its own. Edge.
 *
 * Happy path: find the programs, start the coordinator with the operator's
 * socket, the listening socket and the job's secret, start the workers with
 * its address and each with its key, reap them when the job is over.
 * Failure: what cannot be started ends those that were; a child that ends
 * leaves its status and its last words, kept in memory files of bounded size
 * that nobody has to read in time.
 */
#ifndef LAUNCHER_REACH_LOCAL_H
#define LAUNCHER_REACH_LOCAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/secret.h"

#define REACH_LOCAL_PREFIX "local-"

struct reach_child {
    pid_t pid; /* 0: not started, or reaped */
    bool has_ended;
    bool is_told; /* its end was dealt with; for the caller */
    int status;   /* of waitpid */
    int words_fd; /* its standard error, -1: none */
};

struct reach_local {
    char coordinator_path[PATH_MAX];
    char worker_path[PATH_MAX];
    struct reach_child coordinator;
    struct reach_child *workers;
    uint32_t worker_count;
    uint32_t alive;   /* children not yet reaped */
    pid_t *strangers; /* children that this process had before; 0: ended */
    size_t stranger_count;
};

struct reach_local_job {
    const char *job_id;
    uint32_t node_count;
    uint32_t join_timeout_ms;
    int operator_fd; /* the coordinator's end of the socket pair */
    int listen_fd;
    /* The coordinator gets it, each worker its own key; NULL: nobody has to
     * show one. */
    const struct gpul_secret *secret;
    uint16_t port; /* of listen_fd, on 127.0.0.1 */
};

/* Find the programs beside this one or in ../libexec/gpulaunch. Errors:
 * GPUL_ENOTFOUND naming both places. */
int reach_local_find(struct reach_local *r, struct gpul_error *err);

/* Start everything. On failure nothing is left running. */
int reach_local_start(struct reach_local *r, const struct reach_local_job *job,
                      struct gpul_error *err);

/* Collect children that have ended, this one's and orphans that came to us;
 * true if any of ours did. */
bool reach_local_reap(struct reach_local *r);

/* Signal one worker, or every one, that still runs. */
void reach_local_signal_worker(const struct reach_local *r, uint32_t index,
                               int number);
void reach_local_signal_workers(const struct reach_local *r, int number);
void reach_local_signal_coordinator(const struct reach_local *r, int number);

/* SIGKILL to all that still run, and wait until they are gone. */
void reach_local_kill_all(struct reach_local *r);

/* Append how a child ended and what it said last, on one line. */
int reach_local_describe(struct gpul_buf *out, const struct reach_child *child);

/* Have any of the workers ended badly, so that ranks may outlive them? */
bool reach_local_has_casualty(const struct reach_local *r);

enum { REACH_LEFT_BYTES = 256 };

/* What a sweep has come to. */
struct reach_sweep {
    bool has_killed;             /* somebody */
    uint32_t left;               /* processes that would not die */
    char text[REACH_LEFT_BYTES]; /* "12 python3, 14 sh" of these, some */
};

/* SIGKILL what is left of the job's ranks after all workers have ended,
 * whatever they made of their environment, session or group: the kernel hands
 * orphans to us. The undertaker of a keeper that was killed is at the same
 * work, and has the time that it needs. Bounded by 8 s. */
void reach_local_sweep(struct reach_local *r, struct reach_sweep *out);

void reach_local_release(struct reach_local *r);

#endif
