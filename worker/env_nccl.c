/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface that NCCL's sockets are to use, and what keeps those of two
 * jobs apart, which may meet where one has a port that the other had: a number
 * of the job's own that NCCL shows on each connection of its transports, and
 * wants to see.
 *
 * Source: NCCL's src/misc/socket.cc: "=" wants the whole name, since "eth1"
 * alone means eth10 too; without a family the first address of the interface
 * counts.
 */
#include <string.h>

#include "common/hostport.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"

#define NAME "NCCL_SOCKET_MAGIC"

/* That of the node's address. NCCL finds its way by itself where that is a
 * loopback address, within one host. */
static void add_interface(struct env_plan *p)
{
    const struct env_node *node = &p->in->node;
    const char *address = p->in->world.addresses[node->node_rank];
    if (node->interface == NULL || gpul_host_is_loopback(address)) {
        return;
    }
    env_claim_node_default(p, "NCCL_SOCKET_IFNAME",
                           "NCCL: interface of the node's address",
                           env_plan_format(p, "=%s", node->interface));
    env_claim_default(p, "NCCL_SOCKET_FAMILY",
                      "NCCL: family of the nodes' addresses",
                      strchr(address, ':') != NULL ? "AF_INET6" : "AF_INET");
}

static void add_magic(struct env_plan *p)
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

void env_nccl_add(struct env_plan *p)
{
    add_interface(p);
    add_magic(p);
}
