/* SPDX-License-Identifier: Apache-2.0
 *
 * What a measured time means: nccl-tests' two figures, and what they can be
 * at most. Pure. GB/s are 1e9 bytes a second; n is the number of ranks, k of
 * nodes.
 *
 *     algbw = size / time          busbw = algbw * factor
 *
 * "Size" is the larger of what one rank sends and receives, as nccl-tests
 * prints it. The factor makes busbw comparable with the rate of one link,
 * whatever n is (nccl-tests, doc/PERFORMANCE.md).
 */
#ifndef GPUL_COMMON_BANDWIDTH_H
#define GPUL_COMMON_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers are those of Collective in proto/gpulaunch.proto. */
enum gpul_collective {
    GPUL_COLLECTIVE_NONE = 0, /* counts as all-reduce */
    GPUL_ALL_REDUCE = 1,
    GPUL_ALL_GATHER = 2,
    GPUL_REDUCE_SCATTER = 3,
    GPUL_BROADCAST = 4,
    GPUL_ALL_TO_ALL = 5,
    GPUL_SEND_RECV = 6,
    GPUL_COPY_TO_DEVICE = 7,
    GPUL_COPY_TO_HOST = 8,
    GPUL_COPY_ON_DEVICE = 9,
};

/* "all-reduce"; "unknown collective" for a foreign number. */
const char *gpul_collective_name(enum gpul_collective collective);

/* 0 when `ns` is 0: no time, no figure. */
double gpul_algbw_gbps(uint64_t bytes, uint64_t ns);

/* False where busbw means nothing, to be printed as "n/a": a collective of
 * fewer than two ranks moves nothing between devices. */
bool gpul_busbw_factor(double *factor, enum gpul_collective collective,
                       uint32_t ranks);

/* What a byte goes through between two devices, or between device and host.
 * The numbers are those of Link in proto/gpulaunch.proto. */
enum gpul_link {
    GPUL_LINK_NONE = 0, /* not known */
    GPUL_NVLINK = 1,
    GPUL_PCIE = 2,
    GPUL_RDMA = 3, /* InfiniBand, RoCE and their like */
    GPUL_TCP = 4,
};

/* "NVLink"; "unknown link" for a foreign number. */
const char *gpul_link_name(enum gpul_link link);

/* One lane's worth of a PCI Express generation times the lanes, one way and
 * after the line's own coding; 0 for a generation that is not known. Source:
 * PCI Express Base Specification, 8b/10b up to 2, 128b/130b up to 5, flits of
 * 242 bytes in 256 for 6. */
double gpul_pcie_gbps(uint64_t generation, uint64_t lanes);

/* How an all-reduce crosses the network. */
enum gpul_algorithm {
    GPUL_HIERARCHICAL = 0, /* within the nodes first: NVLS, trees */
    GPUL_FLAT_RING = 1,
    GPUL_IN_NETWORK = 2, /* the switches add up: SHARP */
};

/* Rates of one node, one way, in 1e9 bytes a second; 0: unknown. */
struct gpul_links {
    double link_gbps; /* of one device to the others of its node */
    double host_gbps; /* of one device to the host */
    double nics_gbps; /* of all network cards together */
    enum gpul_link link_kind;
    enum gpul_link nics_kind;
    uint32_t nics;                 /* network cards; 0: unknown */
    enum gpul_algorithm algorithm; /* of all-reduce */
};

/* What connects the devices of a job whose nodes are all alike. */
struct gpul_fabric {
    uint32_t ranks;
    uint32_t nodes;
    struct gpul_links links;
};

/* The most that busbw can be, 0 if unknown, and what sets that bound. Between
 * nodes the cards of a node carry, for S bytes of an all-reduce,
 *
 *     flat ring        2 (n-1)/n S   so  busbw <= nics
 *     hierarchical     2 (k-1)/k S   so  busbw <= nics * k (n-1) / ((k-1) n)
 *     in the network   S             so  busbw <= nics * 2 (n-1) / n
 *
 * all-gather, reduce-scatter and broadcast are rings or chains through all
 * ranks; in an all-to-all each of a node's g ranks sends a share of S to each
 * of the n - g ranks elsewhere, so busbw <= nics * (n-1) / (g (n-g)). Within
 * a node the links cap each of them. Copies between device and host go over
 * PCIe. Of send/recv and of copies on the device nothing is said: what two
 * ranks alone can get depends on which links and cards lie between them, and
 * how fast a device's memory is no library tells.
 *
 * Hierarchical is the default because it is the most that NCCL may reach
 * without help of the network. */
double gpul_ceiling_gbps(enum gpul_link *kind, enum gpul_collective collective,
                         const struct gpul_fabric *fabric);

/* What one network card carries at this busbw, 0 if unknown and on one node.
 * For a hierarchical all-reduce, when every rank has a card, that is
 * busbw * (k-1)/(n-1): on few nodes well below busbw, which therefore looks
 * better than the network is. */
double gpul_wire_gbps(double busbw_gbps, enum gpul_collective collective,
                      const struct gpul_fabric *fabric);

#endif
