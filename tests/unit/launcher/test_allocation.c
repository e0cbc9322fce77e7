/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "launcher/allocation.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { VARIABLES_MAX = 8 };

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

static int find(struct allocation *a, const char *const *variables,
                struct gpul_error *err)
{
    union {
        const char *const *variables;
        void *arg;
    } u = {variables};
    return allocation_find(a, look_up, u.arg, err);
}

#define SLURM "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]"
#define GRID "JOB_ID=7", "SGE_ROOT=/sge", "ARC=lx-amd64"
#define BATCH "AWS_BATCH_JOB_NUM_NODES=4", "AWS_BATCH_JOB_MAIN_NODE_INDEX=0"

/* Every scheduler's variables and file, and the nodes that come of them. */
static void test_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *variables[VARIABLES_MAX];
        const char *file; /* contents, where it is a file */
        enum nodes_source source;
        const char *words;
        uint32_t slots; /* of the first node */
    } rows[] = {
        {{SLURM},
         NULL,
         NODES_SLURM,
         "2 nodes of SLURM_JOB_NODELIST, in the order of Slurm: n[1-2]",
         0},
        {{SLURM, "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS_PER_NODE=8"},
         NULL,
         NODES_SLURM,
         "2 nodes of SLURM_JOB_NODELIST, in the order of Slurm: n[1-2]",
         8},
        {{"SLURM_JOBID=7", "SLURM_NODELIST=rack[1-2]n[07-08],x", /* older */
          "SLURM_NNODES=5"},
         NULL,
         NODES_SLURM,
         "5 nodes of SLURM_JOB_NODELIST, in the order of Slurm: "
         "rack1n[07-08],rack2n[07-08],x",
         0},
        {{"PBS_JOBID=7.srv", "PBS_NODEFILE=/f"},
         "b\nb\na\na\n",
         NODES_PBS,
         "2 nodes of /f, in the order of PBS: b,a",
         2},
        {{"LSB_JOBID=7", "LSB_DJOB_HOSTFILE=/f", "LSB_HOSTS=x x"},
         "b\nb\na\n",
         NODES_LSF,
         "2 nodes of /f, in the order of LSF: b,a",
         2},
        {{"LSB_JOBID=7", "LSB_MCPU_HOSTS=b 32 a 16 b 4", "LSB_HOSTS=x x"},
         NULL,
         NODES_LSF,
         "2 nodes of LSB_MCPU_HOSTS, in the order of LSF: b,a",
         36},
        {{"LSB_JOBID=7", "LSB_HOSTS= b b a "},
         NULL,
         NODES_LSF,
         "2 nodes of LSB_HOSTS, in the order of LSF: b,a",
         2},
        {{GRID, "PE_HOSTFILE=/f"},
         "b.x 8 all.q@b.x UNDEFINED\na.x 4 all.q@a.x 0,0:0,1\n"
         "b.x 8 long.q@b.x UNDEFINED\n",
         NODES_GRID_ENGINE,
         "2 nodes of /f, in the order of Grid Engine: b.x,a.x",
         16},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct allocation a;
        struct nodes n = {0};
        struct gpul_buf words;
        const char *file = rows[i].file;
        gpul_buf_init(&words, 1000);
        assert_int_equal(find(&a, rows[i].variables, NULL), 0);
        assert_int_equal(a.source, rows[i].source);
        assert_int_equal(allocation_file(&a) != NULL, file != NULL);
        assert_int_equal(allocation_nodes(&n, &a, file,
                                          file != NULL ? strlen(file) : 0,
                                          NULL),
                         0);
        nodes_describe(&words, &n);
        assert_string_equal(gpul_buf_text(&words), rows[i].words);
        assert_int_equal(n.list[0].slots, rows[i].slots);
        gpul_buf_release(&words);
        nodes_release(&n);
    }
}

