/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of this machine, what kind of interface each is on, and which
 * of them others may be able to reach, as the kernel tells. A node tells its
 * candidates by it, and the front end where the coordinator listens. Edge.
 *
 * Sources: Linux, Documentation/ABI/testing/sysfs-class-net and -bonding,
 * include/uapi/linux/if_arp.h for the types. docs/links.md has the rules.
 */
#ifndef GPUL_PROTO_INTERFACES_H
#define GPUL_PROTO_INTERFACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

struct ifaddrs;

enum {
    /* That are looked at: so many candidates, and as many others. */
    GPUL_INTERFACES_FOUND_MAX = 128,
};

/* One address. */
struct gpul_interface {
    char name[GPUL_INTERFACE_BYTES_MAX + 1];
    char address[GPUL_ADDRESS_BYTES_MAX + 1];
    const char *kind; /* "ethernet", "bridge", ...; static */
    uint32_t mbits;   /* 1e6 bits a second, one way; 0: unknown */
    bool is_rdma;
    bool is_tunnel;
    bool is_link_local;
    bool is_joined; /* by it the node has joined; for the caller to say */
    uint16_t port;  /* where the node listens, 0: nowhere; the same */
    /* Why it is no candidate, "": it is one. */
    char rejection[GPUL_REJECTION_BYTES_MAX + 1];
};

/* Fill `out` with the addresses of `all`, or, where that is NULL, of this
 * machine; `root` stands before every path of /sys ("" in the programs).
 * Beyond the room for each, candidates and others are left out; link-local
 * addresses too, where there are any of use. Returns their number. */
size_t
gpul_interfaces_read(struct gpul_interface out[GPUL_INTERFACES_FOUND_MAX],
                     const char *root, const struct ifaddrs *all);

#endif
