/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields by release. */
#include "tests/doubles/nccl_config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/nccl_wire.h"

static size_t after(size_t offset, size_t bytes)
{
    size_t align = sizeof(size_t);

    return (offset + bytes + align - 1) / align * align;
}

#define AFTER(field)                                                           \
    after(offsetof(struct config_full, field),                                 \
          sizeof(((struct config_full *)NULL)->field))

size_t config_bytes(int version)
{
    if (version < 21700)
        return AFTER(blocking);
    if (version < 21800)
        return AFTER(net_name);
    if (version < 22500)
        return AFTER(split_share);
    if (version < 22700)
        return AFTER(traffic_class);
    if (version < 22800)
        return AFTER(nvls_ctas);
    if (version < 22900)
        return AFTER(nvlink_centric_sched);
    if (version < 23000)
        return AFTER(rma_contexts);
    return version < 23005 ? AFTER(max_p2p_peers)
                           : AFTER(graph_stream_ordering);
}

static struct config_full defaults(void)
{
    struct config_full config;

    memset(&config, 0, sizeof config);
    config.blocking = config.cga_cluster_size = config.min_ctas =
        config.max_ctas = config.split_share = config.traffic_class =
            config.collnet_enable = config.cta_policy = config.shrink_share =
                config.nvls_ctas = config.channels_per_net_peer =
                    config.nvlink_centric_sched = config.graph_usage_mode =
                        config.rma_contexts = config.max_p2p_peers =
                            config.graph_stream_ordering = NCCL_UNSET_INT;
    return config;
}

/* What the caller's release did not have is not what the caller meant. */
static void reset_newer(struct config_full *config)
{
    struct config_full unset = defaults();

    if (config->version < 21400)
        config->blocking = unset.blocking;
    if (config->version < 21700) {
        config->cga_cluster_size = unset.cga_cluster_size;
        config->min_ctas = unset.min_ctas;
        config->max_ctas = unset.max_ctas;
        config->net_name = unset.net_name;
    }
    if (config->version < 22500)
        config->traffic_class = unset.traffic_class;
    if (config->version < 22700) {
        config->collnet_enable = unset.collnet_enable;
        config->cta_policy = unset.cta_policy;
        config->shrink_share = unset.shrink_share;
        config->nvls_ctas = unset.nvls_ctas;
    }
    if (config->version < 22800) {
        config->channels_per_net_peer = unset.channels_per_net_peer;
        config->nvlink_centric_sched = unset.nvlink_centric_sched;
    }
    if (config->version < 22900) {
        config->graph_usage_mode = unset.graph_usage_mode;
        config->rma_contexts = unset.rma_contexts;
    }
    if (config->version < 23000)
        config->max_p2p_peers = unset.max_p2p_peers;
    if (config->version < 23005)
        config->graph_stream_ordering = unset.graph_stream_ordering;
}

static int refuse(const char *field, int value)
{
    return nccl_fail(NCCL_INVALID_ARGUMENT,
                     "Invalid config %s attribute value %d", field, value);
}

static bool is_set(int value)
{
    return value != NCCL_UNSET_INT;
}

static bool is_flag(int value)
{
    return !is_set(value) || value == 0 || value == 1;
}

static int check_values(const struct config_full *config)
{
    if (!is_flag(config->blocking))
        return refuse("blocking", config->blocking);
    if (is_set(config->cga_cluster_size) && config->cga_cluster_size < 0)
        return refuse("cgaClusterSize", config->cga_cluster_size);
    if ((is_set(config->min_ctas) && config->min_ctas <= 0) ||
        (is_set(config->max_ctas) && config->max_ctas <= 0))
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "Invalid config min/max channels attribute value "
                         "%d/%d",
                         config->min_ctas, config->max_ctas);
    if (!is_flag(config->split_share))
        return refuse("splitShare", config->split_share);
    if (!is_flag(config->collnet_enable))
        return refuse("collnetEnable", config->collnet_enable);
    if (!is_flag(config->shrink_share))
        return refuse("shrinkShare", config->shrink_share);
    if (is_set(config->nvls_ctas) && config->nvls_ctas <= 0)
        return refuse("nvlsCTAs", config->nvls_ctas);
    if (is_set(config->channels_per_net_peer) &&
        config->channels_per_net_peer <= 0)
        return refuse("nChannelsPerNetPeer", config->channels_per_net_peer);
    return NCCL_SUCCESS;
}

int config_read(struct config_full *read, const void *given, int own)
{
    size_t bytes;

    *read = defaults();
    if (!given)
        return NCCL_SUCCESS;
    memcpy(&bytes, given, sizeof bytes);
    if (bytes > config_bytes(own))
        bytes = config_bytes(own);
    memcpy(read, given, bytes);
    if (read->magic != NCCL_CONFIG_MAGIC)
        return nccl_fail(NCCL_INVALID_ARGUMENT,
                         "ncclConfig_t argument not initialized via "
                         "NCCL_CONFIG_INITIALIZER");
    reset_newer(read);
    return check_values(read);
}

int config_is_blocking(const struct config_full *config)
{
    const char *text = getenv("NCCL_COMM_BLOCKING");

    if (text && (strcmp(text, "0") == 0 || strcmp(text, "1") == 0))
        return text[0] == '1';
    return config->blocking != 0; /* unset: it does */
}
