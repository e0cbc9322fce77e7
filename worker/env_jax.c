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
#include "worker/put.h"

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

/* The rank's equal part of what is visible, by index: "4,5". */
static char *put_devices(char *out, const struct env_plan *p,
                         uint32_t local_rank)
{
    uint32_t share = p->visible_count / p->rank_count;
    for (uint32_t i = 0; i < share; i++) {
        out = put_text(out, i > 0 ? "," : "");
        out = put_u32(out, local_rank * share + i);
    }
    return out;
}

/* Without a list a process takes all that it sees, which is wrong for the
 * second on a node; and where JAX detects Slurm, it takes the one device of
 * its local rank, which is wrong for a process that has several. */
static void add_devices(struct env_plan *p)
{
    const char *name = "JAX_LOCAL_DEVICE_IDS";
    const char *rule = "JAX: the devices of this process";
    if (p->rank_devices != NULL) {
        env_claim_value(p, name, rule, "0");
        return;
    }
    bool is_even =
        p->visible_count > 0 && p->visible_count % p->rank_count == 0;
    if (is_even && (p->rank_count > 1 || p->in->emulates_slurm)) {
        env_claim(p,
                  (struct env_claim){
                      .name = name,
                      .rule = rule,
                      .put = put_devices,
                      .bytes_max = (size_t)(p->visible_count / p->rank_count) *
                                   (PUT_U32_BYTES_MAX + 1),
                      .strength = ENV_IDENTITY,
                  });
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
