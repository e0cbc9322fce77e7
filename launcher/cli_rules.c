/* SPDX-License-Identifier: Apache-2.0
 *
 * What no single option can know.
 */
#include <inttypes.h>

#include "common/units.h"
#include "gpulaunch.pb-c.h"
#include "launcher/cli.h"
#include "launcher/cli_value.h"
#include "proto/limits.h"

static const struct plan_setting *setting(const struct plan *plan,
                                          enum option option)
{
    return &plan->settings[option];
}

/* Two options that exclude each other: the stronger source wins, equal
 * sources are a contradiction. */
static int judge_pair(bool *second_wins, const struct plan *plan,
                      enum option first, enum option second,
                      struct gpul_error *err)
{
    const struct plan_setting *a = setting(plan, first);
    const struct plan_setting *b = setting(plan, second);
    if (a->source != GPUL_SOURCE_NONE && a->source == b->source) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s and %s contradict each other; give one of them",
                         a->spelling, b->spelling);
    }
    *second_wins = b->source > a->source;
    return 0;
}

static int apply_label(struct plan *plan, struct gpul_error *err)
{
    bool is_plain = false;
    int rc = judge_pair(&is_plain, plan, OPTION_LABEL, OPTION_NO_LABEL, err);
    if (rc != 0) {
        return rc;
    }
    if (is_plain) {
        plan->label = PLAN_CHOICE_NO;
    } else if (setting(plan, OPTION_LABEL)->source != GPUL_SOURCE_NONE) {
        plan->label = PLAN_CHOICE_YES;
    }
    return 0;
}

/* A secret that would not be used, or a channel that would use it. */
int cli_rules_secrecy(struct plan *plan, struct gpul_error *err)
{
    bool is_open = false;
    int rc =
        judge_pair(&is_open, plan, OPTION_SECRET_FILE, OPTION_INSECURE, err);
    if (rc != 0) {
        return rc;
    }
    plan->is_insecure = is_open;
    if (is_open) {
        plan->secret_file = NULL;
    }
    return 0;
}

/* A fold without labels would hide who spoke. */
static int check_fold(const struct plan *plan, struct gpul_error *err)
{
    if (plan->fold == PLAN_CHOICE_YES && plan->label == PLAN_CHOICE_NO) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s always and %s contradict each other: folded lines "
                         "list their ranks; give one of them",
                         setting(plan, OPTION_FOLD)->spelling,
                         setting(plan, OPTION_NO_LABEL)->spelling);
    }
    return 0;
}

static int check_shown_ranks(const struct plan *plan, struct gpul_error *err)
{
    uint32_t world = plan_world_size(plan);
    if (!plan->has_shown_ranks || world == 0 ||
        gpul_rankset_size_below(&plan->shown_ranks, world) ==
            gpul_rankset_size(&plan->shown_ranks)) {
        return 0;
    }
    const struct plan_setting *ranks = setting(plan, OPTION_RANKS);
    return gpul_fail(err, GPUL_EINVAL,
                     "%s %.80s: the job has %" PRIu32 " ranks, 0 to %" PRIu32,
                     ranks->spelling, ranks->value, world, world - 1);
}

int cli_rules_loudness(struct plan *plan, struct gpul_error *err)
{
    bool is_quiet = false;
    int rc = judge_pair(&is_quiet, plan, OPTION_VERBOSE, OPTION_QUIET, err);
    if (rc != 0) {
        return rc;
    }
    if (is_quiet) {
        plan->is_verbose = false;
    } else if (plan->is_verbose) {
        plan->is_quiet = false;
    }
    return 0;
}

/* --roles without --nodes: as many nodes as the roles fill. */
static int nodes_from_roles(struct plan *plan, struct gpul_error *err)
{
    if (plan->per_node != PLAN_PER_NODE_COUNT) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--roles without --nodes needs a number of ranks "
                         "per node; give --nodes N or --per-node K");
    }
    uint32_t total = gpul_rolemap_total(&plan->roles);
    if (total % plan->ranks_per_node != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--roles names %" PRIu32 " rank%s, which cannot fill "
                         "nodes of %" PRIu32 " ranks; change --roles or "
                         "--per-node",
                         total, gpul_plural(total), plan->ranks_per_node);
    }
    plan->node_count = total / plan->ranks_per_node;
    return 0;
}

