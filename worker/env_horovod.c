/* SPDX-License-Identifier: Apache-2.0
 *
 * Horovod with its gloo controller, as horovodrun would start it.
 *
 * Sources: Horovod's horovod/runner/gloo_run.py (the set),
 * horovod/common/gloo/gloo_context.cc (how it is read),
 * horovod/runner/common/util/hosts.py (cross rank and size).
 */
#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

/* For local rank l: how many nodes have a rank l, and how many of them stand
 * before this node. Nodes may have unequal numbers of ranks. */
static const uint32_t *count_across(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    uint32_t *counts =
        env_plan_alloc(p, 2 * (size_t)p->rank_count * sizeof(*counts));
    if (counts == NULL) {
        return NULL;
    }
    for (uint32_t node = 0; node < w->node_count; node++) {
        uint32_t n = w->rank_counts[node];
        uint32_t last = (n < p->rank_count ? n : p->rank_count) - 1;
        counts[2 * last]++;
        counts[2 * last + 1] += node < p->in->node.node_rank;
    }
    for (uint32_t l = p->rank_count - 1; l > 0; l--) {
        counts[2 * (l - 1)] += counts[2 * l];
        counts[2 * (l - 1) + 1] += counts[2 * l + 1];
    }
    return counts;
}

static char *put_cross_size(char *out, const struct env_plan *p,
                            uint32_t local_rank)
{
    return put_u32(out, p->cross_counts[2 * local_rank]);
}

static char *put_cross_rank(char *out, const struct env_plan *p,
                            uint32_t local_rank)
{
    return put_u32(out, p->cross_counts[2 * local_rank + 1]);
}

static void add_place(struct env_plan *p)
{
    env_claim_each(p, "HOROVOD_RANK", "Horovod: rank in the world",
                   env_put_rank);
    env_claim_u32(p, "HOROVOD_SIZE", "Horovod: ranks in the world",
                  p->in->world.world_size);
    env_claim_each(p, "HOROVOD_LOCAL_RANK", "Horovod: rank on its node",
                   env_put_local_rank);
    env_claim_node_u32(p, "HOROVOD_LOCAL_SIZE", "Horovod: ranks on this node",
                       p->rank_count);
    env_claim_each(p, "HOROVOD_CROSS_RANK",
                   "Horovod: index among the nodes that have this local rank",
                   put_cross_rank);
    env_claim_each(p, "HOROVOD_CROSS_SIZE",
                   "Horovod: nodes that have this local rank", put_cross_size);
    env_claim_node_value(p, "HOROVOD_HOSTNAME",
                         "Horovod: equal on a node, different between nodes",
                         p->in->node.node_name);
}

void env_horovod_add(struct env_plan *p)
{
    p->cross_counts = count_across(p);
    add_place(p);
    env_claim_value(p, "HOROVOD_CONTROLLER", "Horovod: no MPI is needed",
                    "gloo");
    env_claim_default(p, "HOROVOD_CPU_OPERATIONS", "Horovod: no MPI is needed",
                      "gloo");
    env_claim_value(p, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                    "Horovod: key-value server on the node of rank 0",
                    env_master_address(p));
    env_claim_u32(p, "HOROVOD_GLOO_RENDEZVOUS_PORT",
                  "Horovod: leased on the node of rank 0",
                  env_extra_port(p, ENV_PORT_HOROVOD));
    env_claim_absent(p, "HOROVOD_ELASTIC", "Horovod: the world is fixed");
    if (p->in->node.interface != NULL) {
        env_claim_node_default(p, "HOROVOD_GLOO_IFACE",
                               "Horovod: interface of the node's address",
                               p->in->node.interface);
    }
}
