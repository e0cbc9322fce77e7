/* SPDX-License-Identifier: Apache-2.0
 *
 * How the ranks of this node ended, as the coordinator hears of it: each
 * exit is made here, from what the keeper says and what the rank left behind.
 * Edge.
 */
#ifndef WORKER_RANKEXITS_H
#define WORKER_RANKEXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/kernlog.h"
#include "worker/launch.h"
#include "worker/output.h"
#include "worker/ranklogs.h"

/* The end of a rank that ran: what the keeper says of it. */
struct rankend {
    int status;  /* as of waitpid */
    int32_t pid; /* 0: unknown */
    uint64_t ran_ms;
    uint64_t cpu_ms;
    uint64_t rss_bytes;
    bool is_out_of_memory;                  /* its cgroup counted a kill */
    char metric[GPUL_METRIC_BYTES_MAX + 1]; /* "": it told none */
    uint64_t steps; /* behind its warm-up, and how long these took */
    uint64_t steps_ms;
};

struct rankexits {
    struct output *output; /* borrowed, as the logs */
    struct ranklogs *logs;
    struct kernlog kernlog;
    bool has_missed_some; /* a rank may have been killed before we looked */
    size_t evidence_count;
    Gpul__Exit **list;  /* room for all ranks; owned */
    Gpul__Exit **spare; /* one for each that has not ended; owned */
    size_t spare_count;
    size_t count;
    size_t taken;
};

void rankexits_init(struct rankexits *x, struct output *output,
                    struct ranklogs *logs);
void rankexits_release(struct rankexits *x);

/* Forget all; as many ranks may end now, or, of those that are held, may have
 * ended already. Errors: GPUL_ENOMEM. */
int rankexits_begin(struct rankexits *x, uint32_t ranks, bool are_held,
                    struct gpul_error *err);

/* Each adds one exit; without memory it lacks its text or its evidence. */
void rankexits_add_refused(struct rankexits *x, uint32_t rank, int exec_errno,
                           const char *text);
void rankexits_add_port_taken(struct rankexits *x, uint32_t rank,
                              uint16_t port);
/* With the evidence, if it is one of the first that failed. */
void rankexits_add_ended(struct rankexits *x, const struct launch *launch,
                         uint32_t local_rank, const struct rankend *end);

/* There are exits that have not been taken. */
bool rankexits_wait(const struct rankexits *x);

/* Those since the last call; owned by `x`, valid until the next one. */
size_t rankexits_take(struct rankexits *x, Gpul__Exit ***exits);

#endif
