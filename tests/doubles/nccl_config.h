/* SPDX-License-Identifier: Apache-2.0
 *
 * How a release of NCCL reads the configuration that a program built against
 * another release hands it. Source: NCCL 2.30, src/init.cc parseCommConfig,
 * and nccl.h of 2.14, 2.18, 2.27 and 2.30 for the fields. */
#ifndef DOUBLES_NCCL_CONFIG_H
#define DOUBLES_NCCL_CONFIG_H

#include "worker/nccl_api.h"

/* ncclConfig_t of 2.30.5; an older release has the beginning of it. */
struct config_full {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking; /* the last field of 2.14 */
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name; /* the last field of 2.17 */
    int split_share;      /* the last field of 2.18 */
    int traffic_class;
    const char *comm_name;
    int collnet_enable;
    int cta_policy;
    int shrink_share;
    int nvls_ctas; /* the last field of 2.27 */
    int channels_per_net_peer;
    int nvlink_centric_sched; /* the last field of 2.28 */
    int graph_usage_mode;
    int rma_contexts; /* the last field of 2.29 */
    int max_p2p_peers;
    int graph_stream_ordering;
};

/* sizeof(ncclConfig_t) in release `version` (a code such as 21800). */
size_t config_bytes(int version);

/* What release `own` makes of a caller's configuration: min(size, own size)
 * bytes of it over the defaults, then every field that is newer than the
 * caller's version back to its default. NULL: all defaults.
 * NCCL_SUCCESS, or NCCL_INVALID_ARGUMENT with NCCL's words. */
int config_read(struct config_full *read, const void *given, int own);

/* Does a communicator block? NCCL_COMM_BLOCKING decides before the
 * configuration. */
int config_is_blocking(const struct config_full *config);

#endif
