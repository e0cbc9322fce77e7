/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gpulaunch.pb-c.h"
#include "tests/unit/launcher/cli_line.h"

/* Without options the documented defaults hold. */
static void test_defaults(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "", "--local -- python train.py --nodes 9"), 0);
    const struct plan *p = &l.plan;
    assert_int_equal(p->verb, PLAN_RUN);
    assert_int_equal(p->node_count, 1);
    assert_int_equal(p->per_node, PLAN_PER_NODE_COUNT);
    assert_int_equal(p->ranks_per_node, 1);
    assert_int_equal(p->self_test, PLAN_SELF_TEST_QUICK);
    assert_int_equal(p->backend, PLAN_BACKEND_AUTO);
    assert_null(p->nccl_library);
    assert_int_equal(p->label, PLAN_CHOICE_AUTO);
    assert_int_equal(p->fold, PLAN_CHOICE_AUTO);
    assert_false(p->has_timestamps);
    assert_false(p->has_shown_ranks);
    assert_int_equal(p->timeout_ms, 0);
    assert_int_equal(p->join_timeout_ms, 600000);
    assert_int_equal(p->grace_ms, 30000);
    assert_int_equal(p->orphan_timeout_ms, 60000);
    assert_int_equal(p->warning_signal, 0);
    assert_int_equal(p->input, PLAN_INPUT_RANK);
    assert_int_equal(p->input_rank, 0);
    assert_false(p->has_roles);
    assert_null(p->log_dir);
    assert_null(p->result_path);
    assert_int_equal(p->command_count, 4);
    assert_string_equal(p->command[0], "python");
    assert_string_equal(p->command[3], "9");
    plan_release(&l.plan);
}

/* Every option reaches its field. */
static void test_values(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(
            &l, "PATH=/bin",
            "run --local -N 6 --nproc_per_node 2 --devices rank "
            "--self-test full --timeout 1.5h --join-timeout 90 --grace 0 "
            "--orphan-timeout 5m "
            "-x A=1 --env B=x=y -x A=2 -x PATH -x E= --tf-config file "
            "--emulate slurm -l --timestamps --ranks 0,3-5 --fold always "
            "--log-dir logs --result out.json --json "
            "--color never -v --dry-run --explain "
            "--roles chief=1,worker=8,ps=2,evaluator=1 --tf-evaluator own "
            "-- cmd"),
        0);
    const struct plan *p = &l.plan;
    assert_true(p->is_local);
    assert_int_equal(p->node_count, 6);
    assert_int_equal(p->ranks_per_node, 2);
    assert_int_equal(plan_world_size(p), 12);
    assert_int_equal(p->devices, 2);
    assert_int_equal(p->self_test, PLAN_SELF_TEST_FULL);
    assert_int_equal(p->timeout_ms, 5400000);
    assert_int_equal(p->join_timeout_ms, 90000);
    assert_int_equal(p->grace_ms, 0);
    assert_int_equal(p->orphan_timeout_ms, 300000);
    assert_int_equal(p->variable_count, 4);
    assert_string_equal(p->variables[0].name, "A");
    assert_string_equal(p->variables[0].value, "2");
    assert_string_equal(p->variables[1].value, "x=y");
    assert_string_equal(p->variables[2].name, "PATH");
    assert_string_equal(p->variables[2].value, "/bin");
    assert_string_equal(p->variables[3].value, "");
    assert_int_equal(p->tf_config, 3);
    assert_true(p->has_tf_evaluator);
    assert_true(p->emulates_slurm);
    assert_int_equal(p->label, PLAN_CHOICE_YES);
    assert_true(p->has_timestamps);
    assert_true(p->has_shown_ranks);
    assert_int_equal(gpul_rankset_size(&p->shown_ranks), 4);
    assert_int_equal(p->fold, PLAN_CHOICE_YES);
    assert_string_equal(p->log_dir, "logs");
    assert_string_equal(p->result_path, "out.json");
    assert_true(p->is_json);
    assert_int_equal(p->color, PLAN_CHOICE_NO);
    assert_true(p->is_verbose && p->is_dry_run && p->is_explained);
    assert_int_equal(p->roles.counts[GPUL_ROLE_WORKER], 8);
    plan_release(&l.plan);
}

