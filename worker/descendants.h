/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes below this one. The worker is a child subreaper, so whatever
 * a rank leaves behind becomes a child of the worker: as long as there is no
 * child, nothing of the job is left. Edge.
 */
#ifndef WORKER_DESCENDANTS_H
#define WORKER_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Groups that are remembered as signalled; past that some hear it twice. */
enum { DESCENDANTS_GROUPS_MAX = 256, DESCENDANTS_SPARED_MAX = 2 };

/* Who has been sent the signal of the stop that is under way. */
struct descendants {
    pid_t spared[DESCENDANTS_SPARED_MAX]; /* children of another kind, which
                                             are none of these; 0: none */
    int signal;                           /* 0: no stop is under way */
    pid_t groups[DESCENDANTS_GROUPS_MAX];
    size_t group_count;
};

/* Is there any child that is not spared, dead ones that wait to be waited for
 * included? A look at all processes of the host where the kernel keeps no list
 * of children. */
bool descendants_remain(const struct descendants *d);

/* Start a stop: send `signal` to each child and to the whole process group
 * that it is in (never our own). Then the processes among them that are
 * stopped, by whoever, are continued (SIGCONT), that they may act on it; one
 * that runs gets none. One that a debugger holds is the debugger's. */
void descendants_stop(struct descendants *d, int signal);

/* Orphans may have become children since: send them the signal of the stop
 * under way. Only SIGKILL is sent to anybody twice. */
void descendants_sweep(struct descendants *d);

enum { DESCENDANTS_TEXT_BYTES = 256 };

/* Call `each` with "pid name (state, wait channel)" of those that remain and
 * are not dead. */
void descendants_describe(const struct descendants *d,
                          void (*each)(void *arg, const char *text), void *arg);

#endif
