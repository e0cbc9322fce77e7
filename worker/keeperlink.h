/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's end of the pair with its keeper: packets out, packets in. Edge.
 *
 * A keeper that does not read (it never waits for us, so that is a matter of
 * a moment) is waited for up to a second. One that is gone is told once, by
 * on_lost.
 */
#ifndef WORKER_KEEPERLINK_H
#define WORKER_KEEPERLINK_H

#include <uv.h>

#include "common/buf.h"
#include "common/error.h"
#include "worker/keeperwire.h"

struct keeperlink;

struct keeperlink_handlers {
    /* Takes over the mail's descriptors. */
    void (*on_mail)(void *arg, struct keeper_mail *mail);
    /* All mail that waited has been told: time to act on it. */
    void (*on_turn)(void *arg);
    void (*on_lost)(void *arg);
};

/* The next packet of a socket that no link has yet: STATE and what follows it
 * are waited for, as nothing can be done without them. A packet that is not
 * of this kind (0: any) is nonsense. Errors: GPUL_ETIMEOUT (after 5 s),
 * GPUL_ECLOSED, GPUL_EPROTO; no descriptor is open then. */
int keeperlink_await(int socket, struct keeper_mail *mail, uint32_t type,
                     struct gpul_error *err);

/* `socket` is taken over in any case. Errors: GPUL_ENOMEM, GPUL_ESYS. */
int keeperlink_open(struct keeperlink **out, uv_loop_t *loop, int socket,
                    const struct keeperlink_handlers *handlers, void *arg,
                    struct gpul_error *err);

/* Tell of nothing any more, and keep no loop alive; sending still works. */
void keeperlink_mute(struct keeperlink *l);

/* The loop must run once more. NULL is fine. */
void keeperlink_close(struct keeperlink *l);

/* The descriptors stay the caller's. Errors: GPUL_ECLOSED (no keeper is
 * there), GPUL_ESYS with the reason in errno too. */
int keeperlink_send(struct keeperlink *l, const struct keeper_packet *packet,
                    const int *fds, size_t fd_count, struct gpul_error *err);

/* Start, as startspec_encode wrote it, `slot`; see KEEPER_START. `has_input`:
 * the last one kept is where its input is written. Errors: those of send. */
int keeperlink_start(struct keeperlink *l, uint32_t slot,
                     const struct gpul_buf *spec, const int *child_fds,
                     size_t child_count, const int *kept_fds, size_t kept_count,
                     bool has_input, struct gpul_error *err);

#endif
