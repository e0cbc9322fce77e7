/* SPDX-License-Identifier: Apache-2.0
 *
 * The ports of a node: taken for the life of the agent, against every other
 * gpulaunch job on the host, and found free of anybody else. Edge.
 *
 * The lease of a block of 16 ports is a Unix socket bound to the abstract
 * name "gpulaunch-ports-<block>" (docs/adr/0006).
 */
#ifndef WORKER_PORTS_H
#define WORKER_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct ports_request {
    const char *job_id; /* with the name: where the search begins */
    const char *node_name;
    uint32_t port_count;         /* consecutive ports, > 0 */
    const uint32_t *avoid_ports; /* found taken before */
    size_t avoid_count;
};

struct ports_lease {
    uint16_t first_port; /* 0: nothing is leased */
    bool is_ephemeral;   /* no room outside the ephemeral range: worth a
                            notice, a connection may take one of them */
    int *fds;            /* the leases; owned */
    size_t fd_count;
};

/* Take the first free run of ports. Nothing is bound afterwards but the
 * leases. Errors: GPUL_ENOTFOUND (nothing free, with the number wanted),
 * GPUL_ESYS (no sockets to be had), GPUL_ENOMEM; *out is then empty. */
int ports_lease(struct ports_lease *out, const struct ports_request *request,
                struct gpul_error *err);

/* Lease these ports again, which an agent before us had and our ranks use.
 * False: somebody else has been faster. */
bool ports_renew(struct ports_lease *out, uint16_t first_port,
                 uint32_t port_count);

/* Give the ports back. An empty lease is fine. */
void ports_release(struct ports_lease *lease);

/* Could a server listen on this port now, on every address, IPv4 and IPv6?
 * For a last look before a rank starts. Connections that have ended and only
 * wait for their time to run out do not count, as for any server that sets
 * SO_REUSEADDR. */
bool ports_check_free(uint16_t port);

#endif
