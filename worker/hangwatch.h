/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches the ranks of this node for a step: reads their beat pipes, tells
 * worker/beats.h what happens and when, and says Stall of those that make none
 * any more, with what they and their GPUs look like. Edge.
 *
 * The beat pipe: GPULAUNCH_BEAT_FD of a rank is its writing end, which does
 * not block: a rank whose pipe is full (64 KiB that no agent has read) gets
 * EAGAIN, and has lost a beat. What can go wrong otherwise: without memory a
 * rank is not watched.
 *
 * While the output has no credit (a paused terminal, a slow reader) ranks wait
 * for us, and others for them: that time counts for none of them.
 */
#ifndef WORKER_HANGWATCH_H
#define WORKER_HANGWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/launch.h"
#include "worker/output.h"

struct hangwatch;

/* A Stall frame, unstamped, borrowed for the call. */
typedef void (*hangwatch_frame_fn)(void *arg, Gpul__Frame *frame);

/* Both are borrowed until hangwatch_destroy. */
struct hangwatch_config {
    const struct output *output; /* of the ranks */
    const char *node_name;
};

/* Errors: GPUL_ENOMEM, GPUL_ESYS. */
int hangwatch_create(struct hangwatch **out, uv_loop_t *loop,
                     const struct hangwatch_config *config,
                     hangwatch_frame_fn on_frame, void *arg,
                     struct gpul_error *err);

/* The memory goes when libuv lets go of it, so the loop must run once more.
 * NULL is fine. */
void hangwatch_destroy(struct hangwatch *w);

/* New ranks, as the job asks for (NULL: learned limits); `launch` is theirs,
 * borrowed until hangwatch_end. Without memory they are not watched. */
void hangwatch_begin(struct hangwatch *w, const Gpul__Hang *hang,
                     const struct launch *launch);

/* They are gone, or nobody wants to hear of them any more. */
void hangwatch_end(struct hangwatch *w);

/* A rank is to have a pipe to beat through: `ends` are the reading one, which
 * does not block, and the writing one; both close-on-exec. Returns 0 or an
 * errno. */
int hangwatch_pipe(int ends[2]);

/* Read this end; takes ownership in any case. `is_taken_over`: an agent before
 * us has read from it, so its steps have been counted elsewhere. */
void hangwatch_add(struct hangwatch *w, uint32_t local_rank, int fd,
                   bool is_taken_over);

void hangwatch_started(struct hangwatch *w, uint32_t local_rank, pid_t pid);
void hangwatch_output(struct hangwatch *w, uint32_t local_rank);
void hangwatch_ended(struct hangwatch *w, uint32_t local_rank);

/* See beats_pace; what is still in its pipe counts. To be asked before
 * hangwatch_ended. */
void hangwatch_pace(struct hangwatch *w, uint32_t local_rank, uint64_t *steps,
                    uint64_t *ms);

#endif
