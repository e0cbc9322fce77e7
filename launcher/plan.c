/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan.h"

#include <stdlib.h>

void plan_release(struct plan *plan)
{
    for (size_t i = 0; i < plan->variable_count; i++) {
        free(plan->variables[i].name);
    }
    free(plan->variables);
    plan->variables = NULL;
    plan->variable_count = 0;
    for (size_t i = 0; i < plan->handed_on_count; i++) {
        free(plan->handed_on[i]);
    }
    free(plan->handed_on);
    plan->handed_on = NULL;
    plan->handed_on_count = 0;
    gpul_rankset_release(&plan->shown_ranks);
    nodes_release(&plan->nodes);
}

bool plan_is_check(const struct plan *plan)
{
    return plan->verb == PLAN_CHECK || plan->verb == PLAN_DOCTOR;
}

bool plan_has(const struct plan *plan, enum option option)
{
    return plan->settings[option].source != GPUL_SOURCE_NONE;
}

uint32_t plan_world_size(const struct plan *plan)
{
    if (plan->per_node != PLAN_PER_NODE_COUNT) {
        return 0;
    }
    return plan->node_count * plan->ranks_per_node;
}
