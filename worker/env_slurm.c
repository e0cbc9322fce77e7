/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm starts the agent, so the place it gave is the agent's and not a
 * rank's. The place is taken away from the ranks; a copy stays under a name
 * of ours. --emulate=slurm gives each rank a place that is true for it, for
 * programs that know Slurm only.
 *
 * Source of the five: JAX's jax/_src/clusters/slurm_cluster.py.
 */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/hostlist.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"

/* One string of the environment, less the name. */
enum { NODE_LIST_BYTES_MAX = 128 * 1024 - (int)sizeof("SLURM_STEP_NODELIST=") };

static void keep_copies(struct env_plan *p)
{
    for (size_t i = 0; i < p->inherited.count; i++) {
        const struct env_given *v = &p->inherited.items[i];
        if (env_is_slurm_place(v->name)) {
            env_claim_value(p, env_plan_format(p, "GPULAUNCH_ORIG_%s", v->name),
                            "Slurm: what gpulaunch itself was started with",
                            v->value);
        }
    }
}

static int fold_nodes(struct gpul_buf *out, const struct env_world *w)
{
    struct gpul_hostlist nodes;
    gpul_hostlist_init(&nodes);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < w->node_count; i++) {
        rc = gpul_hostlist_push(&nodes, w->addresses[i]);
    }
    if (rc == 0) {
        rc = gpul_hostlist_fold(out, &nodes, 0, nodes.count);
    }
    gpul_hostlist_release(&nodes);
    return rc;
}

static const char *node_list(struct env_plan *p)
{
    struct gpul_buf b;
    gpul_buf_init(&b, NODE_LIST_BYTES_MAX);
    int rc = fold_nodes(&b, &p->in->world);
    const char *text = rc == 0 ? gpul_buf_text(&b) : NULL;
    if (text == NULL) {
        env_plan_fail(p, rc == 0 ? GPUL_ELIMIT : rc,
                      "--emulate=slurm: the list of %u nodes does not fit into "
                      "one variable",
                      p->in->world.node_count);
    }
    text = env_plan_format(p, "%s", text == NULL ? "" : text);
    gpul_buf_release(&b);
    return text;
}

/* Readers want a number: FNV-1a of the job id, 31 bits. */
static uint32_t job_number(const char *job_id)
{
    uint32_t hash = 2166136261u;
    for (; *job_id != 0; job_id++) {
        hash = (hash ^ (uint8_t)*job_id) * 16777619u;
    }
    return hash & INT32_MAX;
}

static bool is_number(const char *text)
{
    return text != NULL && text[0] != 0 &&
           text[strspn(text, "0123456789")] == 0;
}

static void emulate(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    if (!is_number(env_plan_inherited(p, "SLURM_JOB_ID"))) {
        env_claim_u32(p, "SLURM_JOB_ID",
                      "--emulate=slurm: a number made of the job's id",
                      job_number(w->job_id));
    }
    env_claim_value(p, "SLURM_STEP_NODELIST",
                    "--emulate=slurm: addresses of the nodes", node_list(p));
    env_claim_u32(p, "SLURM_NTASKS", "--emulate=slurm: ranks in the world",
                  w->world_size);
    env_claim_each(p, "SLURM_PROCID", "--emulate=slurm: rank in the world",
                   env_put_rank);
    env_claim_each(p, "SLURM_LOCALID", "--emulate=slurm: rank on its node",
                   env_put_local_rank);
}

void env_slurm_add(struct env_plan *p)
{
    keep_copies(p);
    if (p->in->emulates_slurm) {
        emulate(p);
    }
}
