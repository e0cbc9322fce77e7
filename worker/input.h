/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks' standard input: what the coordinator sends goes into their pipes
 * as they take it, and credit goes back. docs/supervision.md, "Standard
 * input". Edge; what waits is in worker/inputqueue.h.
 *
 * A rank that closes its standard input, or ends, swallows the rest. At the
 * end of the input the pipe is closed: here, and by the keeper, which has a
 * duplicate for the next agent, and is told by `on_close`.
 */
#ifndef WORKER_INPUT_H
#define WORKER_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"

struct input;

/* Takes an InputCredit, unstamped, borrowed for the call. */
typedef void (*input_frame_fn)(void *arg, Gpul__Frame *frame);

/* Nothing more is written to the pipe of this rank, by any agent. */
typedef void (*input_close_fn)(void *arg, uint32_t local_rank);

/* Errors: GPUL_ENOMEM. */
int input_create(struct input **out, uv_loop_t *loop, input_frame_fn on_frame,
                 void *arg, struct gpul_error *err);

/* Whom to tell of it; before any pipe is added. */
void input_tell_closed(struct input *in, input_close_fn on_close, void *arg);

/* Closes the pipes; the loop must run once more. NULL is fine. */
void input_destroy(struct input *in);

/* Does this rank read what the front end reads? */
bool input_is_for(const Gpul__Job *job, uint32_t rank);

/* Of the coordinator, for the ranks of this generation; it may come before
 * they are started. Errors: GPUL_ELIMIT (it ignores its credit), GPUL_ENOMEM.
 */
int input_put(struct input *in, uint32_t generation, const Gpul__Input *input,
              struct gpul_error *err);

/* The ranks of this generation are being started, these of them here. Nothing
 * is said of input when none of them is to read. Errors: GPUL_ENOMEM. */
int input_begin(struct input *in, uint32_t generation, const Gpul__Job *job,
                uint32_t first_rank, uint32_t rank_count,
                struct gpul_error *err);

/* Write to this pipe, whose other end the rank holds; takes ownership of `fd`
 * in any case. It must not block. Where that cannot be, the rank finds its
 * input at its end. */
void input_add(struct input *in, uint32_t local_rank, int fd);

/* All that read have been added. */
void input_started(struct input *in);

/* This rank has ended. */
void input_ended(struct input *in, uint32_t local_rank);

/* All have; what they left behind gets nothing. */
void input_finish(struct input *in);

#endif
