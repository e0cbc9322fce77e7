/* SPDX-License-Identifier: Apache-2.0
 *
 * --explain of a run: every setting, its value, and who had the last word.
 */
#include <inttypes.h>

#include "launcher/cli.h"
#include "launcher/cli_value.h"

/* The secret itself stands in the place of its file. */
static bool comes_from_variable(const struct plan *plan, enum option option)
{
    return option == OPTION_SECRET_FILE && plan->secret_text != NULL &&
           plan->secret_file == NULL && !plan->is_insecure;
}

/* Is the number no default, but that of the nodes or roles? */
static bool follows(const struct plan *plan, enum option option)
{
    if (plan->settings[option].source != GPUL_SOURCE_NONE) {
        return false;
    }
    if (option == OPTION_TIMEOUT) {
        return plan->has_limit;
    }
    if (option == OPTION_NODES) {
        return plan->has_roles || plan->nodes.where != NULL;
    }
    return option == OPTION_PER_NODE && plan->nodes.where != NULL &&
           plan->ranks_per_node > 1;
}

static void append_value(struct gpul_buf *out, const struct plan *plan,
                         enum option option, const struct gpul_option *entry)
{
    const struct plan_setting *s = &plan->settings[option];
    const char *fallback = option_default(option);
    if (option == OPTION_NODES && follows(plan, option)) {
        gpul_buf_appendf(out, "%" PRIu32, plan->node_count);
    } else if (option == OPTION_PER_NODE && follows(plan, option)) {
        gpul_buf_appendf(out, "%" PRIu32, plan->ranks_per_node);
    } else if (option == OPTION_TIMEOUT && follows(plan, option)) {
        gpul_buf_appendf(out, "%" PRIu32 "s", plan->timeout_ms / 1000);
    } else if (comes_from_variable(plan, option)) {
        gpul_buf_append_text(out, "not shown");
    } else if (s->source == GPUL_SOURCE_NONE) {
        gpul_buf_append_text(out, fallback != NULL       ? fallback
                                  : entry->value == NULL ? "no"
                                                         : "-");
    } else {
        gpul_buf_append_text(out, s->value != NULL ? s->value : "yes");
    }
}

static void append_source(struct gpul_buf *out, const struct plan *plan,
                          enum option option)
{
    const struct plan_setting *s = &plan->settings[option];
    if (comes_from_variable(plan, option)) {
        gpul_buf_append_text(out, "(environment GPULAUNCH_SECRET)");
    } else if (s->source == GPUL_SOURCE_FLAG) {
        gpul_buf_appendf(out, "(flag %s)", s->spelling);
    } else if (s->source == GPUL_SOURCE_ENVIRONMENT) {
        gpul_buf_appendf(out, "(environment %s)", s->spelling);
    } else if (option == OPTION_TIMEOUT && follows(plan, option)) {
        gpul_buf_append_text(out, "(follows from SLURM_JOB_END_TIME)");
    } else if (follows(plan, option)) {
        gpul_buf_appendf(out, "(follows from %s)",
                         plan->is_local ? "--roles" : plan->nodes.where);
    } else {
        gpul_buf_append_text(out, "(default)");
    }
}

/* -x may be given many times: one line each, in the order of the plan. */
static void append_variables(struct gpul_buf *out, const struct plan *plan)
{
    for (size_t i = 0; i < plan->variable_count; i++) {
        const struct plan_variable *v = &plan->variables[i];
        gpul_buf_appendf(out, "  %-17s %s=%s (%s)\n", "env", v->name, v->value,
                         v->source == GPUL_SOURCE_FLAG ? "flag -x"
                                                       : "environment "
                                                         "GPULAUNCH_ENV");
    }
}

int cli_explain(struct gpul_buf *out, const struct plan *plan)
{
    size_t count = 0;
    const struct gpul_option *table = option_table(&count);
    gpul_buf_append_text(out, "settings\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bool is_of_verb = cli_verb_has(plan->verb, (enum option)i);
        if (i == OPTION_HELP || i == OPTION_VERSION || !is_of_verb) {
            continue;
        }
        if (plan->verb == PLAN_JOIN && i == OPTION_PORT && plan->port == 0) {
            continue; /* it is behind the address */
        }
        if (i == OPTION_ENV && plan->variable_count > 0) {
            append_variables(out, plan);
            continue;
        }
        gpul_buf_appendf(out, "  %-17s ", table[i].name);
        append_value(out, plan, (enum option)i, &table[i]);
        gpul_buf_append_text(out, " ");
        append_source(out, plan, (enum option)i);
        gpul_buf_append_text(out, "\n");
    }
    if (plan->nodes.count > 0 && !plan->is_local) {
        gpul_buf_append_text(out, "nodes\n  ");
        nodes_describe(out, &plan->nodes);
        gpul_buf_append_text(out, "\n");
    }
    if (plan->is_open) {
        gpul_buf_appendf(out,
                         "nodes\n  %" PRIu32 " that join, in the natural "
                         "order of their names\n",
                         plan->node_count);
    }
    return out->is_failed ? GPUL_ENOMEM : 0;
}
