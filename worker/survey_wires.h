/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node's interfaces have to do with each other and with NCCL's choice
 * among them. Pure.
 *
 * Source of the rules of NCCL_SOCKET_IFNAME: NCCL, src/misc/socket.cc and its
 * documentation: a list of beginnings of names, "^" for all others, "=" for
 * whole names.
 */
#ifndef WORKER_SURVEY_WIRES_H
#define WORKER_SURVEY_WIRES_H

#include <stddef.h>
#include <stdint.h>

#include "worker/survey.h"

struct survey_address {
    const char *interface;
    uint8_t bytes[16]; /* in network order; of IPv4 the first four */
    unsigned bits;     /* of the address: 32 or 128 */
    unsigned prefix;   /* bits of its network */
};

enum { SURVEY_SHARED_BYTES = 512 };

/* "eth0 and eth1 in 10.0.0.0/24", the first such pair; "none". */
void survey_shared_subnet(char out[SURVEY_SHARED_BYTES],
                          const struct survey_address *all, size_t count);

/* What `setting` (NULL: not set) matches among the interfaces: "unset",
 * "exact", "none", or, of the first entry that matches several, all of them. */
void survey_match_interfaces(struct survey_list *out, const char *setting,
                             const char *const *interfaces, size_t count);

/* The bits of a mask that are set at its beginning. */
unsigned survey_prefix(const uint8_t *mask, unsigned bits);

#endif
