/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the probe: this program again, as a child with a
 * socket pair for frames. It has ended when the process is waited for and
 * the channel is empty. Edge.
 */
#ifndef WORKER_PROBER_H
#define WORKER_PROBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"

struct gpul_transport;

struct prober_handlers {
    /* ProbeListening or ProbeResult; borrowed for the call. */
    void (*on_message)(void *arg, const Gpul__Frame *frame);
    /* Once a start; `how` says how it ended, or "pid name" of one that was
     * abandoned. */
    void (*on_ended)(void *arg, const char *how, bool is_abandoned);
};

struct prober {
    uv_loop_t *loop;
    struct prober_handlers handlers;
    void *arg;
    struct gpul_transport *channel; /* NULL: closed */
    pid_t pid;                      /* 0: not running */
    bool is_abandoned;
    char how[128];
};

void prober_init(struct prober *p, uv_loop_t *loop,
                 const struct prober_handlers *handlers, void *arg);

/* Start the probe and send it these frames. Errors: GPUL_ESYS; nothing is
 * left of it then and on_ended is not called. */
int prober_start(struct prober *p, const uint8_t *bytes, size_t n,
                 struct gpul_error *err);

/* More frames for a running probe; one that is gone is no error. */
void prober_send(struct prober *p, const uint8_t *bytes, size_t n);

void prober_kill(struct prober *p);

/* It would not die: count it as ended. */
void prober_abandon(struct prober *p);

/* A child has ended: true if it was the probe. */
bool prober_reap(struct prober *p, pid_t pid, int status);

#endif
