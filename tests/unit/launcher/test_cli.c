/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/cli.h"

enum { WORDS_MAX = 64, TEXT_BYTES = 512 };

/* A command line and an environment ("NAME=VALUE NAME=VALUE") cut at blanks;
 * the plan points into them. */
struct line {
    char text[TEXT_BYTES];
    char *argv[WORDS_MAX];
    int argc;
    char variables[TEXT_BYTES];
    char *environment[WORDS_MAX];
    int environment_count;
    struct plan plan;
    struct gpul_error err;
};

static int cut(char **words, char *text)
{
    int count = 0;
    for (char *word = strtok(text, " "); word != NULL;
         word = strtok(NULL, " ")) {
        assert_true(count < WORDS_MAX);
        words[count++] = word;
    }
    return count;
}

static const char *look_up(void *arg, const char *name)
{
    struct line *l = arg;
    size_t n = strlen(name);
    for (int i = 0; i < l->environment_count; i++) {
        if (strncmp(l->environment[i], name, n) == 0 &&
            l->environment[i][n] == '=') {
            return l->environment[i] + n + 1;
        }
    }
    return NULL;
}

static int parse(struct line *l, const char *environment, const char *text)
{
    memset(l, 0, sizeof(*l));
    strncpy(l->text, text, sizeof(l->text) - 1);
    strncpy(l->variables, environment, sizeof(l->variables) - 1);
    l->argc = cut(l->argv, l->text);
    l->environment_count = cut(l->environment, l->variables);
    return cli_parse(&l->plan, l->argc, l->argv, look_up, l, &l->err);
}

