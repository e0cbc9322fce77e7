/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the keeper share: keeper.c has the loop and the agent,
 * keeper_ranks.c the ranks.
 */
#ifndef WORKER_KEEPER_INTERNAL_H
#define WORKER_KEEPER_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "worker/cgroup.h"
#include "worker/cleanup.h"
#include "worker/descendants.h"
#include "worker/keeper.h"
#include "worker/keeperwire.h"
#include "worker/keeping.h"
#include "worker/undertaker.h"

/* Whom descendants_* does not count. */
enum { SPARED_AGENT = 0, SPARED_UNDERTAKER = 1 };

enum { KEEPER_AGENT_END_BYTES = 64 };

struct keeper {
    struct keeping core;
    const struct keeper_config *config;
    sigset_t before; /* of the program; the agent gets it back */
    int signals;     /* signalfd */
    int socket;      /* to the agent; -1: none */
    struct descendants descendants;
    struct undertaker undertaker;
    struct cleanup marker;
    struct cgroup cgroup;
    struct cgroup_oom oom;
    int kept[GPUL_RANKS_PER_NODE_MAX][KEEPER_KEPT_FDS_MAX];
    /* The packet that is being worked on, and why its descriptors are not
     * there (0: they are). */
    struct keeper_mail mail;
    int mail_errno;
    char agent_end[KEEPER_AGENT_END_BYTES]; /* how the last one ended, and */
    uint32_t lost_agents;                   /* so many in a row that way */
    bool has_left;
    int exit_code;
    const char *why;
};

/* Take a step and carry out what it says. */
void keeper_step(struct keeper *k, struct keeping_event *event);

/* "gpulaunch-worker: NODE: ..." on stderr, in one piece. */
void keeper_complain(const struct keeper *k, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- keeper_ranks.c ---- */

void keeper_begin_ranks(struct keeper *k);
/* From k->mail, of which it takes the descriptors that are kept. */
void keeper_start_rank(struct keeper *k, uint32_t slot);
void keeper_rank_ended(struct keeper *k, uint32_t slot, int status,
                       const struct rusage *usage);
void keeper_stop_ranks(struct keeper *k, int signal);
void keeper_pass_signal(struct keeper *k, uint32_t slot, int signal);
void keeper_finish_ranks(struct keeper *k);
void keeper_drop_cgroup(struct keeper *k);
void keeper_fork_undertaker(struct keeper *k);
void keeper_close_input(struct keeper *k, uint32_t slot);
void keeper_close_kept(struct keeper *k);

#endif
