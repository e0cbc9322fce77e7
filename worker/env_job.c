/* SPDX-License-Identifier: Apache-2.0
 *
 * Which job, generation and node a rank belongs to. A process that carries
 * the marker was started by a rank, so what is left of it is ours to clean up.
 */
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

static char *put_marker(char *out, const struct env_plan *p,
                        uint32_t local_rank)
{
    out = put_text(out, p->in->world.job_id);
    out = put_text(out, "/");
    out = put_u32(out, p->in->world.generation);
    out = put_text(out, "/");
    return put_u32(out, p->first_rank + local_rank);
}

void env_job_add(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    const struct env_node *n = &p->in->node;
    env_claim_value(p, "GPULAUNCH_JOB_ID", "gpulaunch: the job", w->job_id);
    env_claim_u32(p, "GPULAUNCH_GENERATION",
                  "gpulaunch: rises at each start of the ranks", w->generation);
    env_claim_node_u32(p, "GPULAUNCH_NODE_RANK", "gpulaunch: index of the node",
                       n->node_rank);
    env_claim_node_value(p, "GPULAUNCH_NODE_NAME",
                         "gpulaunch: name of the node", n->node_name);
    if (p->in->beat_fd > 0) {
        env_claim_u32(p, "GPULAUNCH_BEAT_FD",
                      "gpulaunch: a line for each step, see --hang-timeout",
                      p->in->beat_fd);
    }
    if (p->in->metric_fd > 0) {
        env_claim_u32(p, "GPULAUNCH_METRIC_FD",
                      "gpulaunch: a line with a figure, see --metrics",
                      p->in->metric_fd);
    }
    env_claim(p, (struct env_claim){
                     .name = "GPULAUNCH_MARKER",
                     .rule = "gpulaunch: job, generation and rank, to find "
                             "what a rank leaves behind",
                     .put = put_marker,
                     .bytes_max =
                         strlen(w->job_id) + 2 + 2 * (size_t)PUT_U32_BYTES_MAX,
                     .strength = ENV_IDENTITY,
                 });
}
