/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of this node: what each is started with, and what becomes of it.
 * They are the keeper's children; it is asked to start them, and its mail says
 * that they have started and ended. Edge, but without a loop of its own.
 *
 * Happy path: for each rank, its environment, its port once more, its pipes,
 * one START; nobody waits for the answer. What can go wrong becomes the rank's
 * exit: a command that cannot be executed (the rest is then not tried), a port
 * that was taken meanwhile, an environment that cannot be built.
 *
 * An agent that follows another finds ranks that the keeper holds. Their pipes
 * wait unread until ranks_start of their generation makes them ours.
 */
#ifndef WORKER_RANKS_H
#define WORKER_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/hangwatch.h"
#include "worker/input.h"
#include "worker/keeperlink.h"
#include "worker/launch.h"
#include "worker/output.h"
#include "worker/ranklogs.h"

struct ranks;

/* What passes between them and us. */
struct ranks_streams {
    struct input *input;
    struct output *output;
    struct ranklogs *logs;
    struct hangwatch *watch;
};

/* What the keeper must know of them all. */
struct ranks_begin {
    const Gpul__Job *job;
    uint32_t generation;
    uint32_t attempt;
    uint32_t grace_ms;
    uint32_t orphan_ms;
};

/* All but `out` and `err` are borrowed for its life. */
int ranks_create(struct ranks **out, struct keeperlink *keeper,
                 const struct ranks_streams *streams, struct gpul_error *err);
void ranks_destroy(struct ranks *r);

/* STATE of a keeper that holds ranks; their RANK and EXIT follow. Errors:
 * GPUL_ENOMEM. */
int ranks_hold(struct ranks *r, const struct keeper_packet *state,
               struct gpul_error *err);

/* Does the keeper hold this generation, and it is not yet ours? */
bool ranks_are_held(const struct ranks *r, uint32_t generation);

/* Start all ranks of the launch, which must outlive them, but those that are
 * held: these become ours. The output has been begun for it.
 * Errors: GPUL_ENOMEM; GPUL_ELIMIT: the pipes of one that is held could not be
 * received; all else is an exit. */
int ranks_start(struct ranks *r, const struct launch *launch,
                const struct ranks_begin *begin, struct gpul_error *err);

/* The launch could not even be made, since no rank can have an environment:
 * each ends with this reason. */
int ranks_fail(struct ranks *r, const Gpul__Assign *assign,
               const struct gpul_error *why, struct gpul_error *err);

/* RANK, STARTED or EXIT; its descriptors are taken over. */
void ranks_take_mail(struct ranks *r, struct keeper_mail *mail);

/* Of some rank that was started the end is not known. */
bool ranks_are_alive(const struct ranks *r);

/* The keeper knows of these ranks, so it will say when all is gone. */
bool ranks_have_begun(const struct ranks *r);

/* A sentence for the user on the ranks that are held, now that agent number
 * `agent` has them. */
void ranks_tell_restart(const struct ranks *r, uint32_t agent,
                        char text[GPUL_TEXT_BYTES_MAX]);

/* See worker/rankexits.h. */
bool ranks_have_exits(const struct ranks *r);
size_t ranks_take_exits(struct ranks *r, Gpul__Exit ***exits);

#endif