/* No job, and what looks like one only at first sight. */
static void test_none(void **state)
{
    (void)state;
    static const char *const rows[][VARIABLES_MAX] = {
        {NULL},
        {"SLURM_JOB_NODELIST=n[1-2]"},
        {"SLURM_JOB_ID="},
        {"PBS_NODEFILE=/f"},
        {GRID},
        {"JOB_ID=7", "PE_HOSTFILE=/f", "SGE_ROOT=/sge"},
        {"FLUX_JOB_ID=f7"},
        {"FLUX_URI=local:///x"},
        {"AWS_BATCH_JOB_ID=x"},
        {"PET_NNODES=4"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct allocation a;
        assert_int_equal(find(&a, rows[i], NULL), 0);
        assert_int_equal(a.source, NODES_NONE);
    }
}

/* Those that name no nodes tell how many, which one, and where the first is.
 * The innermost scheduler counts. */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *variables[VARIABLES_MAX];
        enum nodes_source source;
        const char *job_id;
        uint32_t node_count;
        int index; /* -1: not known */
        const char *first_address;
    } rows[] = {
        {{"FLUX_URI=x", "FLUX_JOB_ID=f7", "FLUX_JOB_NNODES=4", SLURM},
         NODES_FLUX,
         "f7",
         4,
         -1,
         NULL},
        {{"FLUX_URI=x", "FLUX_JOB_ID=f7"}, NODES_FLUX, "f7", 0, -1, NULL},
        {{BATCH, "AWS_BATCH_JOB_NODE_INDEX=0", "AWS_BATCH_JOB_ID=j#0"},
         NODES_AWS_BATCH,
         "j#0",
         4,
         0,
         NULL},
        {{BATCH, "AWS_BATCH_JOB_NODE_INDEX=3",
          "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.9"},
         NODES_AWS_BATCH,
         "",
         4,
         3,
         "10.0.0.9"},
        {{"JOB_COMPLETION_INDEX=0"}, NODES_KUBERNETES, "", 0, 0, NULL},
        {{"JOB_COMPLETION_INDEX=3", "PET_NNODES=4", "PET_MASTER_ADDR=j-0.j"},
         NODES_KUBERNETES,
         "",
         4,
         3,
         "j-0.j"},
        {{"JOB_COMPLETION_INDEX=3", "PET_NNODES=2:4"},
         NODES_KUBERNETES,
         "",
         0,
         3,
         NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct allocation a;
        assert_int_equal(find(&a, rows[i].variables, NULL), 0);
        assert_int_equal(a.source, rows[i].source);
        assert_int_equal(a.shape, ALLOCATION_COUNT);
        assert_string_equal(a.job_id, rows[i].job_id);
        assert_int_equal(a.node_count, rows[i].node_count);
        assert_int_equal(a.has_index ? (int)a.index : -1, rows[i].index);
        if (rows[i].first_address == NULL) {
            assert_null(a.first_address);
        } else {
            assert_string_equal(a.first_address, rows[i].first_address);
        }
    }
}