/* What is wrong is said in one sentence that also says what to do. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        const char *line;
        const char *expected;
    } cases[] = {
        {"", "",
         "nothing to do; try gpulaunch --help, or: gpulaunch --local --nodes "
         "2 -- python train.py"},
        {"", "--nodes 2 -- true",
         "no nodes to run on: this version starts nodes on this machine only; "
         "add --local"},
        {"", "--local",
         "no command to run; put it after --, as in: gpulaunch --local "
         "--nodes 2 -- python train.py"},
        {"", "--local --",
         "no command to run; put it after --, as in: gpulaunch --local "
         "--nodes 2 -- python train.py"},
        {"", "--local --nodes 0 -- true",
         "--nodes: \"0\" is not a whole number from 1 to 1000"},
        {"", "--local -N -3 -- true",
         "-N: \"-3\" is not a whole number from 1 to 1000"},
        {"", "--local --nnodes=9999999 -- true",
         "--nnodes: \"9999999\" is not a whole number from 1 to 1000"},
        {"GPULAUNCH_NODES=four", "--local -- true",
         "GPULAUNCH_NODES: \"four\" is not a whole number from 1 to 1000"},
        {"", "--local --nnodes 1:4 -- true",
         "--nnodes 1:4: not yet: this version has no elastic jobs; give one "
         "number"},
        {"", "--local --per-node 0 -- true",
         "--per-node: \"0\" is neither gpu nor auto nor a whole number from "
         "1 to 4096"},
        {"", "--local --nodes 1000 --per-node 4096 -- true",
         "1000 nodes x 4096 per node make 4096000 ranks; at most 1048576 are "
         "possible"},
        {"", "--local --nodes 2 --nodes 3 -- true",
         "option --nodes is given twice, as \"2\" and as \"3\""},
        {"", "--local --lable -- true",
         "unknown option --lable; did you mean --label?"},
        {"", "--local --frobnicate -- true",
         "unknown option --frobnicate; see --help"},
        {"", "--local --self-test fast -- true",
         "--self-test: unknown value 'fast'; use quick, full or off"},
        {"", "--local --self-test quik -- true",
         "--self-test: unknown value 'quik'; did you mean quick? (quick, full "
         "or off)"},
        {"", "--local --color sometimes -- true",
         "--color: unknown value 'sometimes'; use auto, always or never"},
        {"", "--local --emulate pbs -- true",
         "--emulate: unknown value 'pbs'; use slurm"},
        {"", "--local --timeout soon -- true",
         "--timeout: \"soon\" is not a duration; write 90, 90s, 1500ms, 5m or "
         "1.5h"},
        {"", "--local --join-timeout 0 -- true",
         "--join-timeout: 0 leaves no time to join; give a time such as 30s"},
        {"", "--local --label --no-label -- true",
         "--label and --no-label contradict each other; give one of them"},
        {"", "--local -q -v -- true",
         "-v and -q contradict each other; give one of them"},
        {"", "--local --nodes 3 --roles worker=2,ps=2 -- true",
         "--roles names 4 ranks, but 3 nodes x 1 per node make 3; change one "
         "of them"},
        {"", "--local --per-node 2 --roles chief=1,worker=2 -- true",
         "--roles names 3 ranks, which cannot fill nodes of 2 ranks; change "
         "--roles or --per-node"},
        {"", "--local --per-node gpu --roles worker=2 -- true",
         "--roles without --nodes needs a number of ranks per node; give "
         "--nodes N or --per-node K"},
        {"", "--local --roles worker=2000 -- true",
         "--roles needs 2000 nodes; at most 1000 local nodes are possible; "
         "raise --per-node"},
        {"", "--local --roles boss=1 -- true",
         "--roles: unknown role \"boss\"; the roles are chief, worker, ps and "
         "evaluator"},
        {"", "--local --tf-evaluator own -- true",
         "--tf-evaluator own needs an evaluator; add evaluator=1 to --roles"},
        {"", "--local --roles worker=2 --tf-evaluator own -- true",
         "--tf-evaluator own needs an evaluator; add evaluator=1 to --roles"},
        {"", "--local -x 1X=2 -- true",
         "-x: \"1X\" is not the name of a variable; use NAME=VALUE"},
        {"", "--local -x =2 -- true",
         "-x: \"\" is not the name of a variable; use NAME=VALUE"},
        {"", "--local -x UNSET -- true",
         "-x UNSET: not set in the environment; use UNSET=VALUE"},
        {"", "--local --log-dir= -- true",
         "--log-dir: empty; give a directory"},
        {"", "--local --result= -- true", "--result: empty; give a file"},
        {"", "--local --backend nvidia -- true",
         "--backend: unknown value 'nvidia'; use auto, nccl or host"},
        {"", "--local --nccl-lib= -- true", "--nccl-lib: empty; give a file"},
        {"", "--local -b 3 -- true",
         "-b: \"3\" is not a size from 4 bytes (one float) to 1 TiB"},
        {"", "--local -e 2T -- true",
         "-e: \"2T\" is not a size from 4 bytes (one float) to 1 TiB"},
        {"", "--local -e err.log -- true",
         "-e: \"err.log\" is not a size; write 65536, 64K, 64KiB, 8M or "
         "1GiB"},
        {"", "--local -b 1G --maxbytes 8M -- true",
         "-b 1G is more than --maxbytes 8M (1073741824 and 8388608 bytes); "
         "the smallest message comes first"},
        {"", "--local --stepfactor 1 -- true",
         "--stepfactor: \"1\" is not a whole number from 2 to 1024"},
        {"", "--local --iters 0 -- true",
         "--iters: \"0\" is not a whole number from 1 to 1000"},
        {"", "--local --warmup_iters 1001 -- true",
         "--warmup_iters: \"1001\" is not a whole number from 0 to 1000"},
        {"", "--local --check yes -- true",
         "--check: \"yes\" is not a whole number from 0 to 100"},
        {"", "--local --min-busbw 0 -- true",
         "--min-busbw: \"0\" is not a bandwidth in GB/s above 0 and up to "
         "100000, such as 180 or 2.5"},
        {"GPULAUNCH_MIN_BUSBW=1.2.3", "--local -- true",
         "GPULAUNCH_MIN_BUSBW: \"1.2.3\" is not a bandwidth in GB/s above 0 "
         "and up to 100000, such as 180 or 2.5"},
        {"", "--local --self-test off --min-busbw 5 -- true",
         "--min-busbw means nothing with --self-test off; leave one of them "
         "out"},
        {"GPULAUNCH_SELF_TEST=off", "--local --backend nccl -- true",
         "--backend means nothing with GPULAUNCH_SELF_TEST off; leave one of "
         "them out"},
        {"", "--local --backend host --nccl-lib x.so -- true",
         "--nccl-lib means nothing with --backend host; leave one of them "
         "out"},
        {"", "--local --self-test-timeout 0 -- true",
         "--self-test-timeout: 0 leaves no time to test; give a time such as "
         "30s, or --self-test off"},
        {"", "--local --rank 1 -- true",
         "--rank belongs to gpulaunch env; write gpulaunch env --rank 1 ..."},
        {"", "env --local -- true", "env: of which rank? add --rank R"},
        {"", "env --local --nodes 2 --rank 2 -- true",
         "--rank 2: the job has 2 ranks, 0 to 1"},
        {"", "env --local --rank 2 -- true",
         "--rank 2: the job has one rank, 0"},
        {"", "--local --nodes 1 --per-node 2 --roles chief=1 -- true",
         "--roles names 1 rank, but 1 node x 2 per node make 2; change one "
         "of them"},
        {"", "rum --local -- true",
         "unknown verb \"rum\"; did you mean run? (a command to run goes after "
         "--)"},
        {"", "train.py",
         "unknown verb \"train.py\"; there are run, env and help, and a "
         "command "
         "to run goes after --"},
        {"", "--local python train.py",
         "\"python\" is not an option; put -- before the command: gpulaunch "
         "[options] -- python ..."},
        {"", "help check",
         "help: no such topic \"check\"; there are run and env"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        int rc = parse(&l, cases[i].environment, cases[i].line);
        assert_string_equal(l.err.text, cases[i].expected);
        assert_int_equal(rc, GPUL_EINVAL);
        plan_release(&l.plan);
    }
}

/* Flags of other launchers are answered with what to do instead. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *expected;
    } cases[] = {
        {"--rdzv-endpoint host:29400 --local -- true",
         "--rdzv-endpoint: not yet: this version starts local nodes only; "
         "leave it out, gpulaunch brings its own rendezvous"},
        {"--rdzv_backend=c10d --local -- true",
         "--rdzv_backend: not yet: this version starts local nodes only; "
         "leave it out, gpulaunch brings its own rendezvous"},
        {"--max-restarts 3 --local -- true",
         "--max-restarts: not yet: this version does not restart a failed "
         "job; leave it out"},
        {"--master_port 29500 --local -- true",
         "--master_port: leave it out: gpulaunch chooses the address and the "
         "port and tells every rank"},
        {"-w node[1-4] -- true",
         "-w: not yet: this version starts local nodes only; use --local "
         "--nodes N (-w of nccl-tests: use --warmup_iters)"},
        {"-H a,b -- true",
         "-H: not yet: this version starts local nodes only; use --local "
         "--nodes N"},
        {"--hostfile hosts -- true",
         "--hostfile: not yet: this version starts local nodes only; use "
         "--local --nodes N"},
        {"-np 4 -- true",
         "-n: use --nodes N and --per-node K: there are N x K ranks (-n of "
         "nccl-tests: use --iters)"},
        {"-n 4 -- true",
         "-n: use --nodes N and --per-node K: there are N x K ranks (-n of "
         "nccl-tests: use --iters)"},
        {"-f 2 -- true",
         "-f: not yet: this version starts local nodes only; use --local "
         "--nodes N (-f of nccl-tests: use --stepfactor)"},
        {"-c 1 -- true",
         "-c: not yet: this version does not bind ranks to cores; leave it "
         "out (-c of nccl-tests: use --check)"},
        {"-i 1M -- true",
         "-i: use --stepfactor N: sizes are multiplied, not added to"},
        {"--standalone -- true", "--standalone: use --local"},
        {"-m torch.distributed -- true",
         "-m: put it into the command: -- python -m MODULE"},
        {"-t 10 -- true", "-t: use --timeout TIME"},
        {"--oversubscribe -- true",
         "--oversubscribe: leave it out: gpulaunch does not ask for it"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(parse(&l, "", cases[i].line), GPUL_EINVAL);
        assert_string_equal(l.err.text, cases[i].expected);
        plan_release(&l.plan);
    }
}

/* Without options the documented defaults hold. */
static void test_defaults(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(parse(&l, "", "--local -- python train.py --nodes 9"), 0);
    const struct plan *p = &l.plan;
    assert_int_equal(p->verb, PLAN_RUN);
    assert_int_equal(p->node_count, 1);
    assert_int_equal(p->per_node, PLAN_PER_NODE_COUNT);
    assert_int_equal(p->ranks_per_node, 1);
    assert_int_equal(p->self_test, PLAN_SELF_TEST_QUICK);
    assert_int_equal(p->backend, PLAN_BACKEND_AUTO);
    assert_null(p->nccl_library);
    assert_int_equal(p->label, PLAN_CHOICE_AUTO);
    assert_int_equal(p->timeout_ms, 0);
    assert_int_equal(p->join_timeout_ms, 600000);
    assert_int_equal(p->grace_ms, 30000);
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
        parse(&l, "PATH=/bin",
              "run --local -N 6 --nproc_per_node 2 --devices rank "
              "--self-test full --timeout 1.5h --join-timeout 90 --grace 0 "
              "-x A=1 --env B=x=y -x A=2 -x PATH -x E= --tf-config file "
              "--emulate slurm -l --log-dir logs --result out.json --json "
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
    assert_string_equal(p->log_dir, "logs");
    assert_string_equal(p->result_path, "out.json");
    assert_true(p->is_json);
    assert_int_equal(p->color, PLAN_CHOICE_NO);
    assert_true(p->is_verbose && p->is_dry_run && p->is_explained);
    assert_int_equal(p->roles.counts[GPUL_ROLE_WORKER], 8);
    plan_release(&l.plan);
}

/* nccl-tests' names of the sweep reach their fields; what the environment
 * wishes for is dropped where a flag switches the self-test off. */
static void test_sweep(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(
        parse(&l, "",
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

    assert_int_equal(parse(&l, "GPULAUNCH_BACKEND=nccl GPULAUNCH_MIN_BUSBW=1",
                           "--local --self-test off -- t"),
                     0);
    plan_release(&l.plan);
    assert_int_equal(parse(&l, "", "--local -b 64K -e 64K -- t"), 0);
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
    assert_int_equal(
        parse(&l, environment, "--nodes 2 --no-label -v -x A=2 -- true"), 0);
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
        parse(&l, "", "--local --per-node 2 --roles chief=1,worker=3 -- t"), 0);
    assert_int_equal(l.plan.node_count, 2);
    plan_release(&l.plan);
    assert_int_equal(parse(&l, "", "--local --nnodes 4:4 -- t"), 0);
    assert_int_equal(l.plan.node_count, 4);
    plan_release(&l.plan);
    assert_int_equal(parse(&l, "", "--local --per-node auto -- t"), 0);
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
        {"--version", PLAN_VERSION, 0},
        {"-V", PLAN_VERSION, 0},
        {"--local -- python --help", PLAN_RUN, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(parse(&l, "", cases[i].line), 0);
        assert_int_equal(l.plan.verb, cases[i].verb);
        assert_int_equal(l.plan.help_topic, cases[i].topic);
        plan_release(&l.plan);
    }
}

/* --explain names the winner of every setting. */
static void test_explain(void **state)
{
    (void)state;
    struct line l;
    assert_int_equal(parse(&l, "GPULAUNCH_GRACE=5s GPULAUNCH_ENV=A=1",
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
        "  nodes             2 (follows from --roles)\n"
        "  per-node          2 (flag --nproc-per-node)\n"
        "  roles             worker=4 (flag --roles)\n"
        "  devices           auto (default)\n"
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
        "  env               A=1 (environment GPULAUNCH_ENV)\n"
        "  env               B=2 (flag -x)\n"
        "  tf-config         auto (default)\n"
        "  tf-evaluator      absent (default)\n"
        "  emulate           - (default)\n"
        "  label             auto (default)\n"
        "  no-label          no (default)\n"
        "  log-dir           the user's state directory (default)\n"
        "  result            - (default)\n"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_nodes_from_roles),
        cmocka_unit_test(test_information),
        cmocka_unit_test(test_nearest_variable),
        cmocka_unit_test(test_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