/* Who reads the input, in srun's and mpirun's words too; the signal before
 * the time limit, with Slurm's default. */
static void test_streams(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "",
                       "--local --nodes 4 --input=all --timeout 5m "
                       "--signal SIGUSR2 -- t"),
        0);
    assert_int_equal(l.plan.input, PLAN_INPUT_ALL);
    assert_int_equal(l.plan.warning_signal, 12);
    assert_int_equal(l.plan.warning_ms, 60000);
    plan_release(&l.plan);
    assert_int_equal(cli_line_parse(&l, "GPULAUNCH_STDIN=none",
                                    "--local --nodes 4 --stdin 3 --timeout 5m "
                                    "--signal 40@1500ms -- t"),
                     0);
    assert_int_equal(l.plan.input, PLAN_INPUT_RANK);
    assert_int_equal(l.plan.input_rank, 3);
    assert_int_equal(l.plan.warning_signal, 40);
    assert_int_equal(l.plan.warning_ms, 1500);
    plan_release(&l.plan);
    assert_int_equal(cli_line_parse(&l, "GPULAUNCH_STDIN=none",
                                    "--local --per-node gpu -- t"),
                     0);
    assert_int_equal(l.plan.input, PLAN_INPUT_NONE);
    plan_release(&l.plan);
}

/* nccl-tests' names of the sweep reach their fields; what the environment
 * wishes for is dropped where a flag switches the self-test off. */
static void test_sweep(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(
            &l, "",
            "--local --backend nccl --nccl-lib lib/libnccl.so.2 -b 8 -e 1G "
            "--stepfactor 4 --iters 30 --warmup_iters 0 --check 0 "
            "--min-busbw 180.5 --self-test-timeout 2m -- t"),
        0);
    assert_int_equal(l.plan.backend, PLAN_BACKEND_NCCL);
    assert_string_equal(l.plan.nccl_library, "lib/libnccl.so.2");
    assert_int_equal(l.plan.sweep.bytes_min, 8);
    assert_int_equal(l.plan.sweep.bytes_max, 1 << 30);
    assert_int_equal(l.plan.sweep.factor, 4);
    assert_int_equal(l.plan.sweep.iterations, 30);
    assert_true(plan_has(&l.plan, OPTION_WARMUP_ITERS));
    assert_int_equal(l.plan.sweep.warmup, 0);
    assert_true(plan_has(&l.plan, OPTION_CHECK));
    assert_true(l.plan.sweep.busbw_min_gbps > 180.4 &&
                l.plan.sweep.busbw_min_gbps < 180.6);
    assert_int_equal(l.plan.self_test_timeout_ms, 120000);
    plan_release(&l.plan);

    assert_int_equal(
        cli_line_parse(&l, "GPULAUNCH_BACKEND=nccl GPULAUNCH_MIN_BUSBW=1",
                       "--local --self-test off -- t"),
        0);
    plan_release(&l.plan);
    assert_int_equal(cli_line_parse(&l, "", "--local -b 64K -e 64K -- t"), 0);
    plan_release(&l.plan);
}

/* A flag wins over the environment, even over its opposite there. */
static void test_precedence(void **state)
{
    (void)state;
    struct line l;
    const char *environment =
        "GPULAUNCH_LOCAL=1 GPULAUNCH_NODES=3 GPULAUNCH_LABEL=yes "
        "GPULAUNCH_QUIET=1 GPULAUNCH_GRACE=5 GPULAUNCH_ENV=A=1";
    assert_int_equal(cli_line_parse(&l, environment,
                                    "--nodes 2 --no-label -v -x A=2 -- true"),
                     0);
    assert_true(l.plan.is_local);
    assert_int_equal(l.plan.node_count, 2);
    assert_int_equal(l.plan.label, PLAN_CHOICE_NO);
    assert_false(l.plan.is_quiet);
    assert_true(l.plan.is_verbose);
    assert_int_equal(l.plan.grace_ms, 5000);
    assert_string_equal(l.plan.variables[0].value, "2");
    plan_release(&l.plan);
}

