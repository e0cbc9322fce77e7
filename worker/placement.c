/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/placement.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/gpuplaces.h"
#include "worker/topology.h"

/* What a decision is made from; on the heap, for its size. */
struct scene {
    struct binding_input in;
    uint64_t allowed[STARTSPEC_CPU_WORDS];
    struct binding_machine machine;
    struct gpuplaces gpus;
    struct gpul_error no_machine;
};

static int read_allowed(struct scene *s, const struct placement_input *in,
                        struct gpul_error *err)
{
    s->in.allowed = s->allowed;
    if (in->allowed != NULL) {
        memcpy(s->allowed, in->allowed, sizeof(s->allowed));
        return 0;
    }
    if (sched_getaffinity(0, sizeof(s->allowed), (cpu_set_t *)s->allowed) < 0) {
        return gpul_fail_errno(err, errno,
                               "cannot read the processors of this node");
    }
    return 0;
}

static void read_machine(struct scene *s, const struct placement_input *in)
{
    char path[PATH_MAX] = "";
    const char *program = in->program;
    if (program == NULL) {
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = 0;
        if (access(path, X_OK) != 0) { /* a copy that has removed its file */
            snprintf(path, sizeof(path), "/proc/self/exe");
        }
        program = path;
    }
    if (topology_read(&s->machine, program, in->root != NULL ? in->root : "",
                      &s->no_machine) == 0) {
        s->in.machine = &s->machine;
    }
    s->in.no_machine = s->no_machine.text;
    /* Docker's default filter refuses this call and set_mempolicy alike. */
    s->in.can_bind_memory =
        syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) == 0;
}

/* ---- what each rank sees --------------------------------------------------
 */

static int read_gpus(struct scene *s, const struct placement_input *in,
                     struct gpu_choice *visible, struct gpul_error *err)
{
    gpuplaces_read(&s->gpus, in->root != NULL ? in->root : "");
    for (uint32_t i = 0; i < in->launch->rank_count; i++) {
        struct env env;
        int rc = env_build(&env, in->launch->plan, i, err);
        if (rc != 0) {
            return rc;
        }
        gpu_visible_choose(&visible[i], s->gpus.devices, s->gpus.count,
                           gpu_visible_value((const char *const *)env.strings));
        env_release(&env);
    }
    s->in.gpus = s->gpus.gpus;
    s->in.visible = visible;
    s->in.has_one_node = s->gpus.has_one_node;
    return 0;
}

/* -------------------------------------------------------------------------- */

static int read_scene(struct scene *s, const struct placement_input *in,
                      struct gpu_choice *visible, struct gpul_error *err)
{
    const struct env_node *node = &in->launch->input.node;
    s->in.kind = in->kind;
    s->in.rank_count = in->launch->rank_count;
    s->in.host_node_index = node->host_node_index;
    s->in.host_node_count = node->host_node_count;
    int rc = read_allowed(s, in, err);
    if (rc == 0 && in->kind == BINDING_GPU) {
        rc = read_gpus(s, in, visible, err);
    } else if (rc == 0) {
        read_machine(s, in);
    }
    return rc;
}

int placement_make(struct binding **out, const struct placement_input *in,
                   struct gpul_error *err)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct gpu_choice *visible =
        calloc(in->launch->rank_count, sizeof(*visible));
    int rc = GPUL_ENOMEM;
    *out = NULL;
    if (s == NULL || visible == NULL) {
        gpul_fail(err, GPUL_ENOMEM, "out of memory to bind ranks");
    } else {
        rc = read_scene(s, in, visible, err);
    }
    if (rc == 0) {
        rc = binding_create(out, &s->in, err);
    }
    free(visible);
    free(s);
    return rc;
}

void placement_bind(struct launch *launch, enum binding_kind kind,
                    placement_notice_fn on_notice, void *arg)
{
    const struct placement_input in = {.kind = kind, .launch = launch};
    struct gpul_error err;
    if (kind == BINDING_NONE) {
        return;
    }
    if (placement_make(&launch->binding, &in, &err) != 0) {
        char text[sizeof(err.text) + 32];
        snprintf(text, sizeof(text), "--bind: no rank is bound: %s", err.text);
        on_notice(arg, text);
        return;
    }
    const struct binding *b = launch->binding;
    for (size_t i = 0; i < b->notice_count; i++) {
        on_notice(arg, b->notices[i]);
    }
}
