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

/* What connects the devices of a job whose nodes are all alike. */
struct gpul_fabric {
    uint32_t ranks;
    uint32_t nodes;
    double link_gbps; /* one device's links within its node; 0: unknown */
    double nics_gbps; /* all network cards of one node; 0: unknown */
};

/* The most that busbw of all-reduce, all-gather and reduce-scatter can be, 0
 * if unknown. Between nodes the cards of a node carry, for S bytes of an
 * all-reduce,
 *
 *     flat ring        2 (n-1)/n S   so  busbw <= nics
 *     hierarchical     2 (k-1)/k S   so  busbw <= nics * k (n-1) / ((k-1) n)
 *     in the network   S             so  busbw <= nics * 2 (n-1) / n
 *
 * and within a node the links cap each of them. Hierarchical is NVLS within
 * and a tree between nodes; in the network is SHARP (all-reduce only). */
double gpul_ceiling_ring_gbps(const struct gpul_fabric *fabric);
double gpul_ceiling_hierarchical_gbps(const struct gpul_fabric *fabric);
double gpul_ceiling_in_network_gbps(const struct gpul_fabric *fabric);

/* What one network card carries under a hierarchical all-reduce of this
 * busbw, when every rank has a card: busbw * (k-1)/(n-1). On few nodes it is
 * well below busbw, which therefore looks better than the network is. 0 on
 * one node. */
double gpul_wire_gbps(double busbw_gbps, uint32_t ranks, uint32_t nodes);

#endif
