/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/env_fixture.h"

static void *must_calloc(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    assert_non_null(memory);
    return memory;
}

void env_fixture_init(struct env_fixture *f, uint32_t nodes, uint32_t per_node)
{
    *f = (struct env_fixture){0};
    f->texts = must_calloc(nodes, sizeof(*f->texts));
    f->addresses = must_calloc(nodes, sizeof(*f->addresses));
    f->ports = must_calloc(nodes, sizeof(*f->ports));
    f->rank_counts = must_calloc(nodes, sizeof(*f->rank_counts));
    f->first_ranks = must_calloc(nodes, sizeof(*f->first_ranks));
    uint32_t *counts = must_calloc(nodes, sizeof(*counts));
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t n = i + 1;
        snprintf(f->texts[i], sizeof(f->texts[i]), "10.%u.%u.%u", n >> 16,
                 (n >> 8) & 255, n & 255);
        f->addresses[i] = f->texts[i];
        f->ports[i] = 20000;
        counts[i] = per_node;
    }
    f->in.world = (struct env_world){
        .job_id = "job-1",
        .node_count = nodes,
        .addresses = f->addresses,
        .port_bases = f->ports,
        .rank_counts = f->rank_counts,
        .first_ranks = f->first_ranks,
        .host_count = nodes,
        .generation = 1,
    };
    f->in.node = (struct env_node){
        .node_name = "node-0",
        .cores = 16,
        .host_rank_count = per_node,
        .host_node_count = 1,
    };
    env_fixture_set_ranks(f, counts);
    free(counts);
}

void env_fixture_release(struct env_fixture *f)
{
    free(f->texts);
    free(f->addresses);
    free(f->ports);
    free(f->rank_counts);
    free(f->first_ranks);
}

void env_fixture_set_ranks(struct env_fixture *f, const uint32_t *counts)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < f->in.world.node_count; i++) {
        f->rank_counts[i] = counts[i];
        f->first_ranks[i] = rank;
        rank += counts[i];
    }
    f->in.world.world_size = rank;
    gpul_rolemap_all_workers(&f->in.world.roles, rank);
}

void env_fixture_stand_on(struct env_fixture *f, uint32_t node)
{
    f->in.node.node_rank = node;
}

void env_case_init(struct env_case *c, const struct env_fixture *f,
                   uint32_t local_rank)
{
    struct gpul_error err = {0};
    if (env_plan_create(&c->plan, &f->in, &err) != 0) {
        fail_msg("env_plan_create: %s", err.text);
    }
    assert_int_equal(env_build(&c->env, c->plan, local_rank, &err), 0);
}

void env_case_release(struct env_case *c)
{
    env_release(&c->env);
    env_plan_destroy(c->plan);
}

const char *env_case_value(const struct env_case *c, const char *name)
{
    size_t n = strlen(name);
    for (char **s = c->env.strings; *s != NULL; s++) {
        if (strncmp(*s, name, n) == 0 && (*s)[n] == '=') {
            return *s + n + 1;
        }
    }
    return NULL;
}

const struct env_entry *env_case_entry(const struct env_case *c,
                                       const char *name)
{
    for (size_t i = 0; i < c->env.count; i++) {
        if (strcmp(c->env.entries[i].name, name) == 0) {
            return &c->env.entries[i];
        }
    }
    return NULL;
}

const char *env_case_notices(const struct env_case *c)
{
    static char text[16384];
    const char *const *notices;
    size_t n = env_plan_notices(c->plan, &notices);
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < n; i++) {
        int bytes =
            snprintf(text + used, sizeof(text) - used, "%s\n", notices[i]);
        assert_true(bytes > 0 && (size_t)bytes < sizeof(text) - used);
        used += (size_t)bytes;
    }
    return text;
}
