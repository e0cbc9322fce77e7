/* SPDX-License-Identifier: Apache-2.0
 *
 * Are we inside a scheduler's job, and which nodes has it given us? Pure: a
 * function that looks a variable up, and the contents of one file, in; a list
 * of nodes out.
 *
 * Which variables, by scheduler (the first that is found counts, the
 * innermost first, since one may run inside another):
 *
 *   Flux         FLUX_URI, FLUX_JOB_ID; FLUX_JOB_NNODES
 *   Slurm        SLURM_JOB_ID; SLURM_JOB_NODELIST, SLURM_JOB_NUM_NODES,
 *                SLURM_NTASKS_PER_NODE, SLURM_JOB_END_TIME
 *   PBS, Torque  PBS_JOBID; PBS_NODEFILE
 *   LSF          LSB_JOBID; LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS or LSB_HOSTS
 *   Grid Engine  JOB_ID, SGE_ROOT, ARC and PE_HOSTFILE, all four
 *   AWS Batch    AWS_BATCH_JOB_NUM_NODES; _NODE_INDEX, _MAIN_NODE_INDEX,
 *                _MAIN_NODE_PRIVATE_IPV4_ADDRESS
 *   Kubernetes   JOB_COMPLETION_INDEX (an Indexed Job, a JobSet);
 *                PET_NNODES, PET_MASTER_ADDR (Kubeflow)
 *
 * The last two and Flux name no nodes in variables: they tell how many there
 * are, which one this is, and perhaps where the first one is.
 *
 * A variable may hold anything: whoever can set it may be wrong or hostile.
 * A job without its list is an error, never "one node".
 */
#ifndef LAUNCHER_ALLOCATION_H
#define LAUNCHER_ALLOCATION_H

#include "common/options.h"
#include "launcher/nodes.h"

enum allocation_shape {
    ALLOCATION_EXPRESSION = 1, /* n[1-4] */
    ALLOCATION_WORDS,          /* a a b b */
    ALLOCATION_PAIRS,          /* a 2 b 2 */
    ALLOCATION_LINES,          /* a file: a name a line */
    ALLOCATION_PE_HOSTFILE,    /* a file: name, slots, queue, processors */
    ALLOCATION_COUNT,          /* no names */
};

/* Strings are borrowed from the environment. */
struct allocation {
    enum nodes_source source; /* NODES_NONE: no scheduler's job */
    const char *job_id;       /* "" where there is none */
    enum allocation_shape shape;
    const char *variable; /* that names the nodes, or counts them */
    const char *value;
    uint32_t node_count; /* as the scheduler says; 0: it does not */
    uint32_t slots;      /* ranks a node, if the user asked it; or 0 */
    bool has_index;      /* which of the nodes is this? */
    uint32_t index;      /* from 0 */
    uint32_t end_s;      /* when it ends, since 1970; 0: unknown, or never */
    const char *first_address; /* of node 0; NULL: unknown, or this one */
};

/* Find the job that we are in; none is no failure. Errors: GPUL_EINVAL naming
 * the variable that is missing or wrong. */
int allocation_find(struct allocation *a, gpul_getenv_fn getenv,
                    void *getenv_arg, struct gpul_error *err);

/* The path of the file that names the nodes; NULL: a variable does. */
const char *allocation_file(const struct allocation *a);

/* The nodes; `file` is the contents of allocation_file, if there is one. Not
 * for ALLOCATION_COUNT. Errors: GPUL_EINVAL (a name that is none, a count that
 * does not fit), GPUL_ELIMIT, GPUL_ENOMEM; the list is then empty. */
int allocation_nodes(struct nodes *n, const struct allocation *a,
                     const char *file, size_t file_bytes,
                     struct gpul_error *err);

#endif