/* Without --nodes the roles say how many nodes there are. */
static void test_nodes_from_roles(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "",
                       "--local --per-node 2 --roles chief=1,worker=3 -- t"),
        0);
    assert_int_equal(l.plan.node_count, 2);
    plan_release(&l.plan);
    assert_int_equal(cli_line_parse(&l, "", "--local --nnodes 4:4 -- t"), 0);
    assert_int_equal(l.plan.node_count, 4);
    plan_release(&l.plan);
    assert_int_equal(cli_line_parse(&l, "", "--local --per-node auto -- t"), 0);
    assert_int_equal(l.plan.per_node, PLAN_PER_NODE_AUTO);
    assert_int_equal(plan_world_size(&l.plan), 0);
    plan_release(&l.plan);
}

/* Help and version are found wherever they stand before "--". */
static void test_information(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum plan_verb verb;
        enum plan_verb topic;
    } cases[] = {
        {"--help", PLAN_HELP, 0},
        {"-h", PLAN_HELP, 0},
        {"--nodes 0 --help", PLAN_HELP, 0},
        {"run --help", PLAN_HELP, PLAN_RUN},
        {"env -h", PLAN_HELP, PLAN_ENV},
        {"help", PLAN_HELP, 0},
        {"help run", PLAN_HELP, PLAN_RUN},
        {"help env", PLAN_HELP, PLAN_ENV},
        {"help secret", PLAN_HELP, PLAN_SECRET},
        {"secret --help", PLAN_HELP, PLAN_SECRET},
        {"--version", PLAN_VERSION, 0},
        {"-V", PLAN_VERSION, 0},
        {"--local -- python --help", PLAN_RUN, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(cli_line_parse(&l, "", cases[i].line), 0);
        assert_int_equal(l.plan.verb, cases[i].verb);
        assert_int_equal(l.plan.help_topic, cases[i].topic);
        plan_release(&l.plan);
    }
}

/* A file or none: the stronger source wins. */
static void test_secret_file(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        const char *line;
        const char *file;
        bool is_insecure;
    } cases[] = {
        {"", "--local -- t", NULL, false},
        {"", "--local --insecure -- t", NULL, true},
        {"GPULAUNCH_INSECURE=1", "--local -- t", NULL, true},
        {"GPULAUNCH_SECRET_FILE=e", "--local -- t", "e", false},
        {"GPULAUNCH_SECRET_FILE=e", "--local --secret_file f -- t", "f", false},
        {"GPULAUNCH_SECRET_FILE=e", "--local --insecure -- t", NULL, true},
        {"GPULAUNCH_INSECURE=1", "--local --secret-file f -- t", "f", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(
            cli_line_parse(&l, cases[i].environment, cases[i].line), 0);
        assert_int_equal(l.plan.is_insecure, cases[i].is_insecure);
        assert_int_equal(l.plan.secret_file == NULL, cases[i].file == NULL);
        if (cases[i].file != NULL) {
            assert_string_equal(l.plan.secret_file, cases[i].file);
        }
        plan_release(&l.plan);
    }
}

/* gpulaunch secret takes a file or nothing; what holds for a run, such as a
 * bad value in the environment, does not matter to it. */
static void test_secret_verb(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *path;
    } cases[] = {
        {"secret", NULL},
        {"secret job.secret", "job.secret"},
        {"secret -- --odd", "--odd"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(
            cli_line_parse(&l, "GPULAUNCH_NODES=four", cases[i].line), 0);
        assert_int_equal(l.plan.verb, PLAN_SECRET);
        assert_int_equal(l.plan.secret_path == NULL, cases[i].path == NULL);
        if (cases[i].path != NULL) {
            assert_string_equal(l.plan.secret_path, cases[i].path);
        }
        plan_release(&l.plan);
    }
}

