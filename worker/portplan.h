/* SPDX-License-Identifier: Apache-2.0
 *
 * Where to look for ports: the order in which runs of consecutive ports are
 * tried. Pure; worker/ports.h takes the first that is free.
 *
 * Ports come in blocks of 16, the unit of a lease, so that a node costs few
 * leases and its ranks few bytes in the roster. Blocks outside the kernel's
 * ephemeral range come first, since any outgoing connection may take a port
 * inside it; of these, blocks from 20000 up, where few services live.
 */
#ifndef WORKER_PORTPLAN_H
#define WORKER_PORTPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PORTPLAN_BLOCK_PORTS = 16,
    PORTPLAN_BLOCKS = 65536 / PORTPLAN_BLOCK_PORTS,
};

struct portplan_input {
    uint32_t ephemeral_first; /* the kernel's range, both ends included */
    uint32_t ephemeral_last;
    uint32_t port_count;         /* length of the run, > 0 */
    uint64_t seed;               /* portplan_seed() */
    const uint32_t *avoid_ports; /* found taken before */
    size_t avoid_count;
};

/* Candidates, best first: each is the first port of a run. `count` is 0 when
 * no run is that long. */
struct portplan {
    uint16_t first_ports[PORTPLAN_BLOCKS];
    size_t count;
    size_t ephemeral_from; /* candidates from here on touch that range */
};

void portplan_make(struct portplan *out, const struct portplan_input *in);

/* Spreads the nodes of a job, and jobs, over the blocks: a hash of both. */
uint64_t portplan_seed(const char *job_id, const char *node_name);

#endif
