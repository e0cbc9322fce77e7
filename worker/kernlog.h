/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's log, where it may be read (/dev/kmsg): which processes it has
 * killed for want of memory since we began to look. Edge; never waits.
 */
#ifndef WORKER_KERNLOG_H
#define WORKER_KERNLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNLOG_PIDS = 64 };

struct kernlog {
    int fd;                     /* -1: it cannot be read */
    bool is_whole;              /* no record was missed since it was opened */
    int32_t pids[KERNLOG_PIDS]; /* killed, the last ones */
    size_t count;
};

/* From now on. Within another PID namespace than the kernel's first, whose
 * pids it speaks of, there is nothing to read. */
void kernlog_open(struct kernlog *k);

/* The same, from a descriptor that gives one record a read and does not
 * block; it is taken over. */
void kernlog_open_fd(struct kernlog *k, int fd);
void kernlog_close(struct kernlog *k);

/* Has it killed this process for want of memory? A bounded look. */
bool kernlog_has_killed(struct kernlog *k, int32_t pid);

#endif
