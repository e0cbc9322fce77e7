/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "proto/validate.h"

enum {
    /* So many of the longest fit an expression. */
    NAMES_A_PIECE = GPUL_HOSTLIST_BYTES_MAX / (GPUL_NAME_BYTES_MAX + 1),
    LISTEN_DEADLINE_MS = 30000,
    QUICK_DEADLINE_MS = 60000,
    FULL_DEADLINE_MS = 600000,
    SURVEY_DEADLINE_MS = 60000,
};

/* Everything a Job points to, in one place on the heap. */
struct parts {
    Gpul__Job job;
    Gpul__SelfTest self_test;
    Gpul__Sweep sweep;
    Gpul__Hang hang;
    Gpul__Check check;
    Gpul__Command command;
    Gpul__Environment environment;
    Gpul__InputTarget input_target;
    Gpul__Role roles[GPUL_ROLE_COUNT];
    Gpul__Role *role_list[GPUL_ROLE_COUNT];
    struct gpul_buf *names;
    char **name_list;
    uint32_t piece_count;
    ProtobufCBinaryData *arguments;
    Gpul__Variable *variables;
    Gpul__Variable **variable_list;
};

/* The schema's structs hold pointers to what they may not change. */
static char *borrow(const char *text)
{
    union {
        const char *text;
        char *borrowed;
    } u = {text};
    return u.borrowed;
}

static ProtobufCBinaryData borrow_bytes(const char *text)
{
    union {
        const char *text;
        uint8_t *bytes;
    } u = {text};
    return (ProtobufCBinaryData){strlen(text), u.bytes};
}

static void fill_sweep(Gpul__Sweep *sweep, const struct plan *plan)
{
    const struct plan_sweep *asked = &plan->sweep;
    gpul__sweep__init(sweep);
    sweep->bytes_min = asked->bytes_min;
    sweep->bytes_max = asked->bytes_max;
    sweep->factor = asked->factor;
    sweep->iterations = asked->iterations;
    if (plan_has(plan, OPTION_WARMUP_ITERS)) {
        sweep->warmup = asked->warmup + 1;
    }
    if (plan_has(plan, OPTION_CHECK)) {
        sweep->check = asked->check + 1;
    }
    sweep->busbw_min_gbps = asked->busbw_min_gbps;
}

/* Sizes and counts of the user's own may take as long as all of ours. */
static uint32_t run_deadline_ms(const struct plan *plan)
{
    bool is_long = plan->self_test == PLAN_SELF_TEST_FULL;
    for (int i = OPTION_MINBYTES; i <= OPTION_CHECK; i++) {
        is_long |= plan_has(plan, (enum option)i);
    }
    return is_long ? FULL_DEADLINE_MS : QUICK_DEADLINE_MS;
}

static void fill_self_test(struct parts *p, const struct plan *plan,
                           const struct job_message *m)
{
    uint32_t own_ms = plan->self_test_timeout_ms;
    gpul__self_test__init(&p->self_test);
    if ((plan->verb == PLAN_RUN && !plan->is_dry_run) || plan_is_check(plan)) {
        p->self_test.level = (Gpul__SelfTest__Level)plan->self_test;
    }
    p->self_test.listen_deadline_ms = own_ms > 0 ? own_ms : LISTEN_DEADLINE_MS;
    p->self_test.run_deadline_ms = own_ms > 0 ? own_ms : run_deadline_ms(plan);
    p->self_test.backend = (Gpul__SelfTest__Backend)plan->backend;
    p->self_test.nccl_library = borrow(m->nccl_library);
    fill_sweep(&p->sweep, plan);
    p->self_test.sweep = &p->sweep;
    p->job.self_test = &p->self_test;
}

/* A check without a command looks for the libraries of the GPUs where most
 * training would: python3 is never started. */
