/* SPDX-License-Identifier: Apache-2.0
 *
 * The listening sockets, and whoever has come in by it and has not yet shown a
 * key. Edge of coordinator/gate.h.
 *
 * Happy path: open, accept, the peer shows its key, it is handed to the owner
 * as a guest and is none of ours any more.
 * Otherwise it is closed: it broke the handshake or went away, its time is up
 * or there are too many of its kind. That is logged, a line a second at most.
 * Running out of descriptors leaves a connection in the backlog.
 *
 * Without a secret every connection is a guest at once; then the listener must
 * be on loopback.
 */
#ifndef COORDINATOR_DOOR_H
#define COORDINATOR_DOOR_H

#include <stdbool.h>
#include <uv.h>

#include "common/error.h"
#include "proto/secret.h"
#include "proto/transport.h"

struct door;

struct door_handlers {
    /* It has shown its key, unless none is asked for. Returns whether it was
     * taken with gpul_transport_hand_over; else it is closed. */
    bool (*on_guest)(void *arg, struct gpul_transport *t);
    /* What the user should hear; once at most. */
    void (*on_hint)(void *arg, const char *text);
    /* So many strangers since the start, and what they were: gate_total. */
    void (*on_strangers)(void *arg, uint64_t count, const char *words);
};

/* Takes `listen_fds`, 1 to GPUL_COORDINATORS_MAX listening TCP sockets.
 * `secret` (NULL: none, no keys) is borrowed until door_open, which wipes it.
 * GPUL_EINVAL: without a secret and not all on loopback; GPUL_ENOMEM,
 * GPUL_ESYS. In any case *out is to be closed and, when the loop has ended,
 * destroyed, unless it is NULL. */
int door_create(struct door **out, uv_loop_t *loop, const int *listen_fds,
                uint32_t listen_count, struct gpul_secret *secret,
                const struct door_handlers *handlers, void *arg,
                struct gpul_error *err);

/* Let in the nodes of this job. Errors as above. */
int door_open(struct door *d, const char *job_id, struct gpul_error *err);

/* Nothing is told any more, and nobody is left at the door; NULL is fine, here
 * and below. */
void door_close(struct door *d);
void door_destroy(struct door *d);

#endif
