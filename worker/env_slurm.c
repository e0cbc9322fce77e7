/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm starts the agent, so the place it gave is the agent's and not a
 * rank's. The place is taken away from the ranks; a copy stays under a name
 * of ours. --emulate=slurm gives each rank a place that is true for it, for
 * programs that know Slurm only.
 *
 * Source of the five: JAX's jax/_src/clusters/slurm_cluster.py.
 */
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

/* What Linux allows for one string, NUL included, less the name. */
enum {
    NODE_LIST_BYTES_MAX = 128 * 1024 - (int)sizeof("SLURM_STEP_NODELIST=") + 1,
};

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

/* "10.0.0.1,10.0.0.2": JAX and Lightning look for the first, rank 0's. */
static const char *node_list(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    size_t bytes = 0;
    for (uint32_t i = 0; i < w->node_count; i++) {
        bytes += strlen(w->addresses[i]) + 1;
    }
    if (bytes > NODE_LIST_BYTES_MAX) {
        env_plan_fail(p, GPUL_ELIMIT,
                      "--emulate=slurm: the list of %u nodes takes %zu bytes, "
                      "over the %d that Linux allows for one variable",
                      w->node_count, bytes, NODE_LIST_BYTES_MAX);
    }
    char *text = env_plan_alloc(p, bytes);
    char *out = text;
    for (uint32_t i = 0; text != NULL && i < w->node_count; i++) {
        out = put_text(out, i > 0 ? "," : "");
        out = put_text(out, w->addresses[i]);
    }
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