/* A job that does not say where it is, or says it in a way that cannot be. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *variables[VARIABLES_MAX];
        const char *words;
    } rows[] = {
        {{"SLURM_JOB_ID=7"},
         "SLURM_JOB_ID is set, so this is a job of Slurm, but "
         "SLURM_JOB_NODELIST is not, so its nodes are unknown; name them with "
         "--hosts or --hostfile, or unset SLURM_JOB_ID"},
        {{"PBS_JOBID=7"},
         "PBS_JOBID is set, so this is a job of PBS, but PBS_NODEFILE is not, "
         "so its nodes are unknown; name them with --hosts or --hostfile, or "
         "unset PBS_JOBID"},
        {{"LSB_JOBID=7"},
         "LSB_JOBID is set, so this is a job of LSF, but LSB_DJOB_HOSTFILE is "
         "not, so its nodes are unknown; name them with --hosts or "
         "--hostfile, or unset LSB_JOBID"},
        {{SLURM, "SLURM_JOB_NUM_NODES=-1"},
         "SLURM_JOB_NUM_NODES: \"-1\" is not a whole number from 1 to 131072"},
        {{SLURM, "SLURM_NTASKS_PER_NODE=1e9"},
         "SLURM_NTASKS_PER_NODE: \"1e9\" is not a whole number from 1 to 4096"},
        {{"AWS_BATCH_JOB_NUM_NODES=0"},
         "AWS_BATCH_JOB_NUM_NODES: \"0\" is not a whole number from 1 to "
         "131072"},
        {{BATCH, "AWS_BATCH_JOB_NODE_INDEX=4"},
         "AWS_BATCH_JOB_NODE_INDEX: \"4\" is not a whole number from 0 to 3"},
        {{BATCH},
         "AWS_BATCH_JOB_NUM_NODES is set, so this is a job of AWS Batch, but "
         "AWS_BATCH_JOB_NODE_INDEX is not, so its nodes are unknown; name "
         "them with --hosts or --hostfile, or unset AWS_BATCH_JOB_NUM_NODES"},
        {{BATCH, "AWS_BATCH_JOB_NODE_INDEX=2",
          "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.9;reboot"},
         "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS: \"10.0.0.9;reboot\" is "
         "no IPv4 address"},
        {{"JOB_COMPLETION_INDEX=x"},
         "JOB_COMPLETION_INDEX: \"x\" is not a whole number from 0 to 131071"},
        {{"JOB_COMPLETION_INDEX=4", "PET_NNODES=4"},
         "JOB_COMPLETION_INDEX is 4, but PET_NNODES is 4: the completions of "
         "the Job and the nodes of the training do not fit; make them equal"},
        {{"JOB_COMPLETION_INDEX=1", "PET_MASTER_ADDR=-x y"},
         "PET_MASTER_ADDR: \"-x y\" is no host"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct allocation a;
        struct gpul_error err = {0};
        assert_int_equal(find(&a, rows[i].variables, &err), GPUL_EINVAL);
        assert_string_equal(err.text, rows[i].words);
        assert_int_equal(a.source, NODES_NONE);
    }
}

/* Lists that are hostile, edited or of another job. */
static void test_hostile_lists(void **state)
{
    (void)state;
    static const struct {
        const char *variables[VARIABLES_MAX];
        const char *file;
        const char *words;
    } rows[] = {
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[0-99999999]"},
         NULL,
         "SLURM_JOB_NODELIST: more than 131072 nodes"},
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1,-oProxyCommand=id"},
         NULL,
         "SLURM_JOB_NODELIST, column 4: a host name cannot begin with '-'"},
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=(null)"},
         NULL,
         "SLURM_JOB_NODELIST, column 1: '(' cannot be in a host name"},
        {{SLURM, "SLURM_JOB_NUM_NODES=3"},
         NULL,
         "SLURM_JOB_NODELIST names 2 nodes, but the job of Slurm has 3; the "
         "variables are of two jobs or were changed: name the nodes with "
         "--hosts"},
        {{"PBS_JOBID=7", "PBS_NODEFILE=/f"},
         "",
         "PBS_NODEFILE names no node, though this is a job of PBS; name them "
         "with --hosts or --hostfile"},
        {{"PBS_JOBID=7", "PBS_NODEFILE=/f"},
         "a\nb ppn=2\n",
         "/f:2:3: one name a line, and nothing behind it"},
        {{"PBS_JOBID=7", "PBS_NODEFILE=/f"},
         "a\n`id`\n",
         "/f:2:1: '`' cannot be in a host name"},
        {{"LSB_JOBID=7", "LSB_MCPU_HOSTS=a 2 b"},
         NULL,
         "LSB_MCPU_HOSTS, column 6: a number of slots is missing"},
        {{"LSB_JOBID=7", "LSB_MCPU_HOSTS=a two"},
         NULL,
         "LSB_MCPU_HOSTS, column 3: slots is a number from 1 to 1048576"},
        {{"LSB_JOBID=7", "LSB_MCPU_HOSTS=a 1048576 a 1"},
         NULL,
         "LSB_MCPU_HOSTS: a has more than 1048576 slots"},
        {{"LSB_JOBID=7", "LSB_HOSTS=  "},
         NULL,
         "LSB_HOSTS names no node, though this is a job of LSF; name them "
         "with --hosts or --hostfile"},
        {{"LSB_JOBID=7", "LSB_HOSTS=a:4"},
         NULL,
         "LSB_HOSTS, column 2: ':' cannot be in a host name"},
        {{GRID, "PE_HOSTFILE=/f"},
         "a\n",
         "/f:1:2: a number of slots is missing"},
        {{GRID, "PE_HOSTFILE=/f"},
         "a 4x q\n",
         "/f:1:4: the slots are no number"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct allocation a;
        struct nodes n = {0};
        struct gpul_error err = {0};
        const char *file = rows[i].file;
        assert_int_equal(find(&a, rows[i].variables, NULL), 0);
        assert_int_not_equal(allocation_nodes(&n, &a, file,
                                              file != NULL ? strlen(file) : 0,
                                              &err),
                             0);
        assert_string_equal(err.text, rows[i].words);
        assert_int_equal(n.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),         cmocka_unit_test(test_none),
        cmocka_unit_test(test_counts),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hostile_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
