/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher/cli.h: which nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/launcher/cli_line.h"

/* Who names the nodes: a flag before the environment before a scheduler. */
static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        const char *line;
        const char *names; /* folded */
        uint32_t ranks;    /* on each node */
    } rows[] = {
        {"", "--local --nodes 2 -- t", "local-[0-1]", 1},
        {"", "--hosts b,a -- t", "b,a", 1},
        {"", "--host node7,node66,node8,node70 -- t", "node[7,66,8,70]", 1},
        {"", "-w node7,node66,node8,node70 -- t", "node[7-8,66,70]", 1},
        {"", "-H n[1-4]:8 --nodes 2 -- t", "n[1-2]", 8},
        {"", "-H n[1-4]:8 --per-node 2 -- t", "n[1-4]", 2},
        {"GPULAUNCH_LOCAL=1", "--hosts a,b -- t", "a,b", 1},
        {"GPULAUNCH_LOCAL=0 GPULAUNCH_HOSTS=a", "-- t", "a", 1},
        {"GPULAUNCH_HOSTS=a,b", "--local -- t", "local-0", 1},
        {"LSB_JOBID=7 LSB_HOSTS=a", "--hosts b -- t", "b", 1},
        {"LSB_JOBID=7 LSB_HOSTS=a", "-- t", "a", 1},
        {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[1-3] SLURM_NTASKS_PER_NODE=4",
         "--nodes 2 -- t", "n[1-2]", 4},
        {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[1-3] SLURM_STEP_NUM_TASKS=1",
         "-- t", "n[1-3]", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct line l;
        struct gpul_buf names;
        gpul_buf_init(&names, 1000);
        assert_int_equal(cli_line_parse(&l, rows[i].environment, rows[i].line),
                         0);
        assert_null(l.plan.nodes_file);
        nodes_append_names(&names, &l.plan.nodes, 1000);
        assert_string_equal(gpul_buf_text(&names), rows[i].names);
        assert_int_equal(l.plan.node_count, l.plan.nodes.count);
        assert_int_equal(l.plan.ranks_per_node, rows[i].ranks);
        gpul_buf_release(&names);
        plan_release(&l.plan);
    }
}

/* Without a list, a number is enough: they come by themselves. So it is in a
 * job that does not name its nodes either. */
static void test_open(void **state)
{
    (void)state;
    static const char batch[] =
        "AWS_BATCH_JOB_NUM_NODES=2 AWS_BATCH_JOB_NODE_INDEX=0 "
        "AWS_BATCH_JOB_MAIN_NODE_INDEX=0";
    static const char *const environments[] = {
        "",
        "FLUX_URI=u FLUX_JOB_ID=7 FLUX_JOB_NNODES=2",
        batch,
        "JOB_COMPLETION_INDEX=0",
    };
    for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]);
         i++) {
        struct line l;
        assert_int_equal(cli_line_parse(&l, environments[i], "--nodes 2 -- t"),
                         0);
        assert_true(l.plan.is_open);
        assert_int_equal(l.plan.node_count, 2);
        assert_int_equal(l.plan.nodes.count, 0);
        plan_release(&l.plan);
    }
}

/* An address from elsewhere, with the port of --port or one of its own. */
static void test_advertised(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *host;
        uint16_t port;
    } rows[] = {
        {"203.0.113.7", "203.0.113.7", 7000},
        {"203.0.113.7:80", "203.0.113.7", 80},
        {"2001:db8::7", "2001:db8::7", 7000},
        {"[2001:db8::7]:80", "2001:db8::7", 80},
        {"login.example", "login.example", 7000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct line l;
        char line[100];
        snprintf(line, sizeof(line),
                 "--nodes 2 --port 7000 --advertise %s -- t", rows[i].text);
        assert_int_equal(cli_line_parse(&l, "", line), 0);
        assert_string_equal(l.plan.advertised.host, rows[i].host);
        assert_int_equal(l.plan.advertised.port, rows[i].port);
        plan_release(&l.plan);
    }
}

