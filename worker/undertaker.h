/* SPDX-License-Identifier: Apache-2.0
 *
 * A fork of the keeper that waits for its death, and then kills all that is in
 * the ranks' cgroup or carries their marker (worker/cleanup.h). Edge.
 *
 * It has no key, and of descriptors only the reading end of a pipe of which the
 * keeper alone has the other: one byte says that the ranks are gone in order,
 * an end without it that the keeper died. It is in a session of its own and
 * blocks what can be blocked, since whatever hit the keeper may be sent to a
 * group or a terminal.
 */
#ifndef WORKER_UNDERTAKER_H
#define WORKER_UNDERTAKER_H

#include <sys/types.h>

#include "worker/cgroup.h"
#include "worker/cleanup.h"

/* All zero: none. */
struct undertaker {
    pid_t pid;
    int pipe; /* writing end */
};

/* Returns 0 or an errno value. Marker and cgroup are copied by the fork, which
 * first of all does `forget` (NULL: nothing is to be): no secret stays in it.
 */
int undertaker_fork(struct undertaker *u, const struct cleanup *marker,
                    const struct cgroup *cgroup, void (*forget)(void *arg),
                    void *arg);

/* The orderly end; it has to be waited for. */
void undertaker_release(struct undertaker *u);

/* In another child: hold nothing of it. */
void undertaker_close(struct undertaker *u);

#endif
