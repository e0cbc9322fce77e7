/* SPDX-License-Identifier: Apache-2.0
 *
 * Does the keeper still answer? A keeper that is stopped, or stuck in the
 * kernel, closes nothing: without a question its agent would go on telling the
 * coordinator that all is well, while no end of a rank is ever heard of. Pure.
 *
 * One question every heartbeat. One that is not answered within the lease ends
 * the keeper, and its ranks with it; one that does not even die is given up.
 */
#ifndef WORKER_KEEPERWATCH_H
#define WORKER_KEEPERWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"

enum {
    KEEPERWATCH_ASK_MS = GPUL_HEARTBEAT_MS,
    KEEPERWATCH_ANSWER_MS = GPUL_LEASE_MS,
    /* What SIGKILL has not ended by then does not end. */
    KEEPERWATCH_KILL_MS = 5000,
    /* A look this late means that we did not run either (a machine that slept,
     * a container that was paused): the keeper gets this much more. */
    KEEPERWATCH_STALL_MS = 1000,
    KEEPERWATCH_AGAIN_MS = 5000,
};

enum keeperwatch_due {
    KEEPERWATCH_NOTHING = 0,
    KEEPERWATCH_ASK = 1,     /* send the question */
    KEEPERWATCH_KILL = 2,    /* SIGKILL to the keeper */
    KEEPERWATCH_GIVE_UP = 3, /* count it as gone; once, and the last */
};

struct keeperwatch {
    uint64_t at_ms; /* when the next look is due; UINT64_MAX: never again */
    bool is_asked;
    bool is_killed;
};

void keeperwatch_init(struct keeperwatch *w, uint64_t now_ms);

/* It is at_ms, or later. */
enum keeperwatch_due keeperwatch_look(struct keeperwatch *w, uint64_t now_ms);

/* The keeper has answered. */
void keeperwatch_answered(struct keeperwatch *w, uint64_t now_ms);

#endif