static int fill_command(struct parts *p, const struct plan *plan,
                        const char *working_directory)
{
    gpul__command__init(&p->command);
    p->arguments = calloc(plan->command_count + 1, sizeof(*p->arguments));
    if (p->arguments == NULL) {
        return GPUL_ENOMEM;
    }
    p->arguments[0] = borrow_bytes("python3");
    for (size_t i = 0; i < plan->command_count; i++) {
        p->arguments[i] = borrow_bytes(plan->command[i]);
    }
    p->command.n_arguments = plan->command_count > 0 ? plan->command_count : 1;
    p->command.arguments = p->arguments;
    p->command.working_directory = borrow_bytes(working_directory);
    p->job.command = &p->command;
    return 0;
}

static int fill_environment(struct parts *p, const struct plan *plan,
                            const struct job_message *m)
{
    gpul__environment__init(&p->environment);
    size_t count = plan->variable_count;
    p->variables = calloc(count + 1, sizeof(*p->variables));
    p->variable_list = calloc(count + 1, sizeof(*p->variable_list));
    if (p->variables == NULL || p->variable_list == NULL) {
        return GPUL_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        gpul__variable__init(&p->variables[i]);
        p->variables[i].name = borrow_bytes(plan->variables[i].name);
        p->variables[i].value = borrow_bytes(plan->variables[i].value);
        p->variable_list[i] = &p->variables[i];
    }
    p->environment.n_user = count;
    p->environment.user = p->variable_list;
    p->environment.tf_config = (Gpul__Environment__TfConfig)plan->tf_config;
    p->environment.tf_evaluator_in_cluster = plan->has_tf_evaluator;
    p->environment.devices = (Gpul__Environment__Devices)plan->devices;
    p->environment.emulates_slurm = plan->emulates_slurm;
    p->environment.nccl_socket_magic = m->nccl_magic;
    p->job.environment = &p->environment;
    return 0;
}

static void fill_roles(struct parts *p, const struct plan *plan)
{
    size_t count = 0;
    for (uint32_t i = 0; plan->has_roles && i < GPUL_ROLE_COUNT; i++) {
        if (plan->roles.counts[i] == 0) {
            continue;
        }
        gpul__role__init(&p->roles[count]);
        p->roles[count].name = borrow(gpul_role_name((enum gpul_role)i));
        p->roles[count].count = plan->roles.counts[i];
        p->role_list[count] = &p->roles[count];
        count++;
    }
    p->job.n_roles = count;
    p->job.roles = p->role_list;
}

/* In pieces, since one expression has a bound. */
static int fill_names(struct parts *p, const struct plan *plan)
{
    const struct nodes *nodes = &plan->nodes;
    uint32_t pieces = nodes->count / NAMES_A_PIECE + 1;
    p->names = calloc(pieces, sizeof(*p->names));
    p->name_list = calloc(pieces, sizeof(*p->name_list));
    if (p->names == NULL || p->name_list == NULL) {
        return GPUL_ENOMEM;
    }
    for (uint32_t first = 0; first < nodes->count; first += NAMES_A_PIECE) {
        uint32_t left = nodes->count - first;
        struct gpul_buf *piece = &p->names[p->piece_count];
        gpul_buf_init(piece, GPUL_HOSTLIST_BYTES_MAX);
        p->piece_count++;
        int rc = nodes_fold(piece, nodes, first,
                            left < NAMES_A_PIECE ? left : NAMES_A_PIECE);
        const char *text = rc == 0 ? gpul_buf_text(piece) : NULL;
        if (text == NULL) {
            return GPUL_ENOMEM;
        }
        p->name_list[p->piece_count - 1] = borrow(text);
    }
    p->job.n_node_names = p->piece_count;
    p->job.node_names = p->name_list;
    p->job.names_are_ordered = true;
    return 0;
}

static void fill_check(struct parts *p, const struct plan *plan)
{
    gpul__check__init(&p->check);
    p->check.is_strict = plan->is_strict;
    p->check.data_dir = borrow(plan->data_dir != NULL ? plan->data_dir : "");
    p->check.has_command = plan->command_count > 0;
    p->check.survey_deadline_ms = SURVEY_DEADLINE_MS;
    if (plan_is_check(plan)) {
        p->job.check = &p->check;
    }
}

