/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

/* The second of two nodes of a job step with one task a node, as srun starts
 * the agent. */
static const char *const srun[] = {
    "SLURM_JOB_ID=4711",
    "SLURM_JOB_NODELIST=node[1-2]",
    "SLURM_STEP_NODELIST=node[1-2]",
    "SLURM_JOB_NUM_NODES=2",
    "SLURM_NTASKS=2",
    "SLURM_NPROCS=2",
    "SLURM_PROCID=1",
    "SLURM_LOCALID=0",
    "SLURM_NODEID=1",
    "SLURM_TASKS_PER_NODE=1(x2)",
    "SLURM_NTASKS_PER_NODE=1",
    "SLURM_STEP_TASKS_PER_NODE=1(x2)",
    "SLURM_STEP_NUM_TASKS=2",
    "SLURM_GTIDS=1",
    "SLURM_CPU_BIND=quiet,mask_cpu:0x1",
    "SLURM_CPU_BIND_LIST=0x1",
    NULL,
};

static void fixture_under_srun(struct env_fixture *f)
{
    env_fixture_init(f, 2, 8);
    env_fixture_stand_on(f, 1);
    f->in.inherited = srun;
}

/* No rank sees a place under Slurm that is not its own; what is true for the
 * whole job stays, and the old place can be looked up. */
static void test_place_is_taken(void **state)
{
    (void)state;
    struct env_fixture f;
    fixture_under_srun(&f);
    for (uint32_t l = 0; l < 8; l++) {
        struct env_case c;
        env_case_init(&c, &f, l);
        size_t slurm = 0;
        for (char **s = c.env.strings; *s != NULL; s++) {
            slurm += strncmp(*s, "SLURM_", 6) == 0;
        }
        assert_int_equal(slurm, 4);
        assert_string_equal(env_case_value(&c, "SLURM_JOB_ID"), "4711");
        assert_string_equal(env_case_value(&c, "SLURM_JOB_NODELIST"),
                            "node[1-2]");
        assert_string_equal(env_case_value(&c, "SLURM_STEP_NODELIST"),
                            "node[1-2]");
        assert_string_equal(env_case_value(&c, "SLURM_JOB_NUM_NODES"), "2");
        assert_string_equal(env_case_value(&c, "GPULAUNCH_ORIG_SLURM_PROCID"),
                            "1");
        assert_string_equal(env_case_value(&c, "GPULAUNCH_ORIG_SLURM_NODEID"),
                            "1");
        assert_string_equal(env_case_value(&c, "GPULAUNCH_ORIG_SLURM_NTASKS"),
                            "2");
        env_case_release(&c);
    }
    env_fixture_release(&f);
}

/* --emulate=slurm: the five agree with each other and with the rank. */
static void test_emulation(void **state)
{
    (void)state;
    struct env_fixture f;
    fixture_under_srun(&f);
    f.in.emulates_slurm = true;
    for (uint32_t l = 0; l < 8; l++) {
        struct env_case c;
        env_case_init(&c, &f, l);
        char rank[8];
        char local[8];
        snprintf(rank, sizeof(rank), "%u", 8 + l);
        snprintf(local, sizeof(local), "%u", l);
        assert_string_equal(env_case_value(&c, "SLURM_JOB_ID"), "4711");
        assert_string_equal(env_case_value(&c, "SLURM_STEP_NODELIST"),
                            "10.0.0.1,10.0.0.2");
        assert_string_equal(env_case_value(&c, "SLURM_NTASKS"), "16");
        assert_string_equal(env_case_value(&c, "SLURM_PROCID"), rank);
        assert_string_equal(env_case_value(&c, "SLURM_LOCALID"), local);
        assert_null(env_case_value(&c, "SLURM_NODEID"));
        assert_string_equal(env_case_value(&c, "GPULAUNCH_ORIG_SLURM_PROCID"),
                            "1");
        env_case_release(&c);
    }
    env_fixture_release(&f);
}

