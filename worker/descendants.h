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

#include "common/buf.h"

/* Groups that are remembered as signalled; past that some hear it twice. */
enum { DESCENDANTS_GROUPS_MAX = 256 };

/* Who has been sent the signal of the stop that is under way. */
struct descendants {
    int signal; /* 0: no stop is under way */
    pid_t groups[DESCENDANTS_GROUPS_MAX];
    size_t group_count;
};

/* Is there any child, dead ones that wait to be waited for included? */
bool descendants_exist(void);

/* Start a stop: send `signal` to each child and to the whole process group
 * that it is in (never our own). A stopped one is continued, that it may act
 * on it. */
void descendants_stop(struct descendants *d, int signal);

/* Orphans may have become children since: send them the signal of the stop
 * under way. Only SIGKILL is sent to anybody twice. */
void descendants_sweep(struct descendants *d);

/* Append "pid name" of each child to `out` as NUL-terminated strings, at
 * most `most`; returns their number. For processes that would not die. */
size_t descendants_list(struct gpul_buf *out, size_t most);

#endif
