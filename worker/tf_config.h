/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of TF_CONFIG: one JSON object without spaces,
 *
 *   {"cluster":{"chief":["h:p"],"worker":["h:p",...],"ps":[...]},
 *    "task":{"type":"worker","index":0}}
 *
 * `cluster` is the same in all copies, so it is written once for a node and
 * copied for each rank. An evaluator is not part of the cluster; on request
 * it stands in the evaluator's own copy. Pure.
 *
 * Source of the schema: TensorFlow's
 * python/distribute/cluster_resolver/tfconfig_cluster_resolver.py.
 */
#ifndef WORKER_TF_CONFIG_H
#define WORKER_TF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/env.h"

/* The longest value that exec accepts for this name: Linux allows 128 KiB
 * for one string (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h), and the
 * string holds the name, "=" and the final NUL as well. */
enum { TF_CONFIG_BYTES_MAX = 128 * 1024 - (int)sizeof("TF_CONFIG=") };

struct tf_config {
    const struct env_world *world; /* borrowed */
    char *cluster;                 /* up to and without "}" of "cluster" */
    size_t cluster_bytes;
    char *evaluator; /* what the evaluator's own copy adds, or NULL */
    size_t evaluator_bytes;
};

/* `world` is valid (env_plan_create checks it) and outlives the object.
 * Errors: GPUL_ENOMEM. */
int tf_config_init(struct tf_config *c, const struct env_world *world,
                   bool evaluator_in_cluster);
/* All zero is fine. */
void tf_config_release(struct tf_config *c);

/* Length of the longest copy of the whole world, so that all nodes come to
 * the same verdict on it. */
size_t tf_config_bytes_max(const struct tf_config *c);

/* Tasks of the cluster, and how many of them, in their order, would fit into
 * copies of `bytes_max`. */
uint32_t tf_config_tasks(const struct tf_config *c);
uint32_t tf_config_tasks_fitting(const struct tf_config *c, size_t bytes_max);

/* Write the copy of one rank (see put.h); at most tf_config_bytes_max. */
char *tf_config_put(char *out, const struct tf_config *c, uint32_t rank);

#endif
