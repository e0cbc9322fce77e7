/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bandwidth.h"

#include <stddef.h>

const char *gpul_collective_name(enum gpul_collective collective)
{
    static const char *const names[] = {
        [GPUL_COLLECTIVE_NONE] = "all-reduce",
        [GPUL_ALL_REDUCE] = "all-reduce",
        [GPUL_ALL_GATHER] = "all-gather",
        [GPUL_REDUCE_SCATTER] = "reduce-scatter",
        [GPUL_BROADCAST] = "broadcast",
        [GPUL_ALL_TO_ALL] = "all-to-all",
        [GPUL_SEND_RECV] = "send/recv",
        [GPUL_COPY_TO_DEVICE] = "copy to device",
        [GPUL_COPY_TO_HOST] = "copy to host",
        [GPUL_COPY_ON_DEVICE] = "copy on device",
    };
    size_t index = (size_t)collective;
    return index < sizeof(names) / sizeof(names[0]) ? names[index]
                                                    : "unknown collective";
}

double gpul_algbw_gbps(uint64_t bytes, uint64_t ns)
{
    return ns == 0 ? 0 : (double)bytes / (double)ns;
}

bool gpul_busbw_factor(double *factor, enum gpul_collective collective,
                       uint32_t ranks)
{
    double n = ranks;
    *factor = 0;
    switch (collective) {
    case GPUL_COPY_TO_DEVICE:
    case GPUL_COPY_TO_HOST:
    case GPUL_COPY_ON_DEVICE:
        *factor = 1;
        return true;
    case GPUL_BROADCAST:
    case GPUL_SEND_RECV:
        *factor = 1;
        break;
    case GPUL_COLLECTIVE_NONE:
    case GPUL_ALL_REDUCE:
        *factor = 2 * (n - 1) / n;
        break;
    case GPUL_ALL_GATHER:
    case GPUL_REDUCE_SCATTER:
    case GPUL_ALL_TO_ALL:
        *factor = (n - 1) / n;
        break;
    }
    if (ranks < 2) {
        *factor = 0;
    }
    return *factor > 0;
}

const char *gpul_link_name(enum gpul_link link)
{
    static const char *const names[] = {
        [GPUL_LINK_NONE] = "unknown link",
        [GPUL_NVLINK] = "NVLink",
        [GPUL_PCIE] = "PCIe",
        [GPUL_RDMA] = "RDMA",
        [GPUL_TCP] = "TCP",
    };
    size_t index = (size_t)link;
    return names[index < sizeof(names) / sizeof(names[0]) ? index : 0];
}

double gpul_pcie_gbps(uint64_t generation, uint64_t lanes)
{
    /* 1e9 transfers a second of one bit, bytes for each of them. */
    static const double one_lane[] = {
        0,
        2.5 / 8 * 8 / 10,
        5.0 / 8 * 8 / 10,
        8.0 / 8 * 128 / 130,
        16.0 / 8 * 128 / 130,
        32.0 / 8 * 128 / 130,
        64.0 / 8 * 242 / 256,
    };
    return generation < sizeof(one_lane) / sizeof(one_lane[0])
               ? one_lane[generation] * (double)lanes
               : 0;
}

static double all_reduce_share(const struct gpul_fabric *f)
{
    double n = f->ranks;
    double k = f->nodes;
    switch (f->links.algorithm) {
    case GPUL_FLAT_RING:
        return 1;
    case GPUL_IN_NETWORK:
        return 2 * (n - 1) / n;
    default:
        return k * (n - 1) / ((k - 1) * n);
    }
}

/* busbw for each byte a second of the cards; 0: not known. */
static double share_of(enum gpul_collective collective,
                       const struct gpul_fabric *f)
{
    double n = f->ranks;
    double g = n / f->nodes;
    switch (collective) {
    case GPUL_COLLECTIVE_NONE:
    case GPUL_ALL_REDUCE:
        return all_reduce_share(f);
    case GPUL_ALL_GATHER:
    case GPUL_REDUCE_SCATTER:
    case GPUL_BROADCAST:
        return 1;
    case GPUL_ALL_TO_ALL:
        return (n - 1) / (g * (n - g));
    default:
        return 0;
    }
}

/* Among the ranks of one node, or of several. */
static double collective_gbps(enum gpul_link *kind,
                              enum gpul_collective collective,
                              const struct gpul_fabric *f)
{
    const struct gpul_links *l = &f->links;
    if (f->ranks < 2 || collective == GPUL_SEND_RECV) {
        return 0;
    }
    *kind = l->link_kind;
    if (f->nodes < 2) {
        return l->link_gbps;
    }
    double wire = l->nics_gbps * share_of(collective, f);
    if (wire > 0 && l->link_gbps > 0 && l->link_gbps < wire) {
        return l->link_gbps;
    }
    *kind = l->nics_kind;
    return wire;
}

double gpul_ceiling_gbps(enum gpul_link *kind, enum gpul_collective collective,
                         const struct gpul_fabric *f)
{
    double gbps = 0;
    *kind = GPUL_LINK_NONE;
    if (collective == GPUL_COPY_TO_DEVICE || collective == GPUL_COPY_TO_HOST) {
        *kind = GPUL_PCIE;
        gbps = f->links.host_gbps;
    } else if (collective < GPUL_COPY_TO_DEVICE) {
        gbps = collective_gbps(kind, collective, f);
    }
    *kind = gbps > 0 ? *kind : GPUL_LINK_NONE;
    return gbps;
}

double gpul_wire_gbps(double busbw_gbps, enum gpul_collective collective,
                      const struct gpul_fabric *f)
{
    if (f->nodes < 2 || f->ranks < 2 || f->links.nics == 0) {
        return 0;
    }
    double share = share_of(collective, f);
    return share > 0 ? busbw_gbps / (share * f->links.nics) : 0;
}
