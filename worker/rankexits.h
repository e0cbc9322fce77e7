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
#include "worker/launch.h"
#include "worker/output.h"
#include "worker/ranklogs.h"

struct rankexits {
    struct output *output; /* borrowed, as the logs */
    struct ranklogs *logs;
    Gpul__Exit **list; /* room for all ranks; owned */
    size_t room;
    size_t count;
    size_t taken;
};

void rankexits_init(struct rankexits *x, struct output *output,
                    struct ranklogs *logs);
void rankexits_release(struct rankexits *x);

/* Forget all; as many ranks may end now. Errors: GPUL_ENOMEM. */
int rankexits_begin(struct rankexits *x, uint32_t ranks,
                    struct gpul_error *err);

/* Each adds one exit. Without memory there is none: the rank still counts as
 * ended, and the coordinator hears of it by Idle at the latest. */
void rankexits_add_refused(struct rankexits *x, uint32_t rank, int exec_errno,
                           const char *text);
void rankexits_add_port_taken(struct rankexits *x, uint32_t rank,
                              uint16_t port);
/* `status` is that of waitpid. */
void rankexits_add_ended(struct rankexits *x, const struct launch *launch,
                         uint32_t local_rank, int status, uint64_t ran_ms);

/* There are exits that have not been taken. */
bool rankexits_wait(const struct rankexits *x);

/* Those since the last call; owned by `x`, valid until the next one. */
size_t rankexits_take(struct rankexits *x, Gpul__Exit ***exits);

#endif
