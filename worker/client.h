/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's edge: the loop that feeds worker/agent.h with what happens and
 * does what it says.
 *
 * Happy path: hear what the keeper holds, dial, carry frames both ways, lease
 * ports, run the probe, have the keeper run the ranks, carry their output,
 * leave when told. All that can go wrong is the agent's to judge: here it only
 * becomes an event.
 */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hostport.h"
#include "proto/limits.h"
#include "proto/secret.h"

enum { CLIENT_TEXT_BYTES = 640 };

struct client_config {
    /* Literal addresses of the coordinator, tried in turn. */
    struct gpul_hostport coordinators[GPUL_COORDINATORS_MAX];
    uint32_t coordinator_count; /* 1 or more */
    /* Standard input is that of proto/orders.h: what comes there is obeyed,
     * and its end, before this node has joined, ends the worker. */
    bool hears_orders;
    const char *job_id;
    const char *node_name;
    const struct gpul_key *key; /* of the node; NULL: none is asked for */
    uint32_t join_timeout_ms;
    bool tells_delay; /* of joining, on standard error */
};

/* Be the agent of this node until the job is over; `keeper`, which is taken
 * over, is our end of the pair with the keeper, whose fork this process is.
 * Writes what is to be said of the end to stderr, tells the keeper the exit
 * code of the program and returns it. Call once, from the main thread. */
int client_run(const struct client_config *config, int keeper);

#endif
