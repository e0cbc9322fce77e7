/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults of the language run-times: threads that fit the host, and output
 * that comes when it is written. Nothing here binds threads to cores.
 */
#include "worker/env_plan.h"
#include "worker/env_rules.h"

void env_threads_add(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    uint32_t ranks =
        n->host_rank_count > p->rank_count ? n->host_rank_count : p->rank_count;
    uint32_t threads = n->cores / ranks > 0 ? n->cores / ranks : 1;
    env_claim_node_default(p, "OMP_NUM_THREADS",
                           "OpenMP: cores of the host over its ranks",
                           env_plan_format(p, "%u", threads));
    env_claim_default(p, "PYTHONUNBUFFERED",
                      "Python: output comes when it is written", "1");
}
