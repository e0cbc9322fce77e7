/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "launcher/srunenv.h"

/* What names the job, what is the user's own, and what only looks like an
 * option reaches srun; options do not; those that ranks look at come back. */
static void test_judge(void **state)
{
    (void)state;
    static const struct {
        const char *assignment;
        enum srunenv_use use;
    } rows[] = {
        {"PATH=/bin", SRUNENV_PASSED},
        {"NTASKS=4", SRUNENV_PASSED},
        {"MY_SLURM_NTASKS=4", SRUNENV_PASSED},
        {"SRUNNER=x", SRUNENV_PASSED},
        {"SLURM_JOB_ID=7", SRUNENV_PASSED},
        {"SLURM_JOB_NODELIST=n[1-2]", SRUNENV_PASSED},
        {"SLURM_JOB_NUM_NODES=2", SRUNENV_PASSED},
        {"SLURM_CONF=/etc/slurm/slurm.conf", SRUNENV_PASSED},
        {"SLURM_ARRAY_TASK_ID=1", SRUNENV_PASSED},
        {"SLURM_SPANK_X=1", SRUNENV_PASSED},
        {"SLURM_NETWORK=job_vni", SRUNENV_PASSED},
        {"SLURM_NTASKS_OF_MINE=1", SRUNENV_PASSED},
        {"SRUN_CONTAINER=/bundle", SRUNENV_PASSED},
        {"SLURM_NTASKS=8", SRUNENV_DROPPED},
        {"SLURM_NTASKS_PER_GPU=1", SRUNENV_DROPPED},
        {"SLURM_CPU_BIND=quiet,mask_cpu:0x1", SRUNENV_DROPPED},
        {"SLURM_GPU_BIND=none", SRUNENV_DROPPED},
        {"SLURM_STDERRMODE=/tmp/x", SRUNENV_DROPPED},
        {"SLURM_BCAST=/tmp/x", SRUNENV_DROPPED},
        {"SLURM_EXACT=", SRUNENV_DROPPED},
        {"SRUN_CPUS_PER_TASK=2", SRUNENV_DROPPED},
        {"SRUN_OPTION_OF_TOMORROW=2", SRUNENV_DROPPED},
        {"SLURM_NTASKS_HET_GROUP_0=2", SRUNENV_DROPPED},
        {"SLURM_GPUS_PER_TASK_PACK_GROUP_1=2", SRUNENV_ASKED},
        {"SLURM_GPUS_PER_TASK=1", SRUNENV_ASKED},
        {"SLURM_MEM_PER_CPU=1024", SRUNENV_ASKED},
        {"SLURM_CPUS_PER_TASK=1", SRUNENV_ASKED},
        {"SLURM_JOB_NAME=a_HET_GROUP_0", SRUNENV_PASSED},
        {"SLURM_NTASKS", SRUNENV_DROPPED},
        {"", SRUNENV_PASSED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(srunenv_judge(rows[i].assignment), rows[i].use);
    }
}

enum { VARIABLES_MAX = 5 };

static const char *look_up(void *arg, const char *name)
{
    const char *const *variables = arg;
    size_t n = strlen(name);
    for (int i = 0; i < VARIABLES_MAX && variables[i] != NULL; i++) {
        if (strncmp(variables[i], name, n) == 0 && variables[i][n] == '=') {
            return variables[i] + n + 1;
        }
    }
    return NULL;
}

/* All GPUs of the job on each node, or no word where that is not known. */
static void test_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *variables[VARIABLES_MAX];
        const char *option; /* NULL: none */
    } rows[] = {
        {{NULL}, NULL},
        {{"SLURM_GPUS_PER_NODE=4", "SLURM_GPUS_PER_TASK=1",
          "SLURM_TASKS_PER_NODE=4"},
         NULL},
        {{"SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=4(x3)"},
         "--gpus-per-node=4"},
        {{"SLURM_GPUS_PER_TASK=a100:2", "SLURM_TASKS_PER_NODE=4"},
         "--gpus-per-node=a100:8"},
        {{"SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=4(x3),2"}, NULL},
        {{"SLURM_GPUS_PER_TASK=a:1,b:2", "SLURM_TASKS_PER_NODE=2(x2)"}, NULL},
        {{"SLURM_GPUS_PER_TASK=1"}, NULL},
        {{"SLURM_NTASKS_PER_GPU=2", "SLURM_TASKS_PER_NODE=3(x2)"},
         "--gpus-per-node=2"},
        {{"SLURM_NTASKS_PER_GPU=2"}, NULL},
        {{"SLURM_GPUS=8", "SLURM_GPUS_ON_NODE=4", "SLURM_JOB_NUM_NODES=2"},
         "--gpus-per-node=4"},
        {{"SLURM_GPUS=7", "SLURM_GPUS_ON_NODE=4", "SLURM_JOB_NUM_NODES=2"},
         NULL},
        {{"SLURM_GPUS=8", "SLURM_JOB_NUM_NODES=2"}, NULL},
        {{"SLURM_GPUS_ON_NODE=4", "SLURM_JOB_NUM_NODES=2"}, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char option[SRUNENV_GPUS_BYTES];
        union {
            const char *const *variables;
            void *arg;
        } u = {rows[i].variables};
        bool is_said = srunenv_gpus(option, look_up, u.arg);
        assert_int_equal(is_said, rows[i].option != NULL);
        if (is_said) {
            assert_string_equal(option, rows[i].option);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
