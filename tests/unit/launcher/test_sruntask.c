/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/launcher/cli_line.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define JOB "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[1-4] SLURM_JOB_NUM_NODES=4"
#define STEP JOB " SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=2"
#define NODES " SLURM_STEP_NODELIST=n[2-3]"

/* Which task this is, and the nodes: those of the step, not of the job. */
static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        uint32_t count, task, node, nodes;
        bool is_guest;
    } rows[] = {
        {JOB, 0, 0, 0, 4, false},
        {JOB " SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0", 0, 0, 0, 4, false},
        {STEP NODES " SLURM_PROCID=0 SLURMD_NODENAME=n2", 2, 0, 0, 2, false},
        {STEP NODES " SLURM_PROCID=1 SLURMD_NODENAME=n3", 2, 1, 1, 2, true},
        /* srun --distribution=arbitrary */
        {STEP NODES " SLURM_PROCID=0 SLURMD_NODENAME=n3", 2, 0, 1, 2, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct line l;
        assert_int_equal(cli_line_parse(&l, rows[i].environment, "-- t"), 0);
        const struct sruntask *t = &l.plan.sruntask;
        assert_int_equal(t->count, rows[i].count);
        assert_int_equal(t->task, rows[i].task);
        assert_int_equal(t->node, rows[i].node);
        assert_int_equal(l.plan.node_count, rows[i].nodes);
        assert_int_equal(sruntask_is_guest(t), rows[i].is_guest);
        assert_string_equal(t->name, rows[i].count > 0 ? "slurm-7.3" : "");
        plan_release(&l.plan);
    }
}

/* What the user names counts before the step, as before any scheduler. */
static void test_named(void **state)
{
    (void)state;
    struct line l;
    static const char environment[] =
        STEP NODES " SLURM_PROCID=1 SLURMD_NODENAME=n3";
    assert_int_equal(cli_line_parse(&l, environment, "--hosts a,b -- t"), 0);
    assert_false(sruntask_is_guest(&l.plan.sruntask));
    plan_release(&l.plan);
}

/* The same for all tasks of a step, another for any other run of it. */
static void test_runs(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        " SLURM_RESTART_COUNT=1",
        " SLURM_SRUN_COMM_PORT=4001",
        " SLURM_SRUN_COMM_PORT=4002",
        " SLURM_SRUN_COMM_HOST=10.0.0.1",
        " SLURM_JOB_START_TIME=5",
        " SLURM_CLUSTER_NAME=c",
        " SLURM_CLUSTER_NAME=c/d",
        " SLURM_CLUSTER_NAME=\x01",
    };
    char runs[COUNT(others)][SRUNTASK_RUN_BYTES];
    for (size_t i = 0; i < COUNT(others); i++) {
        for (int task = 0; task < 2; task++) {
            struct line l;
            char environment[TEXT_BYTES];
            snprintf(environment, sizeof(environment),
                     STEP NODES " SLURM_PROCID=%d SLURMD_NODENAME=n2%s", task,
                     others[i]);
            assert_int_equal(cli_line_parse(&l, environment, "-- t"), 0);
            if (task == 0) {
                strcpy(runs[i], l.plan.sruntask.run);
            }
            assert_string_equal(runs[i], l.plan.sruntask.run);
            plan_release(&l.plan);
        }
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(runs[i], runs[k]);
        }
        for (const char *at = runs[i]; *at != '\0'; at++) {
            assert_true(*at > ' ' && *at <= '~');
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char many[] = "srun has started gpulaunch many times, but ";
    static const struct {
        const char *environment, *line, *text;
    } rows[] = {
        {STEP NODES " SLURMD_NODENAME=n2", "-- t",
         "srun has started gpulaunch many times, but SLURM_PROCID is not set; "
         "start it once, without srun, in the batch script or within salloc"},
        {STEP NODES " SLURM_PROCID=0", "-- t", many},
        {STEP " SLURM_PROCID=0 SLURMD_NODENAME=n2", "-- t", many},
        {STEP NODES " SLURM_PROCID=2 SLURMD_NODENAME=n2", "-- t",
         "SLURM_PROCID: \"2\" is not a whole number from 0 to 1"},
        {JOB NODES " SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=../x "
                   "SLURM_PROCID=0 SLURMD_NODENAME=n2",
         "-- t", "SLURM_STEP_ID: \"../x\" is no number"},
        {"SLURM_JOB_ID=../7 SLURM_JOB_NODELIST=n[1-2] SLURM_STEP_ID=3 "
         "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURMD_NODENAME=n2" NODES,
         "-- t", "SLURM_JOB_ID: \"../7\" is no number"},
        {STEP NODES " SLURM_PROCID=0 SLURMD_NODENAME=n4", "-- t",
         "SLURMD_NODENAME is n4, which is not in SLURM_STEP_NODELIST; the "
         "variables are of two jobs or were changed"},
        {JOB NODES " SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 "
                   "SLURMD_NODENAME=n3",
         "-- t",
         "srun has started gpulaunch 4 times on 2 nodes; once on each is "
         "right: srun --ntasks-per-node=1 gpulaunch --per-node K starts K "
         "ranks on each; or start it without srun"},
        {STEP NODES " SLURM_PROCID=0 SLURMD_NODENAME=n2", "-N 1 -- t",
         "-N 1: srun has started gpulaunch on 2 nodes, and all of them are in "
         "the job; start fewer, by srun --nodes"},
        {STEP NODES " SLURM_PROCID=0 SLURMD_NODENAME=n2", "-N 3 -- t",
         "-N: 3 nodes are asked for, but SLURM_STEP_NODELIST has 2; ask for "
         "fewer, or name more"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct line l;
        assert_int_not_equal(
            cli_line_parse(&l, rows[i].environment, rows[i].line), 0);
        if (rows[i].text == many) {
            assert_memory_equal(l.err.text, many, strlen(many));
        } else {
            assert_string_equal(l.err.text, rows[i].text);
        }
        plan_release(&l.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
