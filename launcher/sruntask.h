/* SPDX-License-Identifier: Apache-2.0
 *
 * Is this gpulaunch one task of many that srun has started? Then task 0 is the
 * front end and a node, and every other task is a node of that job. Pure.
 *
 * Sources: srun(1), OUTPUT ENVIRONMENT VARIABLES.
 *   SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST, SLURM_PROCID, SLURMD_NODENAME,
 *   SLURM_STEP_ID: of the step and of this task.
 *   SLURM_CLUSTER_NAME, SLURM_RESTART_COUNT, SLURM_JOB_START_TIME,
 *   SLURM_SRUN_COMM_HOST, SLURM_SRUN_COMM_PORT: the same for all tasks of a
 *   step, other ones for an earlier run with the numbers of this (a job that
 *   was requeued, a cluster that counts from 1 again).
 */
#ifndef LAUNCHER_SRUNTASK_H
#define LAUNCHER_SRUNTASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "launcher/allocation.h"
#include "launcher/nodes.h"

enum { SRUNTASK_NAME_BYTES = 64, SRUNTASK_RUN_BYTES = 256 };

/* All zero: srun has started one task, or none. */
struct sruntask {
    uint32_t count;        /* tasks of the step; 0: this is none of many */
    uint32_t task;         /* SLURM_PROCID */
    uint32_t node;         /* of the step's list: this one */
    const char *node_name; /* borrowed from the environment */
    char name[SRUNTASK_NAME_BYTES]; /* "slurm-JOB.STEP", fit for a file */
    char run[SRUNTASK_RUN_BYTES];   /* tells this run of the step from others */
};

/* Look at the environment of a job of Slurm; where srun has started many, the
 * list in `a` becomes that of the step. Errors: GPUL_EINVAL naming the
 * variable that is missing or wrong. */
int sruntask_find(struct sruntask *t, struct allocation *a,
                  gpul_getenv_fn getenv, void *getenv_arg,
                  struct gpul_error *err);

/* With the step's nodes known: one task on each, and this on one of them.
 * Errors: GPUL_EINVAL, with what to do. */
int sruntask_settle(struct sruntask *t, const struct nodes *nodes,
                    struct gpul_error *err);

/* Does task 0 do this one's work, but for being a node? */
bool sruntask_is_guest(const struct sruntask *t);

#endif
