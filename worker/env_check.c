/* SPDX-License-Identifier: Apache-2.0
 *
 * Is what the coordinator and the user gave us a world that can train? The
 * texts name the node or the variable, since the user reads them.
 */
#include <string.h>

#include "common/hostport.h"
#include "common/units.h"
#include "proto/limits.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"

/* Linux's bound for one string, its NUL included (MAX_ARG_STRLEN). */
enum { STRING_BYTES_MAX = 128 * 1024 };

/* An address goes into JSON, URLs and lists as it stands. */
static bool is_plain(const char *address)
{
    size_t n = strspn(address, "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789.:-_%");
    return n > 0 && address[n] == 0;
}

static void check_address(struct env_plan *p, uint32_t node)
{
    const struct env_world *w = &p->in->world;
    const char *address = w->addresses[node];
    if (address == NULL || !is_plain(address)) {
        env_plan_fail(p, GPUL_EINVAL, "node %u: \"%s\" is not an address", node,
                      address == NULL ? "" : address);
    } else if (w->host_count > 1 && gpul_host_is_loopback(address)) {
        env_plan_fail(p, GPUL_EINVAL,
                      "node %u: its address %s is a loopback address, which "
                      "the other %u host%s of the job cannot reach; give the "
                      "node an address on their network",
                      node, address, w->host_count - 1,
                      gpul_plural(w->host_count - 1));
    }
}

static void check_ports(struct env_plan *p, uint32_t node)
{
    const struct env_world *w = &p->in->world;
    uint32_t base = w->port_bases[node];
    uint32_t count = w->rank_counts[node] + GPUL_EXTRA_PORTS;
    if (base == 0 || count > UINT16_MAX + 1u - base) {
        env_plan_fail(p, GPUL_EINVAL,
                      "node %u: %u ports from %u on are not all valid ports",
                      node, count, base);
    }
}

static void check_nodes(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    uint64_t ranks = 0;
    for (uint32_t i = 0; i < w->node_count && p->status == 0; i++) {
        if (w->rank_counts[i] == 0 || w->first_ranks[i] != ranks) {
            env_plan_fail(p, GPUL_EINVAL,
                          "node %u: %u ranks from %u on, not from %llu on", i,
                          w->rank_counts[i], w->first_ranks[i],
                          (unsigned long long)ranks);
        }
        ranks += w->rank_counts[i];
        check_address(p, i);
        check_ports(p, i);
    }
    if (ranks != w->world_size) {
        env_plan_fail(p, GPUL_EINVAL, "the nodes have %llu ranks, not %u",
                      (unsigned long long)ranks, w->world_size);
    }
}

static void check_world(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    if (w->node_count == 0 || p->in->node.node_rank >= w->node_count) {
        env_plan_fail(p, GPUL_EINVAL, "there is no node %u among %u",
                      p->in->node.node_rank, w->node_count);
    }
    if (w->job_id == NULL || w->job_id[0] == 0) {
        env_plan_fail(p, GPUL_EINVAL, "the job id is empty");
    }
    if (p->in->node.host_node_index >= p->in->node.host_node_count) {
        env_plan_fail(p, GPUL_EINVAL, "there is no node %u among %u on a host",
                      p->in->node.host_node_index, p->in->node.host_node_count);
    }
    struct gpul_error err = {0};
    int rc = gpul_rolemap_check(&w->roles, &err);
    if (rc != 0) {
        env_plan_fail(p, rc, "--roles: %s", err.text);
    }
    uint32_t roles = gpul_rolemap_total(&w->roles);
    if (roles != w->world_size) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--roles names %u rank%s, but there are %u: make the "
                      "counts add up to the ranks",
                      roles, gpul_plural(roles), w->world_size);
    }
    if (p->status == 0) {
        check_nodes(p);
    }
}

static void check_user(struct env_plan *p)
{
    for (size_t i = 0; i < p->in->user_count; i++) {
        const struct env_variable *v = &p->in->user[i];
        if (v->name[0] == 0 || strchr(v->name, '=') != NULL) {
            env_plan_fail(p, GPUL_EINVAL, "-x: \"%.64s\" is not a name",
                          v->name);
            continue;
        }
        size_t n = strlen(v->name) + strlen(v->value) + sizeof("=");
        if (n > STRING_BYTES_MAX) {
            env_plan_fail(p, GPUL_ELIMIT,
                          "-x %.64s: %zu bytes, over the %d that Linux allows "
                          "for one variable",
                          v->name, n, STRING_BYTES_MAX);
        }
    }
}

void env_check(struct env_plan *p)
{
    check_world(p);
    check_user(p);
    if (p->in->tf_config == ENV_TF_FILE && p->in->tf_config_dir == NULL) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--tf-config=file: no folder for the files");
    }
}
