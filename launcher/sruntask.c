/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/sruntask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "launcher/variables.h"
#include "proto/limits.h"

enum { NUMBER_SHOWN = 24, PIECE_BYTES = 48 };

static int need(const char **out, const struct variables *v, const char *name)
{
    *out = variables_get(v, name);
    return *out != NULL
               ? 0
               : gpul_fail(v->err, GPUL_EINVAL,
                           "srun has started gpulaunch many times, but %s is "
                           "not set; start it once, without srun, in the "
                           "batch script or within salloc",
                           name);
}

/* It becomes part of a file's name. */
static int check_number(const struct variables *v, const char *name,
                        const char *value)
{
    size_t n = strlen(value);
    return n < NUMBER_SHOWN && strspn(value, "0123456789") == n
               ? 0
               : gpul_fail(v->err, GPUL_EINVAL, "%s: \"%.80s\" is no number",
                           name, value);
}

static void append_piece(char run[SRUNTASK_RUN_BYTES], const char *value)
{
    size_t used = strlen(run), from = used;
    snprintf(run + used, SRUNTASK_RUN_BYTES - used, "%s%.*s",
             used > 0 ? "/" : "", PIECE_BYTES, value != NULL ? value : "-");
    for (char *at = run + from; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            *at = '_';
        }
    }
}

static void find_run(struct sruntask *t, const struct variables *v)
{
    static const char *const names[] = {
        "SLURM_CLUSTER_NAME",   "SLURM_RESTART_COUNT",  "SLURM_JOB_START_TIME",
        "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT",
    };
    t->run[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        append_piece(t->run, variables_get(v, names[i]));
    }
}

static int find_place(struct sruntask *t, const struct allocation *a,
                      const char **list, const struct variables *v)
{
    const char *step = NULL, *task = NULL;
    int rc = need(&step, v, "SLURM_STEP_ID");
    if (rc == 0) {
        rc = need(&task, v, "SLURM_PROCID");
    }
    if (rc == 0) {
        rc = need(&t->node_name, v, "SLURMD_NODENAME");
    }
    if (rc == 0) {
        rc = need(list, v, "SLURM_STEP_NODELIST");
    }
    if (rc == 0) {
        rc = check_number(v, "SLURM_JOB_ID", a->job_id);
    }
    if (rc == 0) {
        rc = check_number(v, "SLURM_STEP_ID", step);
    }
    if (rc == 0 &&
        gpul_parse_count(&t->task, task, 0, t->count - 1, v->err) != 0) {
        rc = gpul_wrap(v->err, GPUL_EINVAL, "SLURM_PROCID");
    }
    if (rc == 0) {
        snprintf(t->name, sizeof(t->name), "slurm-%s.%s", a->job_id, step);
    }
    return rc;
}

int sruntask_find(struct sruntask *t, struct allocation *a,
                  gpul_getenv_fn getenv, void *getenv_arg,
                  struct gpul_error *err)
{
    const struct variables v = {getenv, getenv_arg, err};
    const char *list = NULL;
    *t = (struct sruntask){0};
    const char *tasks = variables_get(&v, "SLURM_STEP_NUM_TASKS");
    if (tasks == NULL ||
        gpul_parse_count(&t->count, tasks, 2, UINT32_MAX, NULL) != 0) {
        t->count = 0;
        return 0;
    }
    int rc = find_place(t, a, &list, &v);
    if (rc != 0) {
        *t = (struct sruntask){0};
        return rc;
    }
    find_run(t, &v);
    a->variable = "SLURM_STEP_NODELIST";
    a->value = list;
    a->node_count = 0; /* that of the job; sruntask_settle counts */
    return 0;
}

int sruntask_settle(struct sruntask *t, const struct nodes *nodes,
                    struct gpul_error *err)
{
    if (t->count == 0) {
        return 0;
    }
    if (nodes->count != t->count) {
        return gpul_fail(err, GPUL_EINVAL,
                         "srun has started gpulaunch %" PRIu32
                         " times on %" PRIu32 " node%s; once on each is right: "
                         "srun --ntasks-per-node=1 gpulaunch --per-node K "
                         "starts K ranks on each; or start it without srun",
                         t->count, nodes->count, gpul_plural(nodes->count));
    }
    for (t->node = 0; t->node < nodes->count; t->node++) {
        if (strcmp(nodes->list[t->node].name, t->node_name) == 0) {
            return 0;
        }
    }
    return gpul_fail(err, GPUL_EINVAL,
                     "SLURMD_NODENAME is %.80s, which is not in "
                     "SLURM_STEP_NODELIST; the variables are of two jobs or "
                     "were changed",
                     t->node_name);
}

bool sruntask_is_guest(const struct sruntask *t)
{
    return t->count > 0 && t->task > 0;
}
