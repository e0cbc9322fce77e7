/* SPDX-License-Identifier: Apache-2.0
 *
 * JAX reads the coordinator's address and the local devices itself; the
 * number of processes and the own index are a convention of scripts, which
 * hand them to jax.distributed.initialize().
 *
 * Source: JAX's jax/_src/distributed.py and jax/_src/clusters/cluster.py.
 */
#include "common/buf.h"
#include "common/hostport.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"

/* "host:port" with brackets for IPv6: JAX splits at the last colon. */
static const char *coordinator(struct env_plan *p)
{
    struct gpul_buf b;
    gpul_buf_init(&b, GPUL_HOST_BYTES + sizeof("[]:65535"));
    gpul_hostport_append(&b, env_master_address(p),
                         (uint16_t)env_extra_port(p, ENV_PORT_JAX));
    const char *text = b.is_failed ? NULL : gpul_buf_text(&b);
    if (text == NULL) {
        env_plan_fail(p, GPUL_ENOMEM, "JAX: out of memory");
    }
    text = env_plan_format(p, "%s", text == NULL ? "" : text);
    gpul_buf_release(&b);
    return text;
}

static void add_devices(struct env_plan *p)
{
    const char *rule = "JAX: the devices of this process";
    if (p->rank_devices != NULL) {
        env_claim_value(p, "JAX_LOCAL_DEVICE_IDS", rule, "0");
    } else if (p->rank_count > 1 && p->visible_count == p->rank_count) {
        env_claim_each(p, "JAX_LOCAL_DEVICE_IDS", rule, env_put_local_rank);
    }
}

void env_jax_add(struct env_plan *p)
{
    const char *address = coordinator(p);
    env_claim_value(p, "JAX_COORDINATOR_ADDRESS",
                    "JAX: leased on the node of rank 0", address);
    if (p->in->node.node_rank == 0) {
        env_claim_value(p, "JAX_COORDINATOR_BIND_ADDRESS",
                        "JAX: the coordinator listens there only", address);
    } else {
        env_claim_absent(p, "JAX_COORDINATOR_BIND_ADDRESS",
                         "JAX: for the node of rank 0 only");
    }
    env_claim_absent(p, "JAX_COORDINATOR_PORT",
                     "JAX: the port stands in JAX_COORDINATOR_ADDRESS");
    env_claim_u32(p, "JAX_NUM_PROCESSES",
                  "a convention, not read by JAX: ranks in the world",
                  p->in->world.world_size);
    env_claim_each(p, "JAX_PROCESS_ID",
                   "a convention, not read by JAX: rank in the world",
                   env_put_rank);
    add_devices(p);
}
