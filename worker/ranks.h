/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of this node as processes: started, waited for, stopped. Edge,
 * but without a loop of its own: worker/client.c calls in when a child has
 * ended.
 *
 * Happy path: for each rank, its environment, its port once more, its pipes,
 * one spawn. What can go wrong becomes the rank's exit: a command that
 * cannot be executed (the rest is then not tried), a port that was taken
 * meanwhile, an environment that cannot be built.
 */
#ifndef WORKER_RANKS_H
#define WORKER_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/launch.h"
#include "worker/output.h"
#include "worker/ranklogs.h"

struct ranks;

int ranks_create(struct ranks **out, struct output *output,
                 struct ranklogs *logs, struct gpul_error *err);
void ranks_destroy(struct ranks *r);

/* Start all ranks of the launch, which must outlive them. `output` and the
 * logs have been begun for it. Errors: GPUL_ENOMEM; all else is an exit. */
int ranks_start(struct ranks *r, const struct launch *launch, uint64_t now_ms,
                struct gpul_error *err);

/* The launch could not even be made: every rank ends with this. */
int ranks_fail(struct ranks *r, const Gpul__Assign *assign, int exec_errno,
               const char *text, struct gpul_error *err);

/* A child has ended with this wait status; one that is no rank is fine. */
void ranks_reap(struct ranks *r, pid_t pid, int status, uint64_t now_ms);

/* Some rank has not ended. */
bool ranks_are_alive(const struct ranks *r);

bool ranks_have_exits(const struct ranks *r);

/* Exits since the last call; owned by `r`, valid until the next call that
 * takes `r`. */
size_t ranks_take_exits(struct ranks *r, Gpul__Exit ***exits);

#endif
