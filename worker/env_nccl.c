/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps the sockets of NCCL of two jobs apart, which may meet where one
 * has a port that the other had: a number of the job's own that NCCL shows on
 * each connection of its transports, and wants to see.
 */
#include "worker/env_plan.h"
#include "worker/env_rules.h"

#define NAME "NCCL_SOCKET_MAGIC"

void env_nccl_add(struct env_plan *p)
{
    if (p->in->nccl_magic == NULL) {
        return;
    }
    /* The line that others get would show ours. */
    if (env_plan_inherited(p, NAME) != NULL &&
        env_plan_inherited(p, "GPULAUNCH_JOB_ID") == NULL) {
        env_plan_note(p,
                      "%s is kept from your environment, in place of one "
                      "of this job's own",
                      NAME);
    }
    env_claim(p, (struct env_claim){
                     .name = NAME,
                     .rule = "NCCL: keeps this job's sockets apart from those "
                             "of others; another value in each job",
                     .value = p->in->nccl_magic,
                     .strength = ENV_TUNING,
                     .is_quiet = true,
                 });
}
