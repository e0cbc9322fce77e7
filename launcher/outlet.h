/* SPDX-License-Identifier: Apache-2.0
 *
 * One of the two streams that leave gpulaunch, written without ever holding
 * up the loop. Edge.
 *
 * Happy path: bytes are written at once; what the other end does not take is
 * queued and written when poll says so. Pipes and terminals are opened a
 * second time, so that non-blocking mode stays ours: the flag belongs to the
 * open file description, which we share with the shell. Regular files and
 * /dev/null take everything at once and are written directly.
 * Failure: the first error ends the stream; what comes later is dropped and
 * counts as written, so that whoever waits for it goes on.
 */
#ifndef LAUNCHER_OUTLET_H
#define LAUNCHER_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"

struct outlet {
    int fd;
    bool owns_fd;
    bool is_socket;
    bool is_polled; /* else every write goes through at once */
    bool is_terminal;
    bool is_polling;
    bool is_open;       /* the poll handle */
    size_t piece_bytes; /* most bytes one write may take without blocking */
    struct gpul_buf queue;
    size_t start;     /* bytes at the front of the queue already written */
    uint64_t taken;   /* bytes given to this outlet, ever */
    uint64_t written; /* of these, gone */
    int error;        /* errno of the end, 0 while it lives */
    uv_poll_t poll;
    void (*on_written)(void *arg);
    void *arg;
};

/* Do these lead to the same terminal, pipe or socket? Two regular files are
 * never one: each has a place of its own to write at. */
bool outlet_is_one_place(int a, int b);

/* `on_written` is called from the loop whenever queued bytes went out, and
 * when the stream has ended. `queue_bytes_max` bounds the memory. */
int outlet_open(struct outlet *o, uv_loop_t *loop, int fd,
                size_t queue_bytes_max, void (*on_written)(void *arg),
                void *arg);

/* Write or queue. Over the queue's maximum the stream ends with ENOBUFS. */
void outlet_write(struct outlet *o, const void *bytes, size_t n);

bool outlet_is_drained(const struct outlet *o);

/* The stream ends with ETIMEDOUT, like with any error. */
void outlet_give_up(struct outlet *o);

/* Stop polling and drop what is queued; the loop must run once more. */
void outlet_close(struct outlet *o);

/* Free the memory, after the loop has ended. */
void outlet_release(struct outlet *o);

#endif
