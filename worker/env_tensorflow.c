/* SPDX-License-Identifier: Apache-2.0
 *
 * TF_CONFIG: set where there is more than one task, never empty (TensorFlow
 * reads an empty value as broken JSON), and refused before launch where Linux
 * could not pass it on.
 */
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

#define NAME "TF_CONFIG"

static char *put_config(char *out, const struct env_plan *p,
                        uint32_t local_rank)
{
    return tf_config_put(out, &p->tf, p->first_rank + local_rank);
}

static char *put_path(char *out, const struct env_plan *p, uint32_t local_rank)
{
    out = put_text(out, p->in->tf_config_dir);
    out = put_text(out, "/tf_config-rank-");
    out = put_u32(out, p->first_rank + local_rank);
    return put_text(out, ".json");
}

static size_t path_bytes_max(const struct env_plan *p)
{
    return strlen(p->in->tf_config_dir) + sizeof("/tf_config-rank-.json") +
           PUT_U32_BYTES_MAX;
}

size_t env_tensorflow_file_bytes(const struct env_plan *p)
{
    return p->writes_tf_files ? path_bytes_max(p) + p->tf_bytes + 1 : 0;
}

void env_tensorflow_put_file(struct env *e, char *out, const struct env_plan *p,
                             uint32_t local_rank)
{
    e->tf_config_path = out;
    out = put_path(out, p, local_rank);
    *out++ = 0;
    e->tf_config_text = out;
    *put_config(out, p, local_rank) = 0;
}

static void claim_path(struct env_plan *p)
{
    env_claim(p, (struct env_claim){
                     .name = "GPULAUNCH_TF_CONFIG_FILE",
                     .rule = "--tf-config=file: where this rank's TF_CONFIG is",
                     .put = put_path,
                     .bytes_max = path_bytes_max(p),
                     .strength = ENV_IDENTITY,
                 });
}

static void claim_config(struct env_plan *p)
{
    if (p->tf_bytes > TF_CONFIG_BYTES_MAX && env_plan_user(p, NAME) == NULL) {
        env_plan_fail(
            p, GPUL_ELIMIT,
            NAME " would be %zu bytes long, over the %d that Linux allows for "
                 "its value: %u of the %u tasks would fit; use "
                 "--tf-config=file, or --tf-config=never if nothing reads it",
            p->tf_bytes, TF_CONFIG_BYTES_MAX,
            tf_config_tasks_fitting(&p->tf, TF_CONFIG_BYTES_MAX),
            tf_config_tasks(&p->tf));
    }
    env_claim(p, (struct env_claim){
                     .name = NAME,
                     .rule = "TensorFlow: the cluster and this rank's task",
                     .put = put_config,
                     .bytes_max = p->tf_bytes,
                     .strength = ENV_IDENTITY,
                 });
}

void env_tensorflow_add(struct env_plan *p)
{
    enum env_tf_config mode = p->in->tf_config;
    if (p->status != 0) {
        return;
    }
    if (mode == ENV_TF_NEVER) {
        env_claim_absent(p, NAME, "--tf-config=never");
        return;
    }
    if (p->in->world.world_size == 1 && mode != ENV_TF_ALWAYS) {
        env_claim_absent(p, NAME, "TensorFlow: a single task needs no cluster");
        return;
    }
    int rc =
        tf_config_init(&p->tf, &p->in->world, p->in->tf_evaluator_in_cluster);
    if (rc != 0) {
        env_plan_fail(p, rc, NAME ": out of memory");
        return;
    }
    p->tf_bytes = tf_config_bytes_max(&p->tf);
    if (mode == ENV_TF_FILE) {
        p->writes_tf_files = true;
        env_claim_absent(p, NAME, "--tf-config=file");
        claim_path(p);
    } else {
        claim_config(p);
    }
}
