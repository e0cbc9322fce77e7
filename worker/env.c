/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/env.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

static void add_rules(struct env_plan *p)
{
    env_job_add(p);
    env_torch_add(p);
    env_tensorflow_add(p);
    env_devices_add(p);
    env_jax_add(p);
    env_horovod_add(p);
    env_nccl_add(p);
    env_threads_add(p);
    env_slurm_add(p);
    env_proxy_add(p);
}

int env_plan_create(struct env_plan **out, const struct env_input *in,
                    struct gpul_error *err)
{
    *out = NULL;
    struct env_plan *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "environment: out of memory");
    }
    p->in = in;
    p->err = err;
    env_check(p);
    if (p->status == 0) {
        p->first_rank = in->world.first_ranks[in->node.node_rank];
        p->rank_count = in->world.rank_counts[in->node.node_rank];
        env_plan_sort(p);
    }
    if (p->status == 0) {
        add_rules(p);
        env_merge(p);
    }
    int rc = p->status;
    if (rc != 0) {
        env_plan_destroy(p);
        return rc;
    }
    p->err = NULL;
    *out = p;
    return 0;
}

/* The block of one rank: pointers for exec, entries, the rank's own text. */
static size_t strings_bytes(const struct env_plan *p)
{
    return (p->slot_count + 1) * sizeof(char *);
}

static size_t entries_bytes(const struct env_plan *p)
{
    return p->slot_count * sizeof(struct env_entry);
}

/* Write "NAME=VALUE" for one rank; returns the end. */
static char *put_slot(char *out, const struct env_slot *slot,
                      const struct env_plan *plan, uint32_t local_rank,
                      struct env_entry *entry)
{
    out = put_text(out, slot->name);
    out = put_text(out, "=");
    entry->value = out;
    out = slot->claim->put(out, plan, local_rank);
    *out++ = 0;
    if (slot->inherited != NULL && strcmp(slot->inherited, entry->value) != 0) {
        entry->action = ENV_REPLACED;
    }
    return out;
}

int env_build(struct env *out, const struct env_plan *plan, uint32_t local_rank,
              struct gpul_error *err)
{
    assert(local_rank < plan->rank_count);
    *out = (struct env){0};
    char *memory = malloc(strings_bytes(plan) + entries_bytes(plan) +
                          plan->rank_bytes + env_tensorflow_file_bytes(plan));
    if (memory == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "environment: out of memory");
    }
    out->memory = memory;
    out->strings = (char **)memory;
    out->entries = (struct env_entry *)(memory + strings_bytes(plan));
    char *text = memory + strings_bytes(plan) + entries_bytes(plan);
    size_t strings = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct env_slot *slot = &plan->slots[i];
        struct env_entry *entry = &out->entries[out->count++];
        *entry = (struct env_entry){.name = slot->name,
                                    .value = slot->value,
                                    .action = slot->action,
                                    .rule = slot->rule};
        if (slot->claim != NULL) {
            out->strings[strings++] = text;
            text = put_slot(text, slot, plan, local_rank, entry);
        } else if (slot->string != NULL) {
            out->strings[strings++] = slot->string;
        }
    }
    out->strings[strings] = NULL;
    if (plan->writes_tf_files) {
        env_tensorflow_put_file(out, text, plan, local_rank);
    }
    return 0;
}

void env_release(struct env *e)
{
    free(e->memory);
    *e = (struct env){0};
}
