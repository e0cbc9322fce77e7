/* SPDX-License-Identifier: Apache-2.0
 *
 * The network cards that NCCL will use between nodes, and their rates, as
 * the kernel tells them: the ports of RDMA devices that a program may open,
 * else the cards behind the interface that TCP goes over. Nothing is made up:
 * a virtual card that names no rate, or one of its driver's invention, has
 * none. Edge.
 *
 * Sources: Linux, Documentation/ABI/stable/sysfs-class-infiniband and
 * testing/sysfs-class-net; NCCL, src/transport/net_ib and
 * src/misc/socket.cc for what NCCL_IB_HCA and NCCL_SOCKET_IFNAME match.
 */
#ifndef WORKER_NICS_H
#define WORKER_NICS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bandwidth.h"
#include "proto/limits.h"

struct nic {
    char name[GPUL_NIC_NAME_BYTES_MAX + 1]; /* "mlx5_0:2", "eth0" */
    enum gpul_link kind;                    /* GPUL_RDMA or GPUL_TCP */
    double gbits; /* 1e9 bits a second, one way; 0: unknown */
    bool is_down; /* no link: it does not count */
};

struct nics_request {
    const char *root; /* before every path of /sys and /dev; "" */
    /* Interfaces that have an address, each once or more often. */
    const char *const *interfaces;
    size_t interface_count;
    const char *interface;          /* of the node's own address, or NULL */
    const char *const *environment; /* of the ranks, NULL-terminated */
};

/* RDMA ports come first. Those that are up are all of one kind; without one
 * NCCL goes over TCP. Loopback is no card. Returns their number. */
size_t nics_read(struct nic out[GPUL_NICS_MAX],
                 const struct nics_request *request);

#endif
