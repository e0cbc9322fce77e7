/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/job_message.h"
#include "proto/limits.h"
#include "proto/message.h"

static char train[] = "train";
static char fast[] = "--fast";
static char *command[] = {train, fast, NULL};

static struct plan base_plan(void)
{
    struct plan plan = {
        .verb = PLAN_RUN,
        .node_count = 4,
        .ranks_per_node = 2,
        .self_test = PLAN_SELF_TEST_QUICK,
        .join_timeout_ms = 600000,
        .grace_ms = 30000,
        .orphan_timeout_ms = 60000,
        .command = command,
        .command_count = 2,
    };
    return plan;
}

static const struct job_message base_message = {
    .job_id = "job-1",
    .working_directory = "/tmp",
    .log_dir = "/logs/job-1",
    .nccl_library = "",
};

/* Encodes and decodes as the coordinator would; the caller releases. */
static Gpul__Frame *round_trip(const struct plan *plan,
                               const struct job_message *m)
{
    struct gpul_buf out;
    struct gpul_error err = {0};
    Gpul__Frame *frame = NULL;
    gpul_buf_init(&out, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    struct plan named = *plan;
    named.nodes = (struct nodes){0};
    assert_int_equal(
        nodes_parse_list(&named.nodes, NODES_LOCAL,
                         plan->node_count == 1 ? "local-0" : "local-[0-3]",
                         "--local", NULL),
        0);
    assert_int_equal(job_message_encode(&out, &named, m, &err), 0);
    nodes_release(&named.nodes);
    assert_int_equal(gpul_message_decode(&frame,
                                         out.data + GPUL_FRAME_PREFIX_BYTES,
                                         out.used - GPUL_FRAME_PREFIX_BYTES,
                                         GPUL_PEER_OPERATOR, &err),
                     0);
    gpul_buf_release(&out);
    assert_int_equal(frame->body_case, GPUL__FRAME__BODY_JOB);
    return frame;
}

/* What the user asked for arrives as the coordinator reads it. */
static void test_run(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    char name[] = "A";
    struct plan_variable variable = {.name = name, .value = "1"};
    plan.variables = &variable;
    plan.variable_count = 1;
    plan.tf_config = 3;
    plan.hang_watch = GPUL__HANG__WATCH__GIVEN;
    plan.hang_limit_ms = 90000;
    plan.hang_stops_job = true;
    plan.interface = "ib0,10.0.0.5";
    plan.has_roles = true;
    plan.roles.counts[GPUL_ROLE_WORKER] = 6;
    plan.roles.counts[GPUL_ROLE_PS] = 2;
    Gpul__Frame *frame = round_trip(&plan, &base_message);
    const Gpul__Job *job = frame->job;
    assert_string_equal(job->job_id, "job-1");
    assert_int_equal(job->mode, GPUL__JOB__MODE__RUN);
    assert_int_equal(job->node_count, 4);
    assert_int_equal(job->ranks_per_node, 2);
    assert_int_equal(job->n_node_names, 1);
    assert_string_equal(job->node_names[0], "local-[0-3]");
    assert_true(job->names_are_ordered);
    assert_int_equal(job->grace_ms, 30000);
    assert_int_equal(job->orphan_timeout_ms, 60000);
    assert_int_equal(job->hang->watch, GPUL__HANG__WATCH__GIVEN);
    assert_int_equal(job->hang->limit_ms, 90000);
    assert_true(job->hang->stops_job);
    assert_int_equal(job->self_test->level, GPUL__SELF_TEST__LEVEL__QUICK);
    assert_int_equal(job->self_test->run_deadline_ms, 60000);
    assert_int_equal(job->command->n_arguments, 2);
    assert_memory_equal(job->command->arguments[1].data, "--fast", 6);
    assert_memory_equal(job->command->working_directory.data, "/tmp", 4);
    assert_int_equal(job->environment->n_user, 1);
    assert_int_equal(job->environment->tf_config,
                     GPUL__ENVIRONMENT__TF_CONFIG__FILE);
    assert_int_equal(job->n_roles, 2);
    assert_string_equal(job->roles[0]->name, "worker");
    assert_string_equal(job->roles[1]->name, "ps");
    assert_int_equal(job->roles[1]->count, 2);
    assert_string_equal(job->log_dir, "/logs/job-1");
    assert_string_equal(job->interface, "ib0,10.0.0.5");
    assert_true(job->forwards_output);
    assert_false(job->keeps_logs);
    gpul_message_release(frame);
}

/* Whose input it is, and the signal before the time limit: for ranks only. */
static void test_streams(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    plan.input_rank = 5;
    Gpul__Frame *frame = round_trip(&plan, &base_message);
    assert_false(frame->job->input_target->is_all);
    assert_int_equal(frame->job->input_target->rank, 5);
    assert_int_equal(frame->job->warning_signal, 0);
    gpul_message_release(frame);

    plan.input = PLAN_INPUT_ALL;
    plan.input_rank = 0;
    plan.timeout_ms = 90000;
    plan.warning_signal = 10;
    plan.warning_ms = 60000;
    frame = round_trip(&plan, &base_message);
    assert_true(frame->job->input_target->is_all);
    assert_int_equal(frame->job->warning_signal, 10);
    assert_int_equal(frame->job->warning_ms, 60000);
    gpul_message_release(frame);

    plan.is_dry_run = true;
    frame = round_trip(&plan, &base_message);
    assert_null(frame->job->input_target);
    assert_int_equal(frame->job->warning_signal, 0);
    gpul_message_release(frame);

    plan = base_plan();
    plan.input = PLAN_INPUT_NONE;
    frame = round_trip(&plan, &base_message);
    assert_null(frame->job->input_target);
    gpul_message_release(frame);
}

/* env reports one rank, a dry run all; neither tests nor prints output. */
static void test_looking(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    plan.verb = PLAN_ENV;
    plan.rank = 5;
    plan.node_count = 1;
    Gpul__Frame *frame = round_trip(&plan, &base_message);
    assert_int_equal(frame->job->mode, GPUL__JOB__MODE__ENV);
    assert_int_equal(frame->job->report_rank, 5);
    assert_false(frame->job->report_all_ranks);
    assert_int_equal(frame->job->self_test->level, GPUL__SELF_TEST__LEVEL__OFF);
    assert_string_equal(frame->job->node_names[0], "local-0");
    gpul_message_release(frame);

    plan = base_plan();
    plan.is_dry_run = true;
    frame = round_trip(&plan, &base_message);
    assert_int_equal(frame->job->mode, GPUL__JOB__MODE__ENV);
    assert_true(frame->job->report_all_ranks);
    assert_false(frame->job->forwards_output);
    gpul_message_release(frame);
}

/* The sweep travels in nccl-tests' terms: 0 is the level's own, so what may
 * be 0 itself is one more; sizes of the user's own get the long bound. */
static void test_sweep(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    struct job_message m = base_message;
    Gpul__Frame *frame = round_trip(&plan, &m);
    const Gpul__SelfTest *test = frame->job->self_test;
    assert_int_equal(test->backend, GPUL__SELF_TEST__BACKEND__BACKEND_AUTO);
    assert_string_equal(test->nccl_library, "");
    assert_int_equal(test->sweep->warmup, 0);
    assert_int_equal(test->sweep->check, 0);
    gpul_message_release(frame);

    plan.backend = PLAN_BACKEND_NCCL;
    plan.sweep = (struct plan_sweep){.bytes_min = 8,
                                     .bytes_max = 1024,
                                     .factor = 4,
                                     .iterations = 7,
                                     .check = 2,
                                     .busbw_min_gbps = 2.5};
    plan.settings[OPTION_WARMUP_ITERS].source = GPUL_SOURCE_FLAG;
    plan.settings[OPTION_CHECK].source = GPUL_SOURCE_ENVIRONMENT;
    m.nccl_library = "/lib/libnccl.so.2";
    m.nccl_magic = UINT64_MAX;
    frame = round_trip(&plan, &m);
    assert_int_equal(frame->job->environment->nccl_socket_magic, UINT64_MAX);
    test = frame->job->self_test;
    assert_int_equal(test->backend, GPUL__SELF_TEST__BACKEND__BACKEND_NCCL);
    assert_string_equal(test->nccl_library, "/lib/libnccl.so.2");
    assert_int_equal(test->sweep->bytes_min, 8);
    assert_int_equal(test->sweep->bytes_max, 1024);
    assert_int_equal(test->sweep->factor, 4);
    assert_int_equal(test->sweep->iterations, 7);
    assert_int_equal(test->sweep->warmup, 1);
    assert_int_equal(test->sweep->check, 3);
    assert_true(test->sweep->busbw_min_gbps > 2.4);
    assert_int_equal(test->listen_deadline_ms, 30000);
    assert_int_equal(test->run_deadline_ms, 600000);
    gpul_message_release(frame);

    plan.self_test_timeout_ms = 5000;
    frame = round_trip(&plan, &m);
    assert_int_equal(frame->job->self_test->listen_deadline_ms, 5000);
    assert_int_equal(frame->job->self_test->run_deadline_ms, 5000);
    gpul_message_release(frame);
}

/* auto is one rank per GPU where there is one, else one rank. */
static void test_per_node(void **state)
{
    (void)state;
    static const struct {
        enum plan_per_node per_node;
        bool has_gpu;
        uint32_t expected;
    } cases[] = {
        {PLAN_PER_NODE_GPU, false, 0},
        {PLAN_PER_NODE_AUTO, false, 1},
        {PLAN_PER_NODE_AUTO, true, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan plan = base_plan();
        struct job_message m = base_message;
        plan.per_node = cases[i].per_node;
        plan.ranks_per_node = 0;
        m.has_gpu = cases[i].has_gpu;
        Gpul__Frame *frame = round_trip(&plan, &m);
        assert_int_equal(frame->job->ranks_per_node, cases[i].expected);
        gpul_message_release(frame);
    }
}

/* A log directory of the user's is kept. */
static void test_keeps_logs(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    plan.log_dir = "logs";
    Gpul__Frame *frame = round_trip(&plan, &base_message);
    assert_true(frame->job->keeps_logs);
    gpul_message_release(frame);
}

/* A command that no message can carry is refused with the bound. */
static void test_too_long(void **state)
{
    (void)state;
    enum { ARGUMENT_BYTES = 120000, ARGUMENT_COUNT = 20 };
    char *argument = malloc(ARGUMENT_BYTES + 1);
    assert_non_null(argument);
    memset(argument, 'x', ARGUMENT_BYTES);
    argument[ARGUMENT_BYTES] = '\0';
    char *long_command[ARGUMENT_COUNT];
    for (size_t i = 0; i < ARGUMENT_COUNT; i++) {
        long_command[i] = argument;
    }
    struct plan plan = base_plan();
    plan.command = long_command;
    plan.command_count = ARGUMENT_COUNT;
    struct gpul_buf out;
    struct gpul_error err = {0};
    gpul_buf_init(&out, 4 * GPUL_JOB_BYTES_MAX);
    nodes_parse_list(&plan.nodes, NODES_LOCAL, "local-[0-3]", "--local", NULL);
    assert_int_equal(job_message_encode(&out, &plan, &base_message, &err),
                     GPUL_ELIMIT);
    nodes_release(&plan.nodes);
    assert_string_equal(err.text,
                        "the command, the -x values and the names of the "
                        "nodes are longer than 2097152 bytes; put long values "
                        "into a file");
    gpul_buf_release(&out);
    free(argument);
}

/* What the coordinator would not take is refused here, with the field. */
static void test_refused(void **state)
{
    (void)state;
    struct plan plan = base_plan();
    struct job_message message = base_message;
    struct gpul_buf out;
    struct gpul_error err = {0};
    message.log_dir = "/logs\xff/job-1";
    gpul_buf_init(&out, GPUL_JOB_BYTES_MAX);
    nodes_parse_list(&plan.nodes, NODES_LOCAL, "local-[0-3]", "--local", NULL);
    assert_int_equal(job_message_encode(&out, &plan, &message, &err),
                     GPUL_EPROTO);
    nodes_release(&plan.nodes);
    assert_int_equal(strncmp(err.text, "the job cannot be told: log_dir", 31),
                     0);
    assert_int_equal(out.used, 0);
    gpul_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_looking),    cmocka_unit_test(test_per_node),
        cmocka_unit_test(test_keeps_logs), cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_sweep),      cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
