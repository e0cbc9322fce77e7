/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's edge: the loop that feeds worker/agent.h with what happens and
 * does what it says.
 *
 * Happy path: dial, carry frames both ways, lease ports, run the probe, run
 * the ranks, carry their output, leave when told. All that can go wrong is
 * the agent's to judge: here it only becomes an event.
 */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include <stdint.h>

#include "common/hostport.h"

enum { CLIENT_TEXT_BYTES = 640 };

struct client_config {
    struct gpul_hostport coordinator; /* a literal address */
    const char *job_id;
    const char *node_name;
    uint32_t join_timeout_ms;
};

/* Be the agent of this node until the job is over. Returns the exit code of
 * the program; `text` (CLIENT_TEXT_BYTES) then says why, "" if there is
 * nothing to say. Call once, from the main thread. */
int client_run(const struct client_config *config, char *text);

#endif
