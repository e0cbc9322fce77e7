/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ranks of this node write: from their pipes into their log files,
 * then to the coordinator within the credit. Edge.
 *
 * Happy path: bytes come, go to the log file, go out as Output frames of at
 * most GPUL_OUTPUT_BYTES_MAX, and the credit shrinks by as much. What can go
 * wrong: no credit left - no pipe is read until some comes back, and the
 * ranks wait; a log file that cannot be made or written - one notice, the
 * console goes on; a descendant of a rank that keeps its pipe open - at the
 * end the pipe is emptied and closed, nobody waits for it.
 */
#ifndef WORKER_OUTPUT_H
#define WORKER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/lastwords.h"
#include "worker/ranklogs.h"

struct output;

struct output_handlers {
    /* An Output frame, unstamped; borrowed for the call. */
    void (*on_frame)(void *arg, Gpul__Frame *frame);
    /* This rank has written something. */
    void (*on_written)(void *arg, uint32_t local_rank);
    /* One line for the user. */
    void (*on_notice)(void *arg, const char *text);
    /* After output_finish: every byte is out, all pipes are closed. It may
     * be called from within finish, credit or discard. */
    void (*on_drained)(void *arg);
};

struct output_job {
    uint32_t node_rank;
    uint32_t node_count; /* sets the window */
    uint32_t first_rank;
    uint32_t rank_count;
    bool forwards; /* Job.forwards_output */
};

int output_create(struct output **out, uv_loop_t *loop, struct ranklogs *logs,
                  const struct output_handlers *handlers, void *arg,
                  struct gpul_error *err);

/* Closes what is open; the memory goes when libuv lets go of it, so the loop
 * must run once more. NULL is fine. */
void output_destroy(struct output *o);

/* New ranks. The last ones must be drained. Credit that is still out for
 * their bytes stays counted. Errors: GPUL_ENOMEM. */
int output_begin(struct output *o, const struct output_job *job,
                 struct gpul_error *err);

/* Read this pipe, whose other end the rank holds; takes ownership of `fd`
 * in any case. It must not block. Errors: GPUL_ENOMEM, GPUL_ESYS. */
int output_add(struct output *o, uint32_t local_rank,
               enum ranklog_stream stream, int fd, struct gpul_error *err);

/* A rank has ended: take what it has left in its pipes as far as the credit
 * goes, and give what was kept of it all, until the next output_begin. */
struct lastwords *output_words(struct output *o, uint32_t local_rank);

/* Make sure that the stderr log of a failed rank exists: its path is shown
 * to the user. */
void output_touch_log(struct output *o, uint32_t local_rank);

/* The front end has written so many bytes. */
void output_credit(struct output *o, uint64_t bytes);

/* How long, of all the time since output_create, no pipe was read for want of
 * credit: ranks may have waited for us to. `is_paused`: so it is now. */
uint64_t output_paused_ms(const struct output *o, bool *is_paused);

/* Nobody reads the console any more: log files only, for these ranks. */
void output_discard(struct output *o);

/* All writers are gone: empty the pipes, close them, say on_drained. */
void output_finish(struct output *o);

#endif
