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

/* `share`: busbw for each byte a second of the cards. */
static double ceiling(const struct gpul_fabric *f, double share)
{
    if (f->nodes < 2) {
        return f->link_gbps;
    }
    double wire = f->nics_gbps * share;
    bool is_capped = f->link_gbps > 0 && f->link_gbps < wire;
    return is_capped ? f->link_gbps : wire;
}

double gpul_ceiling_ring_gbps(const struct gpul_fabric *fabric)
{
    return ceiling(fabric, 1);
}

double gpul_ceiling_hierarchical_gbps(const struct gpul_fabric *fabric)
{
    double n = fabric->ranks;
    double k = fabric->nodes;
    return ceiling(fabric, fabric->nodes < 2 ? 0 : k * (n - 1) / ((k - 1) * n));
}

double gpul_ceiling_in_network_gbps(const struct gpul_fabric *fabric)
{
    double n = fabric->ranks;
    return ceiling(fabric, fabric->ranks < 2 ? 0 : 2 * (n - 1) / n);
}

double gpul_wire_gbps(double busbw_gbps, uint32_t ranks, uint32_t nodes)
{
    if (nodes < 2 || ranks < 2) {
        return 0;
    }
    return busbw_gbps * (nodes - 1.0) / (ranks - 1.0);
}
