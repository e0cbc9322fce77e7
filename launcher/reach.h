/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator and the processes by which nodes are reached: all children
 * of the front end, each in a process group of its own. How a node is reached
 * is the matter of one of the ways (reach_way); nobody above knows which. Edge.
 *
 * Happy path: find the programs, start the coordinator with the operator's
 * socket and the listening ones, have the way start what brings the nodes in,
 * reap all when the job is over.
 * Failure: what cannot be started ends those that were; a child that ends
 * leaves its status and its last words, kept in memory files of bounded size
 * that nobody has to read in time.
 */
#ifndef LAUNCHER_REACH_H
#define LAUNCHER_REACH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/buf.h"
#include "common/error.h"
#include "gpulaunch.pb-c.h"
#include "launcher/listening.h"
#include "launcher/plan.h"
#include "proto/secret.h"

struct reach_child {
    pid_t pid; /* 0: not started, or reaped */
    bool has_ended;
    bool is_told;     /* its end was dealt with; for the caller */
    int status;       /* of waitpid */
    int words_fd;     /* its standard error, -1: none */
    off_t words_from; /* what is before that is of no interest any more */
};

struct reach;

/* Strings and structs are borrowed until the nodes have joined. */
struct reach_job {
    const char *job_id;
    const struct plan *plan;
    uint64_t started_ms;
    int operator_fd; /* the coordinator's end of the socket pair */
    const struct listening *listening;
    const struct gpul_secret *secret; /* NULL: --insecure */
    const char *secret_path; /* a file of it, where the way needs one */
};

/* One way to reach nodes. Each function may be NULL where the way has nothing
 * to do. */
struct reach_way {
    /* Before anything is started: make the state, find out on which addresses
     * the coordinator has to listen. */
    int (*prepare)(struct reach *r, const struct plan *plan,
                   struct listening *listening, struct gpul_error *err);
    /* Begin with all nodes; those that cannot start at once come later, by
     * themselves, from the loop. */
    int (*start)(struct reach *r, const struct reach_job *job,
                 struct gpul_error *err);
    /* The child of a node has ended. True: it is being started once more, so
     * nobody need be told. */
    bool (*ended)(struct reach *r, uint32_t index);
    /* SIGTERM: leave. Others go to the child as they are. */
    void (*signal)(struct reach *r, uint32_t index, int number);
    /* How and why a node's child has ended, and what to do. */
    Gpul__NodeGone__Why (*describe)(struct reach *r, struct gpul_buf *out,
                                    uint32_t index);
    /* Close what is in the loop; then, when that has ended, free all. */
    void (*close)(struct reach *r);
    void (*release)(struct reach *r);
    /* Does a node live only as long as its child? */
    bool is_node_child;
};

extern const struct reach_way reach_local; /* reach_local.c */
extern const struct reach_way reach_ssh;   /* reach_ssh.c */
extern const struct reach_way reach_join;  /* reach_join.c */
extern const struct reach_way reach_slurm; /* reach_slurm.c */
extern const struct reach_way reach_srun;  /* reach_srun.c */

struct reach {
    const struct reach_way *way;
    void *state; /* of the way */
    uv_loop_t *loop;
    void (*on_change)(void *arg); /* a node has ended without a child */
    void *arg;
    char coordinator_path[PATH_MAX];
    char worker_path[PATH_MAX];
    struct reach_child coordinator;
    struct reach_child *workers;
    uint32_t worker_count;
    uint32_t alive;   /* children not yet reaped */
    uint32_t waiting; /* nodes whose child is to be started yet */
    bool adopts;      /* orphans come to us */
    pid_t *strangers; /* children that this process had before; 0: ended */
    size_t stranger_count;
};

/* Choose the way that the plan asks for; find the programs beside this one or
 * in ../libexec/gpulaunch, and where the coordinator has to listen. Starts
 * nothing that lasts. Errors: GPUL_ENOTFOUND naming both places, and what the
 * way has found. */
int reach_prepare(struct reach *r, const struct plan *plan,
                  struct listening *listening, struct gpul_error *err);

/* Start everything. On failure nothing is left running. */
int reach_start(struct reach *r, const struct reach_job *job,
                struct gpul_error *err);

/* Collect children that have ended, this one's and orphans that came to us;
 * true if any of ours did. */
bool reach_reap(struct reach *r);

/* Signal what stands for one node, or for every one. */
void reach_signal_worker(struct reach *r, uint32_t index, int number);
void reach_signal_workers(struct reach *r, int number);
void reach_signal_coordinator(const struct reach *r, int number);

/* SIGKILL to all that still run, and wait until they are gone. */
void reach_kill_all(struct reach *r);

/* Are there nodes left that could join, or that a child stands for? */
bool reach_has_workers(const struct reach *r);

/* Append how the child of a node, or the coordinator, ended and what it said
 * last, on one line. */
Gpul__NodeGone__Why reach_describe_worker(struct reach *r, struct gpul_buf *out,
                                          uint32_t index);
void reach_describe_coordinator(const struct reach *r, struct gpul_buf *out);

/* Have any of the workers ended badly, so that ranks may outlive them here? */
bool reach_has_casualty(const struct reach *r);

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
void reach_sweep(struct reach *r, struct reach_sweep *out);

/* End what the way has in the loop, before that is closed. */
void reach_close(struct reach *r);

void reach_release(struct reach *r);

#endif
