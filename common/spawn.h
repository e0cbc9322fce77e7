/* SPDX-License-Identifier: Apache-2.0
 *
 * Start a process at the cost of posix_spawn (vfork), whatever the size of
 * the parent, and report exactly why it could not be executed. Edge.
 */
#ifndef GPUL_COMMON_SPAWN_H
#define GPUL_COMMON_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* Descriptor `from` of the parent becomes `to` in the child. */
struct gpul_spawn_fd {
    int from;
    int to; /* numbers 0..n-1, in order */
};

struct gpul_spawn {
    const char *path;                /* executed as it is: no search here */
    char *const *arguments;          /* NULL-terminated */
    char *const *environment;        /* NULL-terminated */
    const char *working_directory;   /* NULL: the parent's */
    const struct gpul_spawn_fd *fds; /* all others are closed in the child */
    size_t fd_count;
    int parent_death_signal; /* sent when the calling thread ends; 0: none */
    int cgroup_procs;        /* open cgroup.procs of the group that the child
                                enters; 0: it stays in the parent's */
    const uint64_t *cpus;    /* mask of the processors it may run on; NULL: the
                                parent's */
    size_t cpu_words;
    const uint64_t *nodes; /* mask of the NUMA nodes that all its memory comes
                              from (MPOL_BIND); NULL: the parent's policy */
    size_t node_words;
    bool raises_limits; /* of open files and locked memory, soft to hard; what
                           cannot be raised stays as it is */
};

/* The child leads a new process group, has no controlling terminal, default
 * signal dispositions, an empty signal mask and the limit of core files that
 * this program came with (common/startup.h). Returns 0 with *pid, or
 * GPUL_ESYS with *exec_errno set to what failed (ENOENT, EACCES, ENOEXEC, ...);
 * nothing is left of the child then. */
int gpul_spawn(pid_t *pid, int *exec_errno, const struct gpul_spawn *spec,
               struct gpul_error *err);

/* Find a command as execvp would: a name with a slash is taken as it is,
 * another is looked for in `path_list` (NULL: "/usr/local/bin:/usr/bin:/bin").
 * Relative entries and names are relative to `working_directory` if given.
 * Returns 0 with *out (the caller frees it); otherwise GPUL_ENOTFOUND with
 * *exec_errno ENOENT, or EACCES when one was found that is not executable. */
int gpul_spawn_find(char **out, int *exec_errno, const char *command,
                    const char *path_list, const char *working_directory,
                    struct gpul_error *err);

#endif
