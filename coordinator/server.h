/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's hands: the operator's socket pair, the door by which nodes
 * come in and every node's connection on one libuv loop, one rendezvous that
 * is told what happens and says what to do. Edge.
 */
#ifndef COORDINATOR_SERVER_H
#define COORDINATOR_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/limits.h"
#include "proto/secret.h"

struct server_config {
    int operator_fd; /* socket pair to the front end */
    /* Listening TCP sockets, one for each address. */
    int listen_fds[GPUL_COORDINATORS_MAX];
    uint32_t listen_count; /* 1 or more */
    /* The job's, wiped once it is in use; NULL: nobody has to show a key, for a
     * listener on loopback only. */
    struct gpul_secret *secret;
    uint32_t epoch;
    bool is_verbose; /* details on stderr, not only faults */
};

/* Serve one job to its end; takes all descriptors. Returns 0 with the job's
 * exit code, when everything was sent; or what made it impossible. */
int server_run(int *exit_code, const struct server_config *config,
               struct gpul_error *err);

#endif
