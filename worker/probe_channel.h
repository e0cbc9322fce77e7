/* SPDX-License-Identifier: Apache-2.0
 *
 * A probe's end of the socket pair to its agent: frames in and out, each
 * with a deadline, for whatever kind of probe it is. Edge.
 *
 * Happy path: the first frame says what this probe is for; its epoch and
 * generation are those of every frame that goes back.
 *
 * Failure modes: the agent has gone (GPUL_ECLOSED), or it does not speak the
 * protocol. Both end the probe: there is nobody to tell.
 */
#ifndef WORKER_PROBE_CHANNEL_H
#define WORKER_PROBE_CHANNEL_H

#include <stdint.h>

#include "common/error.h"
#include "proto/frame.h"
#include "proto/message.h"

/* The agent sends the first frame as soon as it has started us, and takes
 * our few frames as they come. */
enum { PROBE_CHANNEL_DEADLINE_MS = 30000 };

struct probe_channel {
    int fd; /* borrowed */
    struct gpul_deframer in;
    uint32_t epoch; /* to be set from the first frame */
    uint32_t generation;
};

void probe_channel_init(struct probe_channel *c, int fd);
void probe_channel_release(struct probe_channel *c);

/* The next message, if it is there: returns 1 and a message that the caller
 * releases, 0 without one, or a failure. `allowed` holds the
 * GPUL_MESSAGE_BITs of what may come now. */
int probe_channel_take(struct probe_channel *c, Gpul__Frame **out,
                       uint64_t allowed, struct gpul_error *err);

/* Wait for the next message; returns 0 with it, GPUL_ETIMEOUT at the
 * deadline (a reading of gpul_clock_ms), or another failure. */
int probe_channel_read(struct probe_channel *c, Gpul__Frame **out,
                       uint64_t allowed, uint64_t deadline_ms,
                       struct gpul_error *err);

/* Send a frame, with our epoch and generation put in. */
int probe_channel_write(struct probe_channel *c, Gpul__Frame *frame,
                        struct gpul_error *err);

#endif
