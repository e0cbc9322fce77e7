/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment in which a probe runs NCCL: what is set for it, what the
 * user has set and is only reported, and what he should know about. Pure.
 *
 * A variable of the user's is never changed. Set, where he has not:
 *
 *     NCCL_SOCKET_IFNAME        the node's own interface, "=eth0": without
 *                               the "=" it would match eth01 too
 *     NCCL_IGNORE_NET_MISMATCH  0: nodes with unlike network devices are an
 *                               error, not a silent hang (nccl#2428)
 *     NCCL_DEBUG                INFO, only together with
 *     NCCL_DEBUG_FILE           a file, so that the terminal is left alone
 *
 * Everything else of NCCL's is left to NCCL: what would be tested with
 * another algorithm, protocol or memory is not what training will run.
 */
#ifndef WORKER_GPU_ENV_H
#define WORKER_GPU_ENV_H

#include <stddef.h>

#include "proto/limits.h"

enum {
    GPU_ENV_ADDITIONS_MAX = 4,
    GPU_ENV_WARNINGS_MAX = 3,
    GPU_ENV_SETTING_BYTES = GPUL_FINDING_BYTES_MAX + 1,
};

struct gpu_env_addition {
    const char *name;
    char value[GPUL_PATH_BYTES_MAX + 1];
};

/* `environment` is NULL-terminated "NAME=VALUE"s; `interface` and
 * `debug_file` are "" where unknown. Returns the number written to `out`. */
size_t gpu_env_additions(struct gpu_env_addition out[GPU_ENV_ADDITIONS_MAX],
                         const char *const *environment, const char *interface,
                         const char *debug_file);

/* All NCCL_* that the user has set, as they stand there, made fit to be
 * shown; cut at the bound of a finding. Not NCCL_SOCKET_MAGIC. Returns their
 * number. */
size_t gpu_env_settings(char out[GPUL_SETTINGS_MAX][GPU_ENV_SETTING_BYTES],
                        const char *const *environment);

/* A sentence for each variable of the user's that makes a start or a
 * self-test other than he may think. The texts are constants. */
size_t gpu_env_warnings(const char *out[GPU_ENV_WARNINGS_MAX],
                        const char *const *environment);

#endif