/* A file is the caller's to read; then the plan is made whole. */
static void test_files(void **state)
{
    (void)state;
    static const char file[] = "a slots=2 max_slots=4\nb slots=2\n";
    struct line l;
    assert_int_equal(cli_line_parse(&l, "", "-f hosts.txt -- t"), 0);
    assert_string_equal(l.plan.nodes_file, "hosts.txt");
    assert_int_equal(cli_settle(&l.plan, file, sizeof(file) - 1, &l.err), 0);
    assert_int_equal(l.plan.node_count, 2);
    assert_int_equal(plan_world_size(&l.plan), 4);
    plan_release(&l.plan);

    assert_int_equal(
        cli_line_parse(&l, "", "--hostfile hosts.txt --per-node 5 -- t"), 0);
    assert_int_equal(cli_settle(&l.plan, file, sizeof(file) - 1, &l.err),
                     GPUL_EINVAL);
    assert_string_equal(l.err.text,
                        "hosts.txt:1: a has max_slots=4, but 5 ranks are to "
                        "run on each node; lower --per-node, or raise "
                        "max_slots");
    plan_release(&l.plan);

    assert_int_equal(
        cli_line_parse(&l, "PBS_JOBID=7 PBS_NODEFILE=/f", "--nodes 1 -- t"), 0);
    assert_string_equal(l.plan.nodes_file, "/f");
    assert_int_equal(cli_settle(&l.plan, "b\nb\na\n", 6, &l.err), 0);
    assert_int_equal(l.plan.node_count, 1);
    assert_int_equal(l.plan.ranks_per_node, 1); /* processors are no ranks */
    assert_string_equal(l.plan.nodes.list[0].name, "b");
    plan_release(&l.plan);
}

/* What --explain says of nodes that somebody has named. */
static void test_explain_nodes(void **state)
{
    (void)state;
    struct line l;
    struct gpul_buf out;
    gpul_buf_init(&out, 10000);
    assert_int_equal(cli_line_parse(&l, "", "-H b:2,a:2 -- t"), 0);
    assert_int_equal(cli_explain(&out, &l.plan), 0);
    const char *text = gpul_buf_text(&out);
    assert_non_null(strstr(text, "  hosts             b:2,a:2 (flag -H)\n"));
    assert_non_null(strstr(text, "  nodes             2 (follows from -H)\n"));
    assert_non_null(strstr(text, "  per-node          2 (follows from -H)\n"));
    assert_non_null(
        strstr(text, "nodes\n  2 nodes of -H, in its order: b,a\n"));
    gpul_buf_release(&out);
    plan_release(&l.plan);
}

/* The time limit of a scheduler's job stands in for --timeout. */
static void test_limit(void **state)
{
    (void)state;
    static const struct {
        const char *end;
        const char *line;
        uint32_t timeout_ms;
        bool has_limit;
    } rows[] = {
        {"1100", "-- t", 95000, true},
        {"1100", "--timeout 7 -- t", 7000, false},
        {"1004", "-- t", 0, false}, /* it is over */
        {"0", "-- t", 0, false},
        {"4294967295", "-- t", 0, false},
        {"1100", "--signal USR1@30 -- t", 95000, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct line l;
        char environment[200];
        snprintf(environment, sizeof(environment),
                 "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_JOB_END_TIME=%s",
                 rows[i].end);
        assert_int_equal(cli_line_parse(&l, environment, rows[i].line), 0);
        assert_int_equal(cli_limit(&l.plan, 1000, &l.err), 0);
        assert_int_equal(l.plan.timeout_ms, rows[i].timeout_ms);
        assert_int_equal(l.plan.has_limit, rows[i].has_limit);
        plan_release(&l.plan);
    }
    struct line l;
    assert_int_equal(cli_line_parse(&l,
                                    "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 "
                                    "SLURM_JOB_END_TIME=1100",
                                    "--signal USR1@2m -- t"),
                     0);
    assert_int_equal(cli_limit(&l.plan, 1000, &l.err), GPUL_EINVAL);
    assert_string_equal(l.err.text,
                        "--signal USR1@2m: the job of Slurm ends in 1 min 35 "
                        "s; give a time after the @ that is shorter");
    plan_release(&l.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),        cmocka_unit_test(test_open),
        cmocka_unit_test(test_advertised),    cmocka_unit_test(test_files),
        cmocka_unit_test(test_explain_nodes), cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
