/* SPDX-License-Identifier: Apache-2.0
 *
 * A cgroup v2 of their own for the ranks, below the one that this process is
 * in, and the kernel's count of processes killed for want of memory. Edge;
 * allocates nothing.
 *
 * That there is no cgroup that can be written is normal: in a container, or
 * in a session that systemd has not delegated. Then everything below does
 * nothing, and the sweep (worker/descendants.h) does the work alone.
 *
 * `root` is put before /proc and /sys, "" but in tests.
 */
#ifndef WORKER_CGROUP_H
#define WORKER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: there is none. */
struct cgroup {
    int procs; /* open cgroup.procs, for gpul_spawn; 0: none */
    char path[PATH_MAX];
};

/* Make a leaf called `name` and prove that a process can enter it. false:
 * none can be had. */
bool cgroup_make(struct cgroup *g, const char *root, const char *name);

/* SIGKILL to all in it, and all that they fork meanwhile. */
void cgroup_kill(const struct cgroup *g);

/* cgroup.events: is a process in it? false when there is no cgroup. */
bool cgroup_is_populated(const struct cgroup *g);

/* Remove it, and close it then; for up to `bound_ms`, since a process that
 * has just died is in it for a moment. false: it is still there. */
bool cgroup_remove(struct cgroup *g, uint64_t bound_ms);

/* Close only: in a child that has no business with it. */
void cgroup_close(struct cgroup *g);

/* Counts of the cgroup that this process, and the ranks with it, belong to
 * for its memory: memory.events (v2) or memory.oom_control (v1). */
struct cgroup_oom {
    int fd;        /* 0: no such count */
    uint64_t seen; /* kills that are accounted for */
};

void cgroup_oom_open(struct cgroup_oom *o, const char *root);
void cgroup_oom_close(struct cgroup_oom *o);

/* Has it counted a kill that is not accounted for? Takes one. */
bool cgroup_oom_take(struct cgroup_oom *o);

/* Account for all that there are: from here on it is we who kill. */
void cgroup_oom_skip(struct cgroup_oom *o);

#endif
