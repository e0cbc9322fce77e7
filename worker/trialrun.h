/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's part of a trial between two nodes: each dials the other once, the
 * one behind the other. Edge; worker/trial.h has what they say.
 *
 * Happy path of the one that dials first: dial, send, close; then wait for the
 * peer's dial, measure, close.
 *
 * Failure modes, each told of its own way: nobody listens there; no way there;
 * no answer to any dial within TRIALRUN_CONNECT_MS, one each
 * TRIALRUN_REDIAL_MS, since the kernel's own repeat would come after a second
 * only, and one packet in ten may get lost; the peer has not dialled; it ended
 * in the middle; the time is over. What fails one way is no reason not to try
 * the other. Strangers at the port are turned away; who has waited longest
 * makes room for the ninth.
 */
#ifndef WORKER_TRIALRUN_H
#define WORKER_TRIALRUN_H

#include "common/error.h"
#include "worker/trial.h"

enum {
    TRIALRUN_CONNECT_MS = 3000,
    TRIALRUN_REDIAL_MS = 400,
    TRIALRUN_CALLERS_MAX = 8,
};

struct trialrun_order {
    int watch_fd;             /* readable or closed: it is off */
    int listen_fd;            /* on `address` */
    const char *address;      /* literal, ours */
    const char *peer_address; /* likewise */
    uint16_t peer_port;
    bool dials_first;
    struct trial_plan plan; /* is_dialler is set here */
    uint32_t deadline_ms;   /* of both ways, from now */
};

/* What came of one way. `message` points into it. */
struct trialrun_way {
    struct trial trial;
    Gpul__TrialWay message;
};

struct trialrun_result {
    struct trialrun_way sending;
    struct trialrun_way receiving;
};

/* Errors: GPUL_ECLOSED, the agent has something to say or is gone; GPUL_ESYS,
 * GPUL_ENOMEM. All else is a result. */
int trialrun(struct trialrun_result *out, const struct trialrun_order *order,
             struct gpul_error *err);

#endif
