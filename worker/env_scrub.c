/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables that tell a process its place and were left by another launcher.
 * A program that found them would take them for its own.
 */
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"

enum kind { LEFTOVER, SLURM_PLACE, OWN, TORCHRUN };

static const char *const reasons[] = {
    [LEFTOVER] = "left by another launcher",
    [SLURM_PLACE] = "Slurm: the place of gpulaunch itself, not of a rank",
    [OWN] = "gpulaunch: for gpulaunch itself, not for the command",
    [TORCHRUN] = "torchrun: input of torchrun, which is not started here",
};

/* A trailing "*" stands for any rest. */
static const struct {
    const char *pattern;
    enum kind kind;
} table[] = {
    {"FLUX_TASK_*", LEFTOVER},
    {"GPULAUNCH_*", OWN},
    {"JSM_NAMESPACE_*", LEFTOVER},
    {"MPI_LOCALNRANKS", LEFTOVER},
    {"MPI_LOCALRANKID", LEFTOVER},
    {"MV2_COMM_WORLD_*", LEFTOVER},
    {"OMPI_COMM_WORLD_*", LEFTOVER},
    {"OMPI_MCA_ess_*", LEFTOVER},
    {"OMPI_MCA_orte_*", LEFTOVER}, /* JAX takes its presence for Open MPI */
    {"OMPI_UNIVERSE_SIZE", LEFTOVER},
    {"PALS_LOCAL_RANKID", LEFTOVER},
    {"PALS_RANKID", LEFTOVER},
    {"PET_*", TORCHRUN},
    {"PMIX_*", LEFTOVER},
    {"PMI_*", LEFTOVER},
    {"SLURM_CPU_BIND*", SLURM_PLACE},
    {"SLURM_GTIDS", SLURM_PLACE},
    {"SLURM_LOCALID", SLURM_PLACE},
    {"SLURM_NODEID", SLURM_PLACE},
    {"SLURM_NPROCS", SLURM_PLACE},
    {"SLURM_NTASKS", SLURM_PLACE},
    {"SLURM_NTASKS_PER_*", SLURM_PLACE},
    {"SLURM_PROCID", SLURM_PLACE},
    {"SLURM_STEP_NUM_TASKS", SLURM_PLACE},
    {"SLURM_STEP_TASKS_PER_NODE", SLURM_PLACE},
    {"SLURM_TASKS_PER_NODE", SLURM_PLACE},
    {"SLURM_TASK_PID", SLURM_PLACE},
    {"TORCHELASTIC_ERROR_FILE", LEFTOVER},
};

static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0
                                 : strcmp(pattern, name) == 0;
}

static bool find(const char *name, enum kind *kind)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (matches(table[i].pattern, name)) {
            *kind = table[i].kind;
            return true;
        }
    }
    return false;
}

/* Also behind a wrapper: numactl torchrun, python -m torch.distributed.run. */
static bool starts_torchrun(const char *const *command)
{
    for (size_t i = 0; command != NULL && command[i] != NULL; i++) {
        const char *slash = strrchr(command[i], '/');
        const char *base = slash == NULL ? command[i] : slash + 1;
        if (strcmp(base, "torchrun") == 0 ||
            strcmp(command[i], "torch.distributed.run") == 0 ||
            strcmp(command[i], "torch.distributed.launch") == 0) {
            return true;
        }
    }
    return false;
}

const char *env_scrub_rule(const struct env_plan *p, const char *name,
                           bool *is_notable)
{
    enum kind kind = OWN;
    if (!find(name, &kind) ||
        (kind == TORCHRUN && starts_torchrun(p->in->command))) {
        return NULL;
    }
    *is_notable = kind != OWN;
    return reasons[kind];
}

bool env_is_slurm_place(const char *name)
{
    enum kind kind = OWN;
    return find(name, &kind) && kind == SLURM_PLACE;
}
