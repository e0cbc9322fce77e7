/* SPDX-License-Identifier: Apache-2.0
 *
 * What of the environment srun would take for options of its own: sbatch and
 * salloc leave in it what the job was asked for, and a srun within the job
 * reads it as what its step is to be. Ours is one worker a node with all that
 * the job has there, whatever tasks the user has asked for. Pure.
 *
 * Source: INPUT ENVIRONMENT VARIABLES of srun(1), Slurm 20.11 to 25.05.
 */
#ifndef LAUNCHER_SRUNENV_H
#define LAUNCHER_SRUNENV_H

#include <stdbool.h>

#include "common/options.h"

enum srunenv_use {
    /* None of srun's options, one that says which job this is, or one that
     * changes nothing of how our worker is started. */
    SRUNENV_PASSED = 0,
    /* What the job was asked for: srun must not see it, ranks may look. */
    SRUNENV_ASKED,
    SRUNENV_DROPPED,
};

/* `assignment` is NAME=VALUE. */
enum srunenv_use srunenv_judge(const char *assignment);

enum { SRUNENV_GPUS_BYTES = 80 };

/* The option that asks for all GPUs that the job has on each node, from the
 * variables of the job. A step that does not ask has as many as the job has for
 * one of its tasks, where GPUs were asked for by the task; with --overlap and
 * GPUs asked for as a sum Slurm 22.05 leaves some out. False: it is not needed,
 * or the nodes may have different numbers, for which srun has no word. */
bool srunenv_gpus(char option[SRUNENV_GPUS_BYTES], gpul_getenv_fn getenv,
                  void *arg);

#endif
