/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

/* The wire's bytes as C strings: those of `strings`, which has room. */
static char *put_bytes(char **end, const ProtobufCBinaryData *bytes)
{
    char *text = *end;
    if (bytes->len > 0) {
        memcpy(text, bytes->data, bytes->len);
    }
    text[bytes->len] = 0;
    *end += bytes->len + 1;
    return text;
}

static size_t text_bytes(const Gpul__Job *job)
{
    const Gpul__Command *command = job->command;
    size_t bytes = command->working_directory.len + 1;
    for (size_t i = 0; i < command->n_arguments; i++) {
        bytes += command->arguments[i].len + 1;
    }
    for (size_t i = 0; job->environment != NULL && i < job->environment->n_user;
         i++) {
        const Gpul__Variable *v = job->environment->user[i];
        bytes += v->name.len + v->value.len + 2;
    }
    /* "/attempt-", ten digits, the NUL */
    return bytes + strlen(job->log_dir) + 20;
}

static int put_command(struct launch *l, char **end, const Gpul__Job *job)
{
    const Gpul__Command *command = job->command;
    l->arguments = calloc(command->n_arguments + 1, sizeof(*l->arguments));
    if (l->arguments == NULL) {
        return GPUL_ENOMEM;
    }
    for (size_t i = 0; i < command->n_arguments; i++) {
        l->arguments[i] = put_bytes(end, &command->arguments[i]);
    }
    if (command->working_directory.len > 0) {
        l->working_directory = put_bytes(end, &command->working_directory);
    }
    return 0;
}

static int put_user(struct launch *l, char **end, const Gpul__Environment *from)
{
    l->user = calloc(from->n_user + 1, sizeof(*l->user));
    if (l->user == NULL) {
        return GPUL_ENOMEM;
    }
    for (size_t i = 0; i < from->n_user; i++) {
        l->user[i].name = put_bytes(end, &from->user[i]->name);
        l->user[i].value = put_bytes(end, &from->user[i]->value);
    }
    l->input.user = l->user;
    l->input.user_count = from->n_user;
    l->input.tf_config = (enum env_tf_config)from->tf_config;
    l->input.tf_evaluator_in_cluster = from->tf_evaluator_in_cluster;
    l->input.devices = (enum env_devices)from->devices;
    l->input.emulates_slurm = from->emulates_slurm;
    return 0;
}

static int put_texts(struct launch *l, const struct launch_input *in)
{
    const Gpul__Job *job = in->job;
    l->strings = malloc(text_bytes(job));
    if (l->strings == NULL) {
        return GPUL_ENOMEM;
    }
    char *end = l->strings;
    int rc = put_command(l, &end, job);
    if (rc == 0 && job->environment != NULL) {
        rc = put_user(l, &end, job->environment);
    }
    if (rc == 0 && job->log_dir[0] != 0) {
        l->log_folder = end;
        snprintf(end, strlen(job->log_dir) + 20, "%s/attempt-%u", job->log_dir,
                 in->attempt);
    }
    l->input.command = (const char *const *)l->arguments;
    l->input.tf_config_dir = l->log_folder;
    l->input.error_dir = l->log_folder;
    return rc;
}

static int put_roles(struct gpul_rolemap *roles, const struct launch_input *in,
                     struct gpul_error *err)
{
    const Gpul__Job *job = in->job;
    if (job->n_roles == 0) {
        gpul_rolemap_all_workers(roles, in->world->world_size);
        return 0;
    }
    int rc = 0;
    for (size_t i = 0; i < job->n_roles && rc == 0; i++) {
        rc = gpul_rolemap_add(roles, job->roles[i]->name, job->roles[i]->count,
                              err);
    }
    return rc != 0 ? rc : gpul_rolemap_check(roles, err);
}

static void put_world(struct env_world *out, const struct launch_input *in)
{
    const struct world *world = in->world;
    out->job_id = in->job->job_id;
    out->node_count = world->node_count;
    out->world_size = world->world_size;
    out->addresses = (const char *const *)world->addresses.names;
    out->port_bases = world->port_bases;
    out->rank_counts = world->rank_counts;
    out->first_ranks = world->first_ranks;
    out->host_count = in->assign->host_count;
    out->generation = in->generation;
    out->restart_count = in->assign->restart_count;
    out->max_restarts = in->job->max_restarts;
}

