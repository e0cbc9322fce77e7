/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that owns a node's ranks: docs/supervision.md, "The keeper".
 * Edge of worker/keeping.h: one thread, ppoll, no network, and no allocation
 * once it has started.
 *
 * Happy path: fork the agent, take its START packets as data and execute them,
 * wait, tell what has ended, let go when the agent has left. What can go wrong
 * is what it is there for: an agent that ends is forked again.
 */
#ifndef WORKER_KEEPER_H
#define WORKER_KEEPER_H

struct keeper_config {
    /* Run in a fork of the keeper, on one end of the pair (which it owns);
     * its value is the exit code of that process. */
    int (*agent_main)(void *arg, int socket);
    /* Run in forks that are no agent: wipes what only an agent needs. NULL:
     * there is nothing of that. */
    void (*forget)(void *arg);
    void *arg;
    const char *node_name; /* for messages on stderr */
    const char *root;      /* before /proc and /sys/fs/cgroup; NULL: "" */
};

/* Once in a process, which must have no thread but this one, and 0, 1 and 2
 * open. Returns the exit code: the agent's, or of enum keeping's KEEPING_EXIT_.
 * Signals stay blocked, since all that is left is to end. */
int keeper_run(const struct keeper_config *config);

#endif