static int apply_roles(struct plan *plan, struct gpul_error *err)
{
    if (!plan->has_roles) {
        if (plan->has_tf_evaluator) {
            return gpul_fail(err, GPUL_EINVAL,
                             "--tf-evaluator own needs an evaluator; add "
                             "evaluator=1 to --roles");
        }
        return 0;
    }
    if (plan->has_tf_evaluator &&
        plan->roles.counts[GPUL_ROLE_EVALUATOR] == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--tf-evaluator own needs an evaluator; add "
                         "evaluator=1 to --roles");
    }
    if (plan->is_local &&
        setting(plan, OPTION_NODES)->source == GPUL_SOURCE_NONE) {
        return nodes_from_roles(plan, err);
    }
    uint32_t world = plan_world_size(plan);
    uint32_t total = gpul_rolemap_total(&plan->roles);
    if (world != 0 && total != world) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--roles names %" PRIu32 " rank%s, but %" PRIu32
                         " node%s x %" PRIu32 " per node make %" PRIu32
                         "; change one of them",
                         total, gpul_plural(total), plan->node_count,
                         gpul_plural(plan->node_count), plan->ranks_per_node,
                         world);
    }
    return 0;
}

static int check_size(const struct plan *plan, struct gpul_error *err)
{
    if (plan->is_local && plan->node_count > CLI_LOCAL_NODES_MAX) {
        const struct plan_setting *nodes = setting(plan, OPTION_NODES);
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %" PRIu32 " nodes; at most %d local nodes are "
                         "possible; raise --per-node",
                         nodes->source == GPUL_SOURCE_NONE ? "--roles needs"
                                                           : "--nodes asks for",
                         plan->node_count, CLI_LOCAL_NODES_MAX);
    }
    uint64_t world = (uint64_t)plan->node_count * plan->ranks_per_node;
    if (world > GPUL_RANKS_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%" PRIu32 " node%s x %" PRIu32 " per node make "
                         "%" PRIu64 " ranks; at most %u are possible",
                         plan->node_count, gpul_plural(plan->node_count),
                         plan->ranks_per_node, world, GPUL_RANKS_MAX);
    }
    return 0;
}

enum { ORPHAN_TIMEOUT_MS_MIN = 1000 };

static int check_times(const struct plan *plan, struct gpul_error *err)
{
    if (plan->join_timeout_ms == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: 0 leaves no time to join; give a time such as "
                         "30s",
                         setting(plan, OPTION_JOIN_TIMEOUT)->spelling);
    }
    if (plan->orphan_timeout_ms < ORPHAN_TIMEOUT_MS_MIN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: leaves no time to reach the coordinator again; "
                         "give 1s or more",
                         setting(plan, OPTION_ORPHAN_TIMEOUT)->spelling);
    }
    if (plan_has(plan, OPTION_SELF_TEST_TIMEOUT) &&
        plan->self_test_timeout_ms == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: 0 leaves no time to test; give a time such as "
                         "30s, or --self-test off",
                         setting(plan, OPTION_SELF_TEST_TIMEOUT)->spelling);
    }
    return 0;
}

static int check_signal(const struct plan *plan, struct gpul_error *err)
{
    const struct plan_setting *signal = setting(plan, OPTION_SIGNAL);
    if (plan->warning_signal == 0) {
        return 0;
    }
    if (plan->timeout_ms == 0 && plan->allocation.end_s > 0) {
        return 0; /* cli_limit has the limit */
    }
    if (plan->timeout_ms == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: it is sent before the time limit, and there "
                         "is none; add --timeout TIME",
                         signal->spelling, signal->value);
    }
    if (plan->warning_ms >= plan->timeout_ms) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: that is not within the time limit, %s %s; "
                         "give a time after the @ that is shorter",
                         signal->spelling, signal->value,
                         setting(plan, OPTION_TIMEOUT)->spelling,
                         setting(plan, OPTION_TIMEOUT)->value);
    }
    return 0;
}

static int check_stdin(const struct plan *plan, struct gpul_error *err)
{
    uint32_t world = plan_world_size(plan);
    if (plan->input == PLAN_INPUT_RANK && world != 0 &&
        plan->input_rank >= world) {
        const struct plan_setting *input = setting(plan, OPTION_STDIN);
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %" PRIu32 ": the job has %" PRIu32
                         " ranks, 0 to %" PRIu32,
                         input->spelling, plan->input_rank, world, world - 1);
    }
    return 0;
}

static int check_hang(const struct plan *plan, struct gpul_error *err)
{
    if (plan->hang_stops_job && plan->hang_watch == GPUL__HANG__WATCH__OFF) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s stop: nothing is found to hang with %s off; give "
                         "a time",
                         setting(plan, OPTION_ON_HANG)->spelling,
                         setting(plan, OPTION_HANG_TIMEOUT)->spelling);
    }
    return 0;
}

