/* SPDX-License-Identifier: Apache-2.0
 *
 * What torch.distributed's env:// and programs written for torchrun read;
 * accelerate, DeepSpeed and Lightning are content with the same.
 *
 * Sources: PyTorch's torch/distributed/rendezvous.py (env://, agent store),
 * torch/distributed/elastic/agent/server/local_elastic_agent.py (the set).
 */
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/evidence.h"
#include "worker/put.h"

static void add_place(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    uint32_t node_rank = p->in->node.node_rank;
    env_claim_each(p, "RANK", "PyTorch: rank in the world", env_put_rank);
    env_claim_u32(p, "WORLD_SIZE", "PyTorch: ranks in the world",
                  w->world_size);
    env_claim_each(p, "LOCAL_RANK", "PyTorch: rank on its node",
                   env_put_local_rank);
    env_claim_node_u32(p, "LOCAL_WORLD_SIZE", "PyTorch: ranks on this node",
                       p->rank_count);
    env_claim_node_u32(p, "GROUP_RANK", "PyTorch: index of the node",
                       node_rank);
    env_claim_u32(p, "GROUP_WORLD_SIZE", "PyTorch: number of nodes",
                  w->node_count);
    env_claim_each(p, "ROLE_RANK", "PyTorch: one role, so as RANK",
                   env_put_rank);
    env_claim_u32(p, "ROLE_WORLD_SIZE", "PyTorch: one role, so as WORLD_SIZE",
                  w->world_size);
    env_claim_value(p, "ROLE_NAME", "PyTorch: the one role", "default");
    env_claim_node_u32(p, "NODE_RANK", "Lightning: index of the node",
                       node_rank);
}

static void add_elastic(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    env_claim_value(p, "TORCHELASTIC_RUN_ID",
                    "PyTorch: its presence means started by a launcher",
                    w->job_id);
    env_claim_u32(p, "TORCHELASTIC_RESTART_COUNT",
                  "PyTorch: restarts so far, the same on all ranks",
                  w->restart_count);
    env_claim_u32(p, "TORCHELASTIC_MAX_RESTARTS", "PyTorch: restarts allowed",
                  w->max_restarts);
    env_claim_value(p, "TORCHELASTIC_USE_AGENT_STORE",
                    "PyTorch: rank 0 hosts the store itself", "False");
}

static char *put_error_file(char *out, const struct env_plan *p,
                            uint32_t local_rank)
{
    out = put_text(out, p->in->error_dir);
    out = put_text(out, "/rank-");
    out = put_u32(out, p->first_rank + local_rank);
    return put_text(out, EVIDENCE_ERROR_ENDING);
}

/* The user's own stays; that of a torchrun around us is not the user's. */
static void add_error_file(struct env_plan *p)
{
    bool is_in_torchrun = env_plan_inherited(p, "TORCHELASTIC_RUN_ID") != NULL;
    if (p->in->error_dir == NULL) {
        return; /* then env_scrub drops what is left of another */
    }
    env_claim(p, (struct env_claim){
                     .name = "TORCHELASTIC_ERROR_FILE",
                     .rule = "PyTorch: where `record` writes an exception",
                     .put = put_error_file,
                     .bytes_max = strlen(p->in->error_dir) +
                                  sizeof("/rank-" EVIDENCE_ERROR_ENDING) +
                                  PUT_U32_BYTES_MAX,
                     .strength = is_in_torchrun ? ENV_IDENTITY : ENV_TUNING,
                     .is_per_node = true,
                 });
}

void env_torch_add(struct env_plan *p)
{
    add_place(p);
    add_elastic(p);
    add_error_file(p);
    env_claim_value(p, "MASTER_ADDR", "PyTorch: the node of rank 0, bare",
                    env_master_address(p));
    env_claim_u32(p, "MASTER_PORT", "PyTorch: leased on the node of rank 0",
                  env_extra_port(p, ENV_PORT_MASTER));
    env_claim_default(p, "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                      "PyTorch: a failed collective ends the process", "1");
    if (p->in->node.interface != NULL) {
        env_claim_node_default(p, "GLOO_SOCKET_IFNAME",
                               "PyTorch gloo: interface of the node's address",
                               p->in->node.interface);
    }
}
