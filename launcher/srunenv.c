/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/srunenv.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "proto/limits.h"

/* After SLURM_. Not here, though options: what names the job and its account,
 * what is a matter of the whole job (SLURM_NETWORK, SLURM_NO_KILL), clocks,
 * accounting, prologs. */
static const char *const asked[] = {
    "CPUS_PER_GPU",  "CPUS_PER_TASK",    "GPUS",
    "GPUS_PER_NODE", "GPUS_PER_SOCKET",  "GPUS_PER_TASK",
    "GRES",          "MEM_PER_CPU",      "MEM_PER_GPU",
    "MEM_PER_NODE",  "THREADS_PER_CORE", "TRES_PER_TASK",
};

static const char *const dropped[] = {
    "ARBITRARY_NODELIST",
    "BCAST",
    "BCAST_EXCLUDE",
    "COMPRESS",
    "CONSTRAINT",
    "CORE_SPEC",
    "CPU_BIND",
    "CPU_BIND_LIST",
    "CPU_BIND_TYPE",
    "CPU_BIND_VERBOSE",
    "DISTRIBUTION",
    "DIST_PLANESIZE",
    "EXACT",
    "EXCLUSIVE",
    "EXPORT_ENV",
    "GPU_BIND",
    "GRES_FLAGS",
    "HINT",
    "HOSTFILE",
    "IMMEDIATE",
    "KILL_BAD_EXIT",
    "LABELIO",
    "MEM_BIND",
    "MEM_BIND_LIST",
    "MEM_BIND_PREFER",
    "MEM_BIND_SORT",
    "MEM_BIND_TYPE",
    "MEM_BIND_VERBOSE",
    "MPI_TYPE",
    "NCORES_PER_SOCKET",
    "NPROCS",
    "NSOCKETS_PER_NODE",
    "NTASKS",
    "NTASKS_PER_CORE",
    "NTASKS_PER_GPU",
    "NTASKS_PER_NODE",
    "NTASKS_PER_SOCKET",
    "NTASKS_PER_TRES",
    "OPEN_MODE",
    "OVERCOMMIT",
    "OVERLAP",
    "REMOTE_CWD",
    "RESV_PORTS",
    "SEND_LIBS",
    "SIGNAL",
    "SPREAD_JOB",
    "SRUN_MULTI",
    "STDERRMODE",
    "STDINMODE",
    "STDOUTMODE",
    "STEP_GRES",
    "THREAD_SPEC",
    "TIMELIMIT",
    "TRES_BIND",
    "UNBUFFEREDIO",
    "USE_MIN_NODES",
    "WAIT",
    "WORKING_DIR",
};

static bool is_in(const char *const *list, size_t count, const char *name,
                  size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == bytes && strncmp(list[i], name, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Without what says of which part of a heterogeneous job it is. */
static size_t name_bytes(const char *name)
{
    static const char *const groups[] = {"_HET_GROUP_", "_PACK_GROUP_"};
    size_t bytes = strcspn(name, "=");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const char *at = strstr(name, groups[i]);
        if (at != NULL && (size_t)(at - name) < bytes) {
            bytes = (size_t)(at - name);
        }
    }
    return bytes;
}

enum srunenv_use srunenv_judge(const char *assignment)
{
    static const char slurm[] = "SLURM_";
    if (begins(assignment, "SRUN_")) {
        /* The user's command is to run in that container. */
        return begins(assignment, "SRUN_CONTAINER") ? SRUNENV_PASSED
                                                    : SRUNENV_DROPPED;
    }
    if (!begins(assignment, slurm)) {
        return SRUNENV_PASSED;
    }
    const char *name = assignment + sizeof(slurm) - 1;
    size_t bytes = name_bytes(name);
    if (is_in(asked, sizeof(asked) / sizeof(asked[0]), name, bytes)) {
        return SRUNENV_ASKED;
    }
    return is_in(dropped, sizeof(dropped) / sizeof(dropped[0]), name, bytes)
               ? SRUNENV_DROPPED
               : SRUNENV_PASSED;
}

/* ---- GPUs ---------------------------------------------------------------- */

enum { TYPE_BYTES_MAX = 48 };

struct lookup {
    gpul_getenv_fn getenv;
    void *arg;
};

static const char *get(const struct lookup *l, const char *name)
{
    const char *value = l->getenv(l->arg, name);
    return value != NULL ? value : "";
}

/* 0: it is not set, or is something else. */
static uint32_t get_count(const struct lookup *l, const char *name)
{
    uint32_t count;
    return gpul_parse_count(&count, get(l, name), 1, GPUL_RANKS_MAX, NULL) == 0
               ? count
               : 0;
}

/* "2(x3)" of nodes with the same number of tasks. 0: of others. */
static uint32_t tasks_per_node(const struct lookup *l)
{
    char number[16];
    const char *value = get(l, "SLURM_TASKS_PER_NODE");
    size_t bytes = strcspn(value, "(,");
    uint32_t count;
    if (strchr(value, ',') != NULL || bytes >= sizeof(number)) {
        return 0;
    }
    memcpy(number, value, bytes);
    number[bytes] = '\0';
    return gpul_parse_count(&count, number, 1, GPUL_RANKS_MAX, NULL) == 0
               ? count
               : 0;
}

/* "a100:2" for so many tasks: 2 * tasks. *type is as long as that says. */
static uint32_t of_tasks(const char *per_task, int *type_bytes, uint32_t tasks)
{
    const char *colon = strrchr(per_task, ':');
    const char *number = colon != NULL ? colon + 1 : per_task;
    uint32_t count;
    if (strchr(per_task, ',') != NULL || number - per_task > TYPE_BYTES_MAX ||
        gpul_parse_count(&count, number, 1, GPUL_RANKS_PER_NODE_MAX, NULL) !=
            0) {
        return 0; /* of several types, or no number */
    }
    *type_bytes = (int)(number - per_task);
    return count * tasks;
}

/* Where the batch script runs there are just as many as each node would have
 * if all had the same. */
static uint32_t of_sum(const struct lookup *l)
{
    uint32_t here = get_count(l, "SLURM_GPUS_ON_NODE");
    uint64_t all = (uint64_t)here * get_count(l, "SLURM_JOB_NUM_NODES");
    return all == get_count(l, "SLURM_GPUS") ? here : 0;
}

bool srunenv_gpus(char option[SRUNENV_GPUS_BYTES], gpul_getenv_fn getenv,
                  void *arg)
{
    const struct lookup l = {getenv, arg};
    const char *per_task = get(&l, "SLURM_GPUS_PER_TASK");
    uint32_t shared_by = get_count(&l, "SLURM_NTASKS_PER_GPU");
    uint32_t tasks = tasks_per_node(&l);
    int type_bytes = 0;
    uint32_t count = 0;
    if (get(&l, "SLURM_GPUS_PER_NODE")[0] != '\0') {
        return false;
    }
    if (per_task[0] != '\0') {
        count = of_tasks(per_task, &type_bytes, tasks);
    } else if (shared_by > 0) {
        count = (tasks + shared_by - 1) / shared_by;
    } else {
        count = of_sum(&l);
    }
    snprintf(option, SRUNENV_GPUS_BYTES, "--gpus-per-node=%.*s%" PRIu32,
             type_bytes, per_task, count);
    return count > 0;
}