/* Options that have nothing to do where no node is reached. */
static int check_reaching(const struct plan *plan, struct gpul_error *err)
{
    static const enum option options[] = {
        OPTION_ADDRESS, OPTION_ADVERTISE, OPTION_WORKER_PATH,
        OPTION_COPY_WORKER, OPTION_SSH_COMMAND};
    for (size_t i = 0; plan->is_local && i < 5; i++) {
        const struct plan_setting *s = setting(plan, options[i]);
        if (s->source == GPUL_SOURCE_FLAG) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s is for nodes that are reached by ssh; leave "
                             "it out with %s",
                             s->spelling,
                             setting(plan, OPTION_LOCAL)->spelling);
        }
    }
    if (plan->copies_worker && plan->worker_path != NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s and %s contradict each other; give one of them",
                         setting(plan, OPTION_COPY_WORKER)->spelling,
                         setting(plan, OPTION_WORKER_PATH)->spelling);
    }
    return 0;
}

/* What leads here leads to one port, which has to be known beforehand. */
static int apply_advertised(struct plan *plan, struct gpul_error *err)
{
    const struct plan_setting *s = setting(plan, OPTION_ADVERTISE);
    if (s->source == GPUL_SOURCE_NONE || plan->is_local) {
        return 0;
    }
    if (plan->port == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %.80s: it leads to one port of this machine; name "
                         "that with --port",
                         s->spelling, s->value);
    }
    int rc = cli_hostport(&plan->advertised, s->value, plan->port, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", s->spelling);
}

static int check_rank(const struct plan *plan, struct gpul_error *err)
{
    const struct plan_setting *rank = setting(plan, OPTION_RANK);
    if (plan->verb != PLAN_ENV) {
        if (rank->source == GPUL_SOURCE_FLAG) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s belongs to gpulaunch env; write gpulaunch "
                             "env %s %s ...",
                             rank->spelling, rank->spelling, rank->value);
        }
        return 0;
    }
    if (!plan->has_rank) {
        return gpul_fail(err, GPUL_EINVAL, "env: of which rank? add --rank R");
    }
    uint32_t world = plan_world_size(plan);
    if (world == 1 && plan->rank >= world) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %" PRIu32 ": the job has one rank, 0",
                         rank->spelling, plan->rank);
    }
    if (world != 0 && plan->rank >= world) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %" PRIu32 ": the job has %" PRIu32
                         " ranks, 0 to %" PRIu32,
                         rank->spelling, plan->rank, world, world - 1);
    }
    return 0;
}

static int check_command(const struct plan *plan, struct gpul_error *err)
{
    if (plan->command_count == 0 && plan_is_check(plan)) {
        return 0;
    }
    if (plan->command_count == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no command to run; put it after --, as in: "
                         "gpulaunch --local --nodes 2 -- python train.py");
    }
    if (plan->command_count > GPUL_ARGUMENTS_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the command has %zu arguments; at most %u are "
                         "possible",
                         plan->command_count, GPUL_ARGUMENTS_MAX);
    }
    if (plan->command[0][0] == '\0') {
        return gpul_fail(err, GPUL_EINVAL,
                         "the command after -- is empty; name a program");
    }
    return 0;
}

int cli_rules_apply(struct plan *plan, struct gpul_error *err)
{
    int rc = apply_label(plan, err);
    if (rc == 0) {
        rc = cli_rules_loudness(plan, err);
    }
    if (rc == 0) {
        rc = cli_rules_secrecy(plan, err);
    }
    if (rc == 0) {
        rc = cli_nodes_apply(plan, err);
    }
    if (rc == 0) {
        rc = check_reaching(plan, err);
    }
    if (rc == 0) {
        rc = apply_advertised(plan, err);
    }
    if (rc == 0) {
        rc = apply_roles(plan, err);
    }
    if (rc == 0) {
        rc = check_size(plan, err);
    }
    if (rc == 0) {
        rc = check_fold(plan, err);
    }
    if (rc == 0) {
        rc = check_shown_ranks(plan, err);
    }
    if (rc == 0) {
        rc = check_times(plan, err);
    }
    if (rc == 0) {
        rc = check_signal(plan, err);
    }
    if (rc == 0) {
        rc = check_stdin(plan, err);
    }
    if (rc == 0) {
        rc = check_hang(plan, err);
    }
    if (rc == 0) {
        rc = cli_selftest_check(plan, err);
    }
    if (rc == 0) {
        rc = check_rank(plan, err);
    }
    if (rc == 0) {
        rc = check_command(plan, err);
    }
    if (rc == 0) {
        rc = cli_nodes_name(plan, err);
    }
    return rc;
}