/* A secret in the environment is named, never shown. */
static void test_explain_secret(void **state)
{
    (void)state;
    char secret[] = "5ec4e7";
    struct line l;
    struct gpul_buf out;
    assert_int_equal(cli_line_parse(&l, "", "--local -- t"), 0);
    l.plan.secret_text = secret;
    gpul_buf_init(&out, 1 << 16);
    assert_int_equal(cli_explain(&out, &l.plan), 0);
    assert_non_null(strstr(gpul_buf_text(&out),
                           "  secret-file       not shown (environment "
                           "GPULAUNCH_SECRET)\n"));
    assert_null(strstr(gpul_buf_text(&out), secret));
    gpul_buf_release(&out);
    plan_release(&l.plan);
}

/* What hands have learnt elsewhere and means the same here. */
static void test_other_names(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "GPULAUNCH_RANKS=0",
                       "--local --nodes 8 --tag-output --timestamp-output "
                       "--tee 4,5 -- true"),
        0);
    assert_int_equal(l.plan.label, PLAN_CHOICE_YES);
    assert_true(l.plan.has_timestamps);
    assert_false(gpul_rankset_has(&l.plan.shown_ranks, 0));
    assert_true(gpul_rankset_has(&l.plan.shown_ranks, 5));
    plan_release(&l.plan);
}

/* How long training may make no step, and what follows. */
static void test_hang(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        Gpul__Hang__Watch watch;
        uint32_t limit_ms;
        bool stops_job;
    } cases[] = {
        {"--local -- t", GPUL__HANG__WATCH__LEARNED, 0, false},
        {"--local --hang-timeout auto --on-hang stop -- t",
         GPUL__HANG__WATCH__LEARNED, 0, true},
        {"--local --hang-timeout 10m --on-hang report -- t",
         GPUL__HANG__WATCH__GIVEN, 600000, false},
        {"--local --hang_timeout off -- t", GPUL__HANG__WATCH__OFF, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(cli_line_parse(&l, "", cases[i].line), 0);
        assert_int_equal(l.plan.hang_watch, cases[i].watch);
        assert_int_equal(l.plan.hang_limit_ms, cases[i].limit_ms);
        assert_int_equal(l.plan.hang_stops_job, cases[i].stops_job);
        plan_release(&l.plan);
    }
}

/* --explain names the winner of every setting. */
static void test_explain(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "GPULAUNCH_GRACE=5s GPULAUNCH_ENV=A=1",
                       "--local --nproc-per-node 2 --roles worker=4 "
                       "-x B=2 -- t"),
        0);
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 16);
    assert_int_equal(cli_explain(&out, &l.plan), 0);
    assert_string_equal(
        gpul_buf_text(&out),
        "settings\n"
        "  local             yes (flag --local)\n"
        "  hosts             - (default)\n"
        "  nodelist          - (default)\n"
        "  hostfile          - (default)\n"
        "  nodes             2 (follows from --roles)\n"
        "  per-node          2 (flag --nproc-per-node)\n"
        "  roles             worker=4 (flag --roles)\n"
        "  devices           auto (default)\n"
        "  bind              none (default)\n"
        "  interface         what the others have reached (default)\n"
        "  address           by the routes to the nodes (default)\n"
        "  advertise         none (default)\n"
        "  port              one that is free (default)\n"
        "  job               drawn (default)\n"
        "  worker-path       as here, else in PATH (default)\n"
        "  copy-worker       no (default)\n"
        "  ssh-command       ssh (default)\n"
        "  self-test         quick (default)\n"
        "  backend           auto (default)\n"
        "  nccl-lib          the one that the command would load (default)\n"
        "  minbytes          the level's own (default)\n"
        "  maxbytes          the level's own (default)\n"
        "  stepfactor        the level's own (default)\n"
        "  iters             the level's own (default)\n"
        "  warmup-iters      the level's own (default)\n"
        "  check             1 (default)\n"
        "  min-busbw         none (default)\n"
        "  self-test-timeout the phase's own (default)\n"
        "  timeout           none (default)\n"
        "  join-timeout      10m (default)\n"
        "  grace             5s (environment GPULAUNCH_GRACE)\n"
        "  orphan-timeout    60s (default)\n"
        "  signal            none (default)\n"
        "  hang-timeout      auto (default)\n"
        "  on-hang           report (default)\n"
        "  secret-file       drawn for the job (default)\n"
        "  insecure          no (default)\n"
        "  env               A=1 (environment GPULAUNCH_ENV)\n"
        "  env               B=2 (flag -x)\n"
        "  tf-config         auto (default)\n"
        "  tf-evaluator      absent (default)\n"
        "  emulate           - (default)\n"
        "  stdin             0 (default)\n"
        "  label             auto (default)\n"
        "  no-label          no (default)\n"
        "  timestamps        no (default)\n"
        "  ranks             all (default)\n"
        "  fold              auto (default)\n"
        "  log-dir           the user's state directory (default)\n"
        "  result            - (default)\n"
        "  metrics           no (default)\n"
        "  json              no (default)\n"
        "  color             auto (default)\n"
        "  verbose           no (default)\n"
        "  quiet             no (default)\n"
        "  dry-run           no (default)\n"
        "  rank              - (default)\n"
        "  explain           no (default)\n");
    gpul_buf_release(&out);
    plan_release(&l.plan);
}

