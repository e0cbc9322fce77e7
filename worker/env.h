/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a rank: what every framework expects, which rule set,
 * kept, replaced or dropped each variable. Pure: everything comes in through
 * `struct env_input`. The same call serves a launch and `gpulaunch env`.
 *
 * Rules, strongest first:
 *   1. -x NAME=VALUE of the user wins over everything (KEPT, "given with -x").
 *   2. Identity variables (RANK, MASTER_ADDR, TF_CONFIG, ...) are ours; an
 *      inherited value that disagrees is REPLACED, with one notice.
 *   3. Tuning variables (OMP_NUM_THREADS, ...) are SET only where the user
 *      has none; an inherited value is KEPT, with one notice.
 *   4. Leftovers of other launchers (PMI_*, OMPI_COMM_WORLD_*, stale
 *      SLURM_*, PET_*, ...) are DROPPED, with one notice for all.
 *   5. All else is INHERITED untouched.
 * Source of the variables: docs/environment.md names each one's reader.
 */
#ifndef WORKER_ENV_H
#define WORKER_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/rolemap.h"

/* The world of this generation; arrays have node_count entries. */
struct env_world {
    const char *job_id;
    uint32_t node_count;
    uint32_t world_size;
    const char *const *addresses; /* literals, by node rank */
    const uint16_t *port_bases;   /* each node's first leased port */
    const uint32_t *rank_counts;
    const uint32_t *first_ranks;
    struct gpul_rolemap roles;
    uint32_t host_count; /* distinct hosts */
    uint32_t generation;
    uint32_t restart_count;
    uint32_t max_restarts;
};

/* This node. */
struct env_node {
    uint32_t node_rank;
    const char *node_name;
    uint32_t cores;           /* usable by this process */
    uint32_t host_rank_count; /* ranks of the job on this host */
    uint32_t host_node_index; /* this node among those on its host */
    uint32_t host_node_count;
    const char *const *devices; /* visible GPUs: "0", "1" or as restricted */
    uint32_t device_count;
    bool devices_are_restricted; /* CUDA_VISIBLE_DEVICES was inherited */
    const char *interface; /* name that holds this node's address, or NULL */
};

enum env_tf_config { /* as gpul.Environment.TfConfig */
                     ENV_TF_AUTO = 0,
                     ENV_TF_ALWAYS = 1,
                     ENV_TF_NEVER = 2,
                     ENV_TF_FILE = 3,
};

enum env_devices { /* as gpul.Environment.Devices */
                   ENV_DEVICES_AUTO = 0,
                   ENV_DEVICES_LEAVE = 1,
                   ENV_DEVICES_RANK = 2,
                   ENV_DEVICES_NODE = 3,
};

struct env_variable {
    const char *name;
    const char *value;
};

struct env_input {
    struct env_world world;
    struct env_node node;
    enum env_tf_config tf_config;
    bool tf_evaluator_in_cluster;
    enum env_devices devices;
    bool emulates_slurm;
    const char *nccl_magic; /* NCCL_SOCKET_MAGIC of the job, "" if it is not to
                               be shown; NULL: none */
    uint32_t beat_fd;       /* that a rank may beat through; 0: none */
    uint32_t metric_fd;     /* that it tells its figure by; 0: none */
    const char *const *command;      /* argv, NULL-terminated, or NULL */
    const char *tf_config_dir;       /* mode FILE: where the files will be */
    const char *error_dir;           /* where torch writes, NULL: nowhere */
    const char *const *inherited;    /* "NAME=VALUE", NULL-terminated */
    const struct env_variable *user; /* -x */
    size_t user_count;
};

enum env_action { /* as gpul.EnvEntry.Action */
                  ENV_SET = 1,
                  ENV_KEPT = 2,
                  ENV_REPLACED = 3,
                  ENV_DROPPED = 4,
                  ENV_INHERITED = 5,
};

struct env_entry {
    const char *name;
    const char *value; /* what the rank gets; for DROPPED: what it had */
    enum env_action action;
    const char *rule; /* why, a short phrase */
};

/* What is the same for all ranks of the node, built once a generation: the
 * TF_CONFIG cluster, the sorted inherited environment. Opaque. */
struct env_plan;

/* `in` and all it points to must outlive the plan. Errors: GPUL_EINVAL
 * (a loopback address while host_count > 1, roles that do not add up to the
 * world, uneven device counts), GPUL_ELIMIT (TF_CONFIG over Linux's 128 KiB
 * for one string: the text has the length, the limit, the number of tasks
 * that would fit and the way out), GPUL_ENOMEM. */
int env_plan_create(struct env_plan **out, const struct env_input *in,
                    struct gpul_error *err);
void env_plan_destroy(struct env_plan *plan);

/* Lines for the user that hold for all ranks of the node (what was kept,
 * replaced, dropped; proxies; devices). Borrowed from the plan. Each is
 * printable ASCII and shorter than GPUL_TEXT_BYTES_MAX. */
size_t env_plan_notices(const struct env_plan *plan,
                        const char *const **notices);

/* The environment of one local rank. What is the same for all ranks is
 * borrowed from the plan, so it must not outlive the plan. */
struct env {
    struct env_entry *entries; /* sorted by name; DROPPED ones included */
    size_t count;
    char **strings;       /* NULL-terminated "NAME=VALUE", for exec */
    char *tf_config_path; /* mode FILE: to be written before exec, or NULL */
    const char *tf_config_text; /* its content */
    void *memory;               /* one block that holds what is this rank's */
};

/* `local_rank` is below the node's rank count. Errors: GPUL_ENOMEM. */
int env_build(struct env *out, const struct env_plan *plan, uint32_t local_rank,
              struct gpul_error *err);
void env_release(struct env *e);

#endif
