/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream that enters gpulaunch, read without ever holding up the loop, and
 * no further than is wanted. Edge.
 *
 * Happy path: created, wanted, bytes come, wanted again, the end. A pipe, a
 * socket or a terminal is read when poll says so, through an open file
 * description of our own, since the non-blocking flag of the other is shared
 * with the shell. What cannot be polled (a file, /dev/zero) is read by
 * libuv's threads; it does not block for long.
 *
 * A terminal is not read while we are in its background, where a read would
 * stop the whole process (SIGTTIN): the inlet looks again from time to time.
 *
 * What cannot be read at all (closed, open for writing only, as after nohup)
 * is empty.
 */
#ifndef LAUNCHER_INLET_H
#define LAUNCHER_INLET_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"

struct inlet;

/* Called from the loop, and from inlet_want. */
struct inlet_handlers {
    /* Never more than what was wanted; borrowed for the call. */
    void (*on_data)(void *arg, const uint8_t *bytes, size_t n);
    /* Once, last. `why`: the errno that ended it, 0 at its end. */
    void (*on_end)(void *arg, int why);
};

/* Nothing is read before something is wanted. `fd` stays the caller's. Errors:
 * GPUL_ENOMEM. */
int inlet_create(struct inlet **out, uv_loop_t *loop, int fd,
                 const struct inlet_handlers *handlers, void *arg,
                 struct gpul_error *err);

/* So many more bytes may come. */
void inlet_want(struct inlet *in, uint64_t bytes);

/* This process was stopped, and goes on: it may be in the foreground now. */
void inlet_look_again(struct inlet *in);

/* No handler is called any more; the loop must run until it is empty, then
 * destroy. NULL is fine for both. */
void inlet_close(struct inlet *in);
void inlet_destroy(struct inlet *in);

#endif
