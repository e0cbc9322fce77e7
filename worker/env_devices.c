/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA_VISIBLE_DEVICES: left alone, the node's share where several nodes
 * share a host, or one device for each rank. A share is taken from what is
 * visible here, by the names it is visible under; nothing is invented where a
 * scheduler has restricted the devices.
 */
#include <string.h>

#include "common/units.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

#define NAME "CUDA_VISIBLE_DEVICES"

static char *put_device(char *out, const struct env_plan *p,
                        uint32_t local_rank)
{
    return put_text(out, p->rank_devices[local_rank]);
}

static size_t longest(const char *const *devices, uint32_t count)
{
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t n = strlen(devices[i]);
        most = n > most ? n : most;
    }
    return most;
}

static const char *join(struct env_plan *p, const char *const *devices,
                        uint32_t count)
{
    char *text = env_plan_alloc(p, (longest(devices, count) + 1) * count + 1);
    char *out = text;
    for (uint32_t i = 0; text != NULL && i < count; i++) {
        out = put_text(out, i > 0 ? "," : "");
        out = put_text(out, devices[i]);
    }
    return text;
}

/* The k-th of the nodes on this host takes the k-th equal part. */
static void share_by_node(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    uint32_t share = n->device_count / n->host_node_count;
    if (n->host_node_count == 1) {
        p->visible_count = n->device_count;
        return;
    }
    p->visible_count = share;
    env_claim(
        p, (struct env_claim){
               .name = NAME,
               .rule = "this node's share of the host's devices",
               .value = join(p, n->devices + share * n->host_node_index, share),
               .strength = ENV_IDENTITY,
               .is_per_node = true,
           });
}

static void share_if_even(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    if (n->device_count == 0) {
        return;
    }
    if (n->device_count % n->host_node_count == 0) {
        share_by_node(p);
        return;
    }
    env_plan_note(
        p,
        "the devices of this host (%u) cannot be shared out evenly to "
        "its %u nodes: every rank sees all of them",
        n->device_count, n->host_node_count);
}

static void share_by_rank(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    uint32_t first = n->host_node_index * p->rank_count;
    p->rank_devices = n->devices + first;
    p->visible_count = 1;
    env_claim(p, (struct env_claim){
                     .name = NAME,
                     .rule = "--devices=rank: one device for each rank",
                     .put = put_device,
                     .bytes_max = longest(n->devices, n->device_count),
                     .strength = ENV_IDENTITY,
                 });
    if (p->rank_count > 1) {
        env_plan_note(p, "--devices=rank: each rank sees one device, as number "
                         "0; set_device(LOCAL_RANK) fails in the command, "
                         "set_device(0) is right");
    }
}

static void check_and_share_by_rank(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    uint32_t wanted = n->host_node_count * p->rank_count;
    if (n->host_node_count > 1 && n->host_rank_count != wanted) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--devices=rank: the %u nodes on the host of %s have "
                      "unequal numbers of ranks; use --devices=leave",
                      n->host_node_count, n->node_name);
    } else if (n->device_count < wanted) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--devices=rank: the host of %s has %u rank%s and %u "
                      "visible device%s; ask for fewer ranks or use "
                      "--devices=leave",
                      n->node_name, wanted, gpul_plural(wanted),
                      n->device_count, gpul_plural(n->device_count));
    } else {
        share_by_rank(p);
    }
}

static void check_and_share_by_node(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    if (n->device_count % n->host_node_count != 0) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--devices=node: the host of %s has %u nodes and %u "
                      "visible device%s, which gives them unequal numbers; use "
                      "--devices=leave",
                      n->node_name, n->host_node_count, n->device_count,
                      gpul_plural(n->device_count));
    } else if (n->device_count == 0) {
        env_plan_fail(p, GPUL_EINVAL,
                      "--devices=node: the host of %s has no visible device; "
                      "use --devices=leave",
                      n->node_name);
    } else {
        share_by_node(p);
    }
}

void env_devices_add(struct env_plan *p)
{
    const struct env_node *n = &p->in->node;
    if (p->status != 0 || env_plan_user(p, NAME) != NULL) {
        return;
    }
    switch (p->in->devices) {
    case ENV_DEVICES_AUTO:
        share_if_even(p);
        break;
    case ENV_DEVICES_LEAVE:
        p->visible_count = n->host_node_count == 1 ? n->device_count : 0;
        break;
    case ENV_DEVICES_RANK:
        check_and_share_by_rank(p);
        break;
    case ENV_DEVICES_NODE:
        check_and_share_by_node(p);
        break;
    }
}
