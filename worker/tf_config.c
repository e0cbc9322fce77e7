/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tf_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/rolemap.h"
#include "worker/put.h"

/* Ranks in order, each with its node and its place on it. */
struct cursor {
    const struct env_world *world;
    uint32_t node;
    uint32_t local;
};

static void cursor_advance(struct cursor *at)
{
    at->local++;
    if (at->local == at->world->rank_counts[at->node]) {
        at->local = 0;
        at->node++;
    }
}

static char *put_task(char *out, const struct cursor *at)
{
    const char *address = at->world->addresses[at->node];
    bool is_ipv6 = strchr(address, ':') != NULL;
    out = put_text(out, is_ipv6 ? "\"[" : "\"");
    out = put_text(out, address);
    out = put_text(out, is_ipv6 ? "]:" : ":");
    out = put_u32(out, (uint32_t)at->world->port_bases[at->node] + at->local);
    return put_text(out, "\"");
}

/* The entry and the comma or bracket behind it. */
static size_t task_bytes(const struct cursor *at)
{
    const char *address = at->world->addresses[at->node];
    uint32_t port = (uint32_t)at->world->port_bases[at->node] + at->local;
    size_t brackets = strchr(address, ':') != NULL ? 2 : 0;
    return strlen(address) + brackets + put_u32_bytes(port) + sizeof("\"\":,") -
           1;
}

/* Room for all entries of the world and the names of the jobs. */
static size_t cluster_bytes_bound(const struct env_world *w)
{
    size_t n = sizeof("{\"cluster\":{");
    for (int role = 0; role < GPUL_ROLE_COUNT; role++) {
        n += strlen(gpul_role_name((enum gpul_role)role)) + sizeof("\"\":[],");
    }
    for (uint32_t i = 0; i < w->node_count; i++) {
        n += (strlen(w->addresses[i]) + sizeof("\"[]:65535\",")) *
             w->rank_counts[i];
    }
    return n;
}

/* "role":[...] for the `count` ranks from the cursor on. */
static char *put_job(char *out, enum gpul_role role, uint32_t count,
                     struct cursor *at)
{
    out = put_text(out, "\"");
    out = put_text(out, gpul_role_name(role));
    out = put_text(out, "\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) {
            out = put_text(out, ",");
        }
        out = put_task(out, at);
        cursor_advance(at);
    }
    return put_text(out, "]");
}

/* Ranks take roles in the order of the enumeration, the evaluator last. */
static char *put_cluster(char *out, const struct env_world *w,
                         struct cursor *at)
{
    bool is_first = true;
    out = put_text(out, "{\"cluster\":{");
    for (int role = 0; role < GPUL_ROLE_EVALUATOR; role++) {
        uint32_t count = w->roles.counts[role];
        if (count == 0) {
            continue;
        }
        if (!is_first) {
            out = put_text(out, ",");
        }
        is_first = false;
        out = put_job(out, (enum gpul_role)role, count, at);
    }
    return out;
}

int tf_config_init(struct tf_config *c, const struct env_world *world,
                   bool evaluator_in_cluster)
{
    *c = (struct tf_config){.world = world};
    char *text = malloc(cluster_bytes_bound(world));
    if (text == NULL) {
        return GPUL_ENOMEM;
    }
    struct cursor at = {.world = world};
    c->cluster = text;
    text = put_cluster(text, world, &at);
    c->cluster_bytes = (size_t)(text - c->cluster);
    if (evaluator_in_cluster && world->roles.counts[GPUL_ROLE_EVALUATOR] > 0) {
        c->evaluator = text;
        text = put_text(text, ",");
        text = put_job(text, GPUL_ROLE_EVALUATOR, 1, &at);
        c->evaluator_bytes = (size_t)(text - c->evaluator);
    }
    return 0;
}

void tf_config_release(struct tf_config *c)
{
    free(c->cluster);
    *c = (struct tf_config){0};
}

static char *put_task_of(char *out, enum gpul_role role, uint32_t index)
{
    out = put_text(out, "},\"task\":{\"type\":\"");
    out = put_text(out, gpul_role_name(role));
    out = put_text(out, "\",\"index\":");
    out = put_u32(out, index);
    return put_text(out, "}}");
}

size_t tf_config_bytes_max(const struct tf_config *c)
{
    char text[128];
    size_t longest = 0;
    for (int role = 0; role < GPUL_ROLE_COUNT; role++) {
        uint32_t count = c->world->roles.counts[role];
        if (count == 0) {
            continue;
        }
        char *end = put_task_of(text, (enum gpul_role)role, count - 1);
        size_t n = c->cluster_bytes + (size_t)(end - text);
        n += role == GPUL_ROLE_EVALUATOR ? c->evaluator_bytes : 0;
        longest = n > longest ? n : longest;
    }
    return longest;
}

uint32_t tf_config_tasks(const struct tf_config *c)
{
    return c->world->world_size - c->world->roles.counts[GPUL_ROLE_EVALUATOR];
}

uint32_t tf_config_tasks_fitting(const struct tf_config *c, size_t bytes_max)
{
    uint32_t tasks = tf_config_tasks(c);
    size_t other = tf_config_bytes_max(c);
    struct cursor at = {.world = c->world};
    for (uint32_t i = 0; i < tasks; i++) {
        other -= task_bytes(&at);
        cursor_advance(&at);
    }
    at = (struct cursor){.world = c->world};
    size_t used = other;
    for (uint32_t i = 0; i < tasks; i++) {
        used += task_bytes(&at);
        if (used > bytes_max) {
            return i;
        }
        cursor_advance(&at);
    }
    return tasks;
}

char *tf_config_put(char *out, const struct tf_config *c, uint32_t rank)
{
    uint32_t index = 0;
    enum gpul_role role = gpul_rolemap_role(&c->world->roles, rank, &index);
    out = put_bytes(out, c->cluster, c->cluster_bytes);
    if (role == GPUL_ROLE_EVALUATOR && c->evaluator != NULL) {
        out = put_bytes(out, c->evaluator, c->evaluator_bytes);
    }
    return put_task_of(out, role, index);
}
