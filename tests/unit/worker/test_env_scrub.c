/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "tests/unit/worker/env_fixture.h"

static const char *const no_command[] = {NULL};

/* What becomes of one inherited variable, and what the user is told. */
static void assert_fate(const char *name, const char *const *command,
                        bool is_dropped, const char *notices)
{
    char string[128];
    snprintf(string, sizeof(string), "%s=1", name);
    const char *const inherited[] = {string, NULL};
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.inherited = inherited;
    f.in.command = command;
    struct env_case c;
    env_case_init(&c, &f, 0);
    const struct env_entry *entry = env_case_entry(&c, name);
    if (entry == NULL) {
        fail_msg("%s: no entry", name);
        return;
    }
    if (entry->action != (is_dropped ? ENV_DROPPED : ENV_INHERITED)) {
        fail_msg("%s: action %d", name, (int)entry->action);
    }
    assert_int_equal(env_case_value(&c, name) == NULL, is_dropped);
    assert_string_equal(env_case_notices(&c), notices);
    env_case_release(&c);
    env_fixture_release(&f);
}

/* What other launchers leave behind does not reach a rank, and is named. */
static void test_leftovers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "PMI_RANK",
        "PMI_SIZE",
        "PMI_FD",
        "PMIX_RANK",
        "PMIX_NAMESPACE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_MCA_orte_hnp_uri",
        "OMPI_MCA_ess_base_vpid",
        "OMPI_UNIVERSE_SIZE",
        "MV2_COMM_WORLD_RANK",
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "FLUX_TASK_RANK",
        "FLUX_TASK_LOCAL_ID",
        "JSM_NAMESPACE_RANK",
        "PALS_RANKID",
        "PALS_LOCAL_RANKID",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_NODEID",
        "SLURM_NTASKS",
        "SLURM_NPROCS",
        "SLURM_NTASKS_PER_NODE",
        "SLURM_TASKS_PER_NODE",
        "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_GTIDS",
        "SLURM_TASK_PID",
        "SLURM_CPU_BIND",
        "SLURM_CPU_BIND_LIST",
        "SLURM_CPU_BIND_TYPE",
        "SLURM_CPU_BIND_VERBOSE",
        "PET_NNODES",
        "PET_NODE_RANK",
        "TORCHELASTIC_ERROR_FILE",
        "HOROVOD_ELASTIC",
        "JAX_COORDINATOR_PORT",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char notice[128];
        snprintf(notice, sizeof(notice), "not passed on to the ranks: %s\n",
                 names[i]);
        assert_fate(names[i], no_command, true, notice);
    }
}

/* What a job or a user sets stays: nothing is taken by a mere likeness. */
static void test_bystanders(void **state)
{
    (void)state;
    static const char *const names[] = {
        "SLURM_JOB_ID",
        "SLURM_JOB_NODELIST",
        "SLURM_STEP_NODELIST",
        "SLURM_JOB_NUM_NODES",
        "SLURM_CPUS_PER_TASK",
        "SLURM_CPUS_ON_NODE",
        "SLURM_PROCID2",
        "OMPI_MCA_btl",
        "PMI",
        "PETS",
        "GPULAUNCH",
        "TORCHELASTIC_ENABLE_FILE_TIMER",
        "HOROVOD_FUSION_THRESHOLD",
        "JAX_PLATFORMS",
        "NCCL_DEBUG",
        "NCCL_SOCKET_IFNAME",
        "OMP_PROC_BIND",
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_fate(names[i], no_command, false, "");
    }
}

/* gpulaunch's own options do not reach a gpulaunch inside the job, and the
 * user, who set them, is not told. */
static void test_own(void **state)
{
    (void)state;
    assert_fate("GPULAUNCH_NODES", no_command, true, "");
    assert_fate("GPULAUNCH_ORIG_SLURM_PROCID", no_command, true, "");
    assert_fate("GPULAUNCH_TF_CONFIG_FILE", no_command, true, "");
}

/* PET_* is torchrun's input: it stays where the command is torchrun. */
static void test_torchrun(void **state)
{
    (void)state;
    static const struct {
        const char *command[6];
        bool is_torchrun;
    } rows[] = {
        {{"torchrun", "train.py", NULL}, true},
        {{"/opt/venv/bin/torchrun", "train.py", NULL}, true},
        {{"python3", "-m", "torch.distributed.run", "train.py", NULL}, true},
        {{"python", "-u", "-m", "torch.distributed.launch", NULL}, true},
        {{"numactl", "--membind=0", "torchrun", "train.py", NULL}, true},
        {{"python3", "train.py", NULL}, false},
        {{"./torchrun.py", NULL}, false},
        {{"mytorchrun", NULL}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool stays = rows[i].is_torchrun;
        assert_fate("PET_NNODES", rows[i].command, !stays,
                    stays ? "" : "not passed on to the ranks: PET_NNODES\n");
    }
    assert_fate("PET_NNODES", NULL, true,
                "not passed on to the ranks: PET_NNODES\n");
    assert_fate("PMI_RANK", rows[0].command, true,
                "not passed on to the ranks: PMI_RANK\n");
}

/* All that is dropped is one line, which is cut where it grows too long. */
static void test_one_line(void **state)
{
    (void)state;
    static char strings[100][64];
    static const char *inherited[101];
    for (int i = 0; i < 100; i++) {
        snprintf(strings[i], sizeof(strings[i]),
                 "PMI_A_LONG_NAME_OF_33_%011d=", i);
        inherited[i] = strings[i];
    }
    struct env_fixture f;
    env_fixture_init(&f, 2, 1);
    f.in.inherited = inherited;
    struct env_case c;
    env_case_init(&c, &f, 0);
    const char *text = env_case_notices(&c);
    assert_true(strlen(text) < GPUL_TEXT_BYTES_MAX);
    assert_memory_equal(text,
                        "not passed on to the ranks: "
                        "PMI_A_LONG_NAME_OF_33_00000000000, "
                        "PMI_A_LONG_NAME_OF_33_00000000001, ",
                        28 + 2 * 35);
    assert_string_equal(strstr(text, "00024"), "00024 and 75 more\n");
    env_case_release(&c);
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leftovers), cmocka_unit_test(test_bystanders),
        cmocka_unit_test(test_own),       cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