/* A variable that is like one of ours names it; ours and others do not. */
static void test_nearest_variable(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"GPULAUNCH_NODEZ", "GPULAUNCH_NODES"},
        {"GPULAUNCH_SELFTEST", "GPULAUNCH_SELF_TEST"},
        {"GPULAUNCH_SECRETS", "GPULAUNCH_SECRET"},
        {"GPULAUNCH_SECRET_FIL", "GPULAUNCH_SECRET_FILE"},
        {"GPULAUNCH_SECRET", NULL},
        {"GPULAUNCH_NODES", NULL},
        {"GPULAUNCH_FLEET", NULL},
        {"GPULAUNCH_", NULL},
        {"NODEZ", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *near = cli_nearest_variable(cases[i][0]);
        if (cases[i][1] == NULL) {
            assert_null(near);
        } else {
            assert_string_equal(near, cases[i][1]);
        }
    }
}

/* Options of run are handed on as the table calls them; what scale says
 * itself is not asked of the environment. */
static void test_scale(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        cli_line_parse(&l, "GPULAUNCH_LABEL=1 GPULAUNCH_NO_LABEL=1",
                       "scale --local -N 4,1,2 --nproc-per-node 2 --predict 8 "
                       "--strong --metric a(.*) --record r --html=h -q -- c d"),
        0);
    const struct scaleplan *scale = &l.plan.scale;
    assert_int_equal(l.plan.verb, PLAN_SCALE);
    assert_int_equal(scale->count_count, 3);
    assert_int_equal(scale->counts[2], 4);
    assert_int_equal(scale->repeats, 3);
    assert_int_equal(scale->predictions[0], 8);
    assert_true(scale->is_strong && l.plan.is_quiet);
    assert_string_equal(scale->metric, "a(.*)");
    assert_string_equal(l.plan.drawings.record, "r");
    assert_string_equal(l.plan.drawings.html, "h");
    assert_int_equal(l.plan.handed_on_count, 2);
    assert_string_equal(l.plan.handed_on[0], "--local");
    assert_string_equal(l.plan.handed_on[1], "--per-node=2");
    assert_int_equal(l.plan.command_count, 2);
    plan_release(&l.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_nodes_from_roles),
        cmocka_unit_test(test_information),
        cmocka_unit_test(test_secret_file),
        cmocka_unit_test(test_secret_verb),
        cmocka_unit_test(test_explain_secret),
        cmocka_unit_test(test_nearest_variable),
        cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