/* Without Slurm the job gets a number of its own, the same on all nodes. */
static void test_job_number(void **state)
{
    (void)state;
    static const char *const odd[] = {"SLURM_JOB_ID=none", NULL};
    static const char *const *const environments[] = {NULL, odd};
    for (size_t i = 0; i < 2; i++) {
        struct env_fixture f;
        env_fixture_init(&f, 2, 1);
        f.in.inherited = environments[i];
        f.in.emulates_slurm = true;
        struct env_case first;
        struct env_case second;
        env_case_init(&first, &f, 0);
        env_fixture_stand_on(&f, 1);
        env_case_init(&second, &f, 0);
        const char *id = env_case_value(&first, "SLURM_JOB_ID");
        char *end = NULL;
        assert_in_range(strtoul(id, &end, 10), 1, INT32_MAX);
        assert_int_equal(*end, 0);
        assert_string_equal(env_case_value(&second, "SLURM_JOB_ID"), id);
        env_case_release(&first);
        env_case_release(&second);
        env_fixture_release(&f);
    }
}

static bool has_all(const struct env_case *c, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (env_case_value(c, *names) == NULL) {
            return false;
        }
    }
    return true;
}

/* JAX's detection of a cluster, in its order: what an initialize() without
 * arguments would take this process for. */
static const char *jax_cluster(const struct env_case *c)
{
    static const char *const open_mpi[] = {"OMPI_MCA_orte_hnp_uri", NULL};
    static const char *const slurm[] = {"SLURM_JOB_ID",  "SLURM_STEP_NODELIST",
                                        "SLURM_NTASKS",  "SLURM_PROCID",
                                        "SLURM_LOCALID", NULL};
    return has_all(c, open_mpi) ? "open mpi"
           : has_all(c, slurm)  ? "slurm"
                                : "none";
}

/* JAX finds no cluster that another launcher left, and finds the emulated
 * one with the right numbers and the address we give. */
static void test_jax_detection(void **state)
{
    (void)state;
    static const char *const leftovers[] = {"OMPI_MCA_orte_hnp_uri=1.0;tcp://x",
                                            "OMPI_COMM_WORLD_SIZE=1", NULL};
    struct env_fixture f;
    fixture_under_srun(&f);
    struct env_case c;
    env_case_init(&c, &f, 3);
    assert_string_equal(jax_cluster(&c), "none");
    env_case_release(&c);

    f.in.emulates_slurm = true;
    env_case_init(&c, &f, 3);
    assert_string_equal(jax_cluster(&c), "slurm");
    assert_string_equal(env_case_value(&c, "SLURM_PROCID"),
                        env_case_value(&c, "JAX_PROCESS_ID"));
    assert_string_equal(env_case_value(&c, "SLURM_NTASKS"),
                        env_case_value(&c, "JAX_NUM_PROCESSES"));
    assert_string_equal(env_case_value(&c, "JAX_COORDINATOR_ADDRESS"),
                        "10.0.0.1:20009");
    env_case_release(&c);

    f.in.inherited = leftovers;
    env_case_init(&c, &f, 3);
    assert_string_equal(jax_cluster(&c), "slurm");
    env_case_release(&c);
    f.in.emulates_slurm = false;
    env_case_init(&c, &f, 3);
    assert_string_equal(jax_cluster(&c), "none");
    env_case_release(&c);
    env_fixture_release(&f);
}

/* A list of nodes that no variable could hold is refused. */
static void test_too_many_nodes(void **state)
{
    (void)state;
    struct env_fixture f;
    env_fixture_init(&f, 20000, 1);
    f.in.tf_config = ENV_TF_NEVER;
    f.in.emulates_slurm = true;
    struct gpul_error err = {0};
    struct env_plan *plan;
    assert_int_equal(env_plan_create(&plan, &f.in, &err), GPUL_ELIMIT);
    assert_string_equal(err.text, "--emulate=slurm: the list of 20000 nodes "
                                  "takes 228820 bytes, over the 131052 that "
                                  "Linux allows for one variable");
    env_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_is_taken),
        cmocka_unit_test(test_emulation),
        cmocka_unit_test(test_job_number),
        cmocka_unit_test(test_jax_detection),
        cmocka_unit_test(test_too_many_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