static void fill_hang(struct parts *p, const struct plan *plan)
{
    gpul__hang__init(&p->hang);
    p->hang.watch = (Gpul__Hang__Watch)plan->hang_watch;
    p->hang.limit_ms = plan->hang_limit_ms;
    p->hang.stops_job = plan->hang_stops_job;
    p->job.hang = &p->hang;
}

static void fill_scalars(struct parts *p, const struct plan *plan,
                         const struct job_message *m)
{
    bool is_run = plan->verb == PLAN_RUN && !plan->is_dry_run;
    bool is_auto_one = plan->per_node == PLAN_PER_NODE_AUTO && !m->has_gpu;
    p->job.job_id = borrow(m->job_id);
    p->job.mode = is_run                ? GPUL__JOB__MODE__RUN
                  : plan_is_check(plan) ? GPUL__JOB__MODE__CHECK
                                        : GPUL__JOB__MODE__ENV;
    p->job.node_count = plan->node_count;
    p->job.ranks_per_node = is_auto_one ? 1 : plan->ranks_per_node;
    p->job.join_timeout_ms = plan->join_timeout_ms;
    p->job.timeout_ms = plan->timeout_ms;
    p->job.grace_ms = plan->grace_ms;
    p->job.orphan_timeout_ms = plan->orphan_timeout_ms;
    p->job.bind = (Gpul__Bind)plan->bind;
    p->job.interface = borrow(plan->interface != NULL ? plan->interface : "");
    p->job.report_rank = plan->rank;
    p->job.report_all_ranks = plan->verb == PLAN_RUN;
    p->job.log_dir = borrow(m->log_dir);
    p->job.forwards_output = is_run;
    p->job.keeps_logs = plan->log_dir != NULL;
    p->job.wants_metrics = plan->wants_metrics;
}

/* What goes to ranks that run. */
static void fill_input(struct parts *p, const struct plan *plan)
{
    gpul__input_target__init(&p->input_target);
    p->input_target.is_all = plan->input == PLAN_INPUT_ALL;
    p->input_target.rank = plan->input_rank;
    if (p->job.mode != GPUL__JOB__MODE__RUN) {
        return;
    }
    if (plan->input != PLAN_INPUT_NONE) {
        p->job.input_target = &p->input_target;
    }
    p->job.warning_signal = plan->warning_signal;
    p->job.warning_ms = plan->warning_ms;
}

static void release(struct parts *p)
{
    for (uint32_t i = 0; i < p->piece_count; i++) {
        gpul_buf_release(&p->names[i]);
    }
    free(p->names);
    free(p->name_list);
    free(p->arguments);
    free(p->variables);
    free(p->variable_list);
    free(p);
}

static int encode(struct gpul_buf *out, struct parts *p, struct gpul_error *err)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &p->job;
    /* What the coordinator would refuse must not be sent: it would end. */
    int rc = gpul_body_check(gpul_body_rule(GPUL__FRAME__BODY_JOB),
                             &p->job.base, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "the job cannot be told");
    }
    rc = gpul_message_encode(out, &frame, err);
    if (rc == GPUL_ELIMIT) {
        return gpul_fail(err, rc,
                         "the command, the -x values and the names of the "
                         "nodes are longer than %u bytes; put long values "
                         "into a file",
                         GPUL_JOB_BYTES_MAX);
    }
    return rc;
}

int job_message_encode(struct gpul_buf *out, const struct plan *plan,
                       const struct job_message *m, struct gpul_error *err)
{
    struct parts *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    gpul__job__init(&p->job);
    fill_scalars(p, plan, m);
    fill_self_test(p, plan, m);
    fill_roles(p, plan);
    fill_input(p, plan);
    fill_hang(p, plan);
    fill_check(p, plan);
    int rc = fill_names(p, plan);
    if (rc == 0) {
        rc = fill_command(p, plan, m->working_directory);
    }
    if (rc == 0) {
        rc = fill_environment(p, plan, m);
    }
    rc = rc == 0 ? encode(out, p, err) : gpul_fail(err, rc, "out of memory");
    release(p);
    return rc;
}