static void put_node(struct env_node *out, const struct launch_input *in)
{
    out->node_rank = in->assign->node_rank;
    out->node_name = in->node_name;
    out->cores = in->cores;
    out->host_rank_count = in->assign->host_rank_count;
    out->host_node_index = in->assign->host_node_index;
    out->host_node_count = in->assign->host_node_count;
    out->devices = (const char *const *)in->devices;
    out->device_count = (uint32_t)in->device_count;
    out->devices_are_restricted = in->devices_are_restricted;
    out->interface = in->interface;
}

/* A report of the environment is of no job that runs: it shows no value, and
 * who sets the variables by it sets none. */
static void put_nccl_magic(struct launch *l, const Gpul__Job *job)
{
    uint64_t magic =
        job->environment != NULL ? job->environment->nccl_socket_magic : 0;
    if (magic == 0) {
        return;
    }
    if (job->mode != GPUL__JOB__MODE__ENV) {
        snprintf(l->nccl_magic, sizeof(l->nccl_magic), "0x%016" PRIx64, magic);
    }
    l->input.nccl_magic = l->nccl_magic;
}

static bool is_watched(const Gpul__Job *job)
{
    return job->hang == NULL || job->hang->watch != GPUL__HANG__WATCH__OFF;
}

int launch_create(struct launch **out, const struct launch_input *in,
                  struct gpul_error *err)
{
    assert(world_is_complete(in->world));
    *out = NULL;
    if (in->job->command == NULL || in->job->command->n_arguments == 0) {
        return gpul_fail(err, GPUL_EINVAL, "the job has no command");
    }
    struct launch *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory to start ranks");
    }
    l->first_rank = in->assign->first_rank;
    l->rank_count = in->assign->rank_count;
    l->node_rank = in->assign->node_rank;
    l->port_base = in->world->port_bases[l->node_rank];
    l->input.inherited = in->inherited;
    l->input.beat_fd = is_watched(in->job) ? LAUNCH_BEAT_FD : 0;
    if (in->job->wants_metrics) {
        l->input.metric_fd = LAUNCH_BEAT_FD + (l->input.beat_fd > 0 ? 1 : 0);
    }
    put_world(&l->input.world, in);
    put_node(&l->input.node, in);
    put_nccl_magic(l, in->job);
    int rc = put_texts(l, in);
    if (rc != 0) {
        gpul_fail(err, rc, "out of memory to start ranks");
    } else {
        rc = put_roles(&l->input.world.roles, in, err);
    }
    if (rc == 0) {
        rc = env_plan_create(&l->plan, &l->input, err);
    }
    if (rc != 0) {
        launch_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

void launch_destroy(struct launch *l)
{
    if (l == NULL) {
        return;
    }
    binding_destroy(l->binding);
    env_plan_destroy(l->plan);
    free(l->arguments);
    free(l->user);
    free(l->strings);
    free(l);
}

size_t launch_ports(const struct launch *l, uint32_t local_rank,
                    uint16_t ports[LAUNCH_PORTS_MAX])
{
    assert(local_rank < l->rank_count);
    size_t n = 0;
    ports[n++] = (uint16_t)(l->port_base + local_rank);
    for (uint32_t i = 0; l->node_rank == 0 && i < GPUL_EXTRA_PORTS; i++) {
        ports[n++] = (uint16_t)(l->port_base + l->rank_count + i);
    }
    return n;
}

/* Last of the job's shared ports: worker/env_plan.h has the same order. */
uint16_t launch_horovod_port(const struct launch *l)
{
    return (uint16_t)(l->input.world.port_bases[0] +
                      l->input.world.rank_counts[0] + GPUL_EXTRA_PORTS - 1);
}

const char *launch_variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
            return *environment + n + 1;
        }
    }
    return "";
}
