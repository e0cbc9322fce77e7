/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes: --local, or a list, or a file, or a scheduler's job that names
 * them, or with a number only those that join; never a silent "this machine
 * only".
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launcher/cli.h"
#include "launcher/cli_value.h"
#include "proto/limits.h"

enum { RANGE_BYTES = 32 };

static const enum option places[] = {
    OPTION_LOCAL,
    OPTION_HOSTS,
    OPTION_NODELIST,
    OPTION_HOSTFILE,
};
enum { PLACE_COUNT = sizeof(places) / sizeof(places[0]) };

/* The strongest word on the place, OPTION_COUNT: there is none. Two that are
 * as strong contradict each other. */
static int find_place(enum option *place, const struct plan *plan,
                      struct gpul_error *err)
{
    *place = OPTION_COUNT;
    enum gpul_option_source strongest = GPUL_SOURCE_NONE;
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        const struct plan_setting *s = &plan->settings[places[i]];
        if (places[i] == OPTION_LOCAL && !plan->is_local) {
            continue; /* GPULAUNCH_LOCAL=0 */
        }
        if (s->source != GPUL_SOURCE_NONE && s->source == strongest) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s and %s contradict each other; give one of "
                             "them",
                             plan->settings[*place].spelling, s->spelling);
        }
        if (s->source > strongest) {
            strongest = s->source;
            *place = places[i];
        }
    }
    return 0;
}

static int refuse_nothing(struct gpul_error *err)
{
    return gpul_fail(err, GPUL_EINVAL,
                     "no nodes to run on: name them with --hosts or "
                     "--hostfile, start them on this machine with --local, or "
                     "wait for them to join with --nodes N");
}

/* These name their nodes, which ssh reaches. */
static bool has_ssh(enum nodes_source source)
{
    return source == NODES_PBS || source == NODES_LSF ||
           source == NODES_GRID_ENGINE;
}

/* Jobs of these count their nodes at best, and have ways of their own to start
 * programs on them. */
static int refuse_foreign(const struct allocation *a, struct gpul_error *err)
{
    bool has_id = a->job_id[0] != '\0';
    return gpul_fail(err, GPUL_EINVAL,
                     "this is a job of %s%s%.60s%s, which does not name its "
                     "nodes; wait for them to join with --nodes N, name them "
                     "with --hosts or --hostfile to reach them by ssh, or use "
                     "--local",
                     nodes_scheduler(a->source), has_id ? " (" : "", a->job_id,
                     has_id ? ")" : "");
}

/* Of a step that has started this once on each node, those of the step. */
static int find_slurm(struct plan *plan, gpul_getenv_fn getenv,
                      void *getenv_arg, struct gpul_error *err)
{
    int rc = sruntask_find(&plan->sruntask, &plan->allocation, getenv,
                           getenv_arg, err);
    if (rc == 0) {
        rc = cli_nodes_read(plan, NULL, 0, err);
    }
    return rc != 0 ? rc : sruntask_settle(&plan->sruntask, &plan->nodes, err);
}

static int find_allocation(struct plan *plan, gpul_getenv_fn getenv,
                           void *getenv_arg, struct gpul_error *err)
{
    struct allocation *a = &plan->allocation;
    int rc = allocation_find(a, getenv, getenv_arg, err);
    if (rc != 0) {
        return rc;
    }
    if (a->source == NODES_NONE) {
        plan->is_open = plan_has(plan, OPTION_NODES);
        return plan->is_open ? 0 : refuse_nothing(err);
    }
    if (a->source == NODES_SLURM) {
        return find_slurm(plan, getenv, getenv_arg, err);
    }
    if (!has_ssh(a->source)) {
        plan->is_open = plan_has(plan, OPTION_NODES);
        return plan->is_open ? 0 : refuse_foreign(a, err);
    }
    plan->nodes_file = allocation_file(a);
    return plan->nodes_file != NULL ? 0 : cli_nodes_read(plan, NULL, 0, err);
}

int cli_nodes_find(struct plan *plan, gpul_getenv_fn getenv, void *getenv_arg,
                   struct gpul_error *err)
{
    enum option place;
    int rc = find_place(&place, plan, err);
    if (rc != 0) {
        return rc;
    }
    plan->is_local = place == OPTION_LOCAL;
    plan->hosts_option = place;
    switch (place) {
    case OPTION_LOCAL:
        return 0;
    case OPTION_HOSTS:
    case OPTION_NODELIST:
        return cli_nodes_read(plan, NULL, 0, err);
    case OPTION_HOSTFILE:
        plan->nodes_file = plan->settings[place].value;
        return 0;
    default:
        return find_allocation(plan, getenv, getenv_arg, err);
    }
}

int cli_nodes_read(struct plan *plan, const char *file, size_t bytes,
                   struct gpul_error *err)
{
    const struct plan_setting *s = plan->hosts_option < OPTION_COUNT
                                       ? &plan->settings[plan->hosts_option]
                                       : NULL;
    switch (plan->hosts_option) {
    case OPTION_HOSTS:
        return nodes_parse_list(&plan->nodes, NODES_LIST, s->value, s->spelling,
                                err);
    case OPTION_NODELIST:
        return nodes_parse_list(&plan->nodes, NODES_SET, s->value, s->spelling,
                                err);
    case OPTION_HOSTFILE:
        return nodes_parse_file(&plan->nodes, file, bytes, s->value, err);
    default:
        return allocation_nodes(&plan->nodes, &plan->allocation, file, bytes,
                                err);
    }
}

/* The slots of a list are the ranks on each node, unless the user says it by
 * --per-node. */
static int apply_slots(struct plan *plan, struct gpul_error *err)
{
    uint32_t slots;
    if (!plan_has(plan, OPTION_PER_NODE)) {
        int rc = nodes_slots(&plan->nodes, &slots, err);
        if (rc != 0) {
            return rc;
        }
        if (slots > GPUL_RANKS_PER_NODE_MAX) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s: %" PRIu32 " slots; at most %u ranks are "
                             "possible on a node; give --per-node K",
                             plan->nodes.where, slots, GPUL_RANKS_PER_NODE_MAX);
        }
        plan->ranks_per_node = slots > 0 ? slots : plan->ranks_per_node;
    }
    return plan->per_node == PLAN_PER_NODE_COUNT
               ? nodes_check_ranks(&plan->nodes, plan->ranks_per_node, err)
               : 0;
}

int cli_nodes_apply(struct plan *plan, struct gpul_error *err)
{
    if (plan->is_local || plan->is_open) {
        return 0;
    }
    if (plan_has(plan, OPTION_NODES)) {
        if (plan->sruntask.count > plan->node_count) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s %" PRIu32 ": srun has started gpulaunch on "
                             "%" PRIu32 " nodes, and all of them are in the "
                             "job; start fewer, by srun --nodes",
                             plan->settings[OPTION_NODES].spelling,
                             plan->node_count, plan->sruntask.count);
        }
        int rc = nodes_take(&plan->nodes, plan->node_count, err);
        if (rc != 0) {
            return gpul_wrap(err, rc, "%s",
                             plan->settings[OPTION_NODES].spelling);
        }
    }
    plan->node_count = plan->nodes.count;
    return apply_slots(plan, err);
}

int cli_nodes_name(struct plan *plan, struct gpul_error *err)
{
    char range[RANGE_BYTES];
    if (!plan->is_local) {
        return 0;
    }
    snprintf(range, sizeof(range), "local-[0-%" PRIu32 "]",
             plan->node_count - 1);
    return nodes_parse_list(&plan->nodes, NODES_LOCAL, range, "--local", err);
}
