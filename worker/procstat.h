/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc tells of one process, without allocating. Edge.
 */
#ifndef WORKER_PROCSTAT_H
#define WORKER_PROCSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCSTAT_NAME_BYTES = 64, PROCSTAT_WAIT_BYTES = 64 };

/* proc(5), /proc/PID/stat and wchan. */
struct procstat {
    char name[PROCSTAT_NAME_BYTES];
    char state; /* R, S, D, Z, T, ... */
    pid_t parent;
    pid_t group;
    uint64_t start_ticks; /* since boot, in clock ticks */
    /* An exec sets this last, behind arguments and environment; threads of the
     * kernel and zombies have none. */
    bool has_code;
    char wait_channel[PROCSTAT_WAIT_BYTES]; /* "" unknown, or not waiting */
};

/* false: there is no such process, or it cannot be seen. */
bool procstat_read(struct procstat *out, pid_t pid);

/* The same without the wait channel, which costs as much again. */
bool procstat_read_quick(struct procstat *out, pid_t pid);

/* A file of /proc/PID as NUL-terminated text; bytes read, or -1. */
ssize_t procstat_file(pid_t pid, const char *file, char *text, size_t bytes);

/* Are our pids those that the kernel and its drivers speak of? */
bool procstat_is_first_namespace(void);

#endif
