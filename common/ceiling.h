/* SPDX-License-Identifier: Apache-2.0
 *
 * What to think of a measured bandwidth, beside the ceiling that
 * common/bandwidth.h knows. Pure. GB/s are 1e9 bytes a second.
 *
 *     limited by   good from   fails below   as published
 *     NVLink       80 %        70 %          8-GPU nodes: 82 to 107 %
 *     RDMA         80 %        65 %          4 nodes of 8 GPUs: 74 %
 *     PCIe         80 %        65 %          copies of 32 MiB: 67 to 87 %
 *     TCP          50 %        25 %          33 to 60 %
 */
#ifndef GPUL_COMMON_CEILING_H
#define GPUL_COMMON_CEILING_H

#include <stdint.h>

#include "common/bandwidth.h"
#include "common/buf.h"

/* Of the ceiling. */
struct gpul_shares {
    double warn; /* below this is low */
    double fail; /* below this is too slow */
};

/* Those of NVLink for a link that is not known: the strictest. */
struct gpul_shares gpul_default_shares(enum gpul_link kind);

enum gpul_bandwidth_verdict {
    GPUL_BANDWIDTH_UNKNOWN = 0, /* nothing to compare with, or no figure */
    GPUL_BANDWIDTH_PASS = 1,
    GPUL_BANDWIDTH_WARN = 2,
    GPUL_BANDWIDTH_FAIL = 3,
    /* No machine like this can reach the threshold: not the machine fails. */
    GPUL_BANDWIDTH_BAD_TEST = 4,
    /* Slow, but the message is too small to say that of the links. */
    GPUL_BANDWIDTH_INCONCLUSIVE = 5,
};

/* "pass", "warn", "fail", "bad test", "inconclusive", "unknown". */
const char *gpul_bandwidth_verdict_name(enum gpul_bandwidth_verdict verdict);

struct gpul_bandwidth_case {
    double busbw_gbps;   /* 0: no figure */
    double ceiling_gbps; /* gpul_ceiling_gbps(); 0: not known */
    enum gpul_link kind; /* that sets the ceiling */
    /* What somebody asks for; 0: the default shares of the ceiling. */
    double threshold_gbps;
    double bytes; /* of the message */
    /* From this size on 90 % of the asymptote can be reached, S_90 of a fit;
     * 0: not known, and then no figure is bad. */
    double needed_bytes;
};

/* In this order: no figure is unknown; what reaches the threshold, or the
 * share that is good, passes whatever the size; a threshold above the ceiling
 * is a bad test; without ceiling and threshold it is unknown; too small a
 * message is inconclusive, and unknown where nobody knows what is too small;
 * then warn or fail. A threshold of somebody's has no warning before it. */
enum gpul_bandwidth_verdict
gpul_judge_bandwidth(const struct gpul_bandwidth_case *c);

/* Percent of the ceiling; 0 where none is known. */
double gpul_ceiling_percent(const struct gpul_bandwidth_case *c);

/* The verdict and why, as a part of a sentence: "bad test: threshold of 420.0
 * GB/s above the ceiling of 400.0 GB/s (RDMA)", "inconclusive: message of 1 MiB
 * too small (needs S_90 = 540 MiB)". Returns 0 or GPUL_ENOMEM. */
int gpul_bandwidth_verdict_text(struct gpul_buf *out,
                                const struct gpul_bandwidth_case *c);

#endif
