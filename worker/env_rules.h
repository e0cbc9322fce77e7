/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule files: each claims the variables of one framework or concern.
 * What each variable means, who reads it and where that is written stands in
 * docs/environment.md.
 */
#ifndef WORKER_ENV_RULES_H
#define WORKER_ENV_RULES_H

#include <stdbool.h>

#include "worker/env_plan.h"

/* Is the input sound? Fails the plan if not. */
void env_check(struct env_plan *p);

void env_job_add(struct env_plan *p);        /* GPULAUNCH_* */
void env_torch_add(struct env_plan *p);      /* PyTorch and its kin */
void env_tensorflow_add(struct env_plan *p); /* TF_CONFIG */
/* --tf-config=file: room that a rank's path and text take (0: no files), and
 * writing both there. */
size_t env_tensorflow_file_bytes(const struct env_plan *p);
void env_tensorflow_put_file(struct env *e, char *out, const struct env_plan *p,
                             uint32_t local_rank);
void env_devices_add(struct env_plan *p); /* CUDA_VISIBLE_DEVICES */
void env_jax_add(struct env_plan *p);     /* after env_devices_add */
void env_horovod_add(struct env_plan *p);
void env_nccl_add(struct env_plan *p); /* NCCL_SOCKET_MAGIC */
void env_threads_add(
    struct env_plan *p);                /* defaults of the language run-times */
void env_slurm_add(struct env_plan *p); /* --emulate=slurm, copies of the old */
void env_proxy_add(struct env_plan *p); /* no_proxy */

/* Why an inherited variable without a claim must not reach the ranks, or
 * NULL. `is_notable`: the user is told. */
const char *env_scrub_rule(const struct env_plan *p, const char *name,
                           bool *is_notable);

/* Does this variable tell a process its place under Slurm? */
bool env_is_slurm_place(const char *name);

#endif
