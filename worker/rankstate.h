/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of a rank do: of the busiest one its state, threads and
 * where in the kernel it waits, and the processor time that all have used
 * between two looks. From /proc, so it is what any user may see of processes
 * of their own. Edge.
 *
 * A process belongs to the rank that it descends from; one whose parent has
 * ended belongs to none.
 */
#ifndef WORKER_RANKSTATE_H
#define WORKER_RANKSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/limits.h"

/* proc(5), /proc/PID/stat. */
struct rankstate_process {
    pid_t pid;
    pid_t parent;
    char state; /* R, S, D, Z, T ... */
    uint32_t threads;
    uint64_t cpu_ticks;   /* user and system */
    uint64_t start_ticks; /* tells a process from another of the same number */
};

/* All processes that could be seen at one time, by number. */
struct rankstate_look {
    struct rankstate_process *list;
    size_t count;
};

struct rankstate {
    char state; /* 0: not known, no process was found */
    uint32_t threads;
    uint64_t cpu_ms; /* of all of the rank, between the looks */
    /* Function of the kernel, or "read()" where that is not told; "": neither,
     * or it runs. */
    char wait_channel[GPUL_WAIT_CHANNEL_BYTES_MAX + 1];
};

/* Read a line of stat(5); false: it is none. */
bool rankstate_parse(struct rankstate_process *out, const char *text);

/* All zero is an empty look. Errors: GPUL_ENOMEM, GPUL_ESYS; then it is empty.
 */
int rankstate_look_take(struct rankstate_look *look, struct gpul_error *err);
void rankstate_look_release(struct rankstate_look *look);

/* `out` of each of `count` ranks, whose first processes are `pids` (0: none).
 * Errors: GPUL_ENOMEM; nothing is known then. */
int rankstate_read(struct rankstate *out, const pid_t *pids, size_t count,
                   const struct rankstate_look *before,
                   const struct rankstate_look *now, struct gpul_error *err);

/* Is this process `from`, or does it descend from it? */
bool rankstate_descends(const struct rankstate_look *look, pid_t pid,
                        pid_t from);

#endif
