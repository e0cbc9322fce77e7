/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds for the tests of the environment: nodes 10.0.0.1, 10.0.0.2, ... with
 * ports from 20000 on, all ranks workers. A test changes what it is about.
 */
#ifndef TESTS_ENV_FIXTURE_H
#define TESTS_ENV_FIXTURE_H

#include <stdint.h>

#include "worker/env.h"

struct env_fixture {
    struct env_input in;
    char (*texts)[48];
    const char **addresses;
    uint16_t *ports;
    uint32_t *rank_counts;
    uint32_t *first_ranks;
};

void env_fixture_init(struct env_fixture *f, uint32_t nodes, uint32_t per_node);
void env_fixture_release(struct env_fixture *f);

/* Give node i counts[i] ranks, all workers, and recount the world. */
void env_fixture_set_ranks(struct env_fixture *f, const uint32_t *counts);

/* Make this node the one that the plan is for. */
void env_fixture_stand_on(struct env_fixture *f, uint32_t node);

/* The plan and the environment of one local rank; both must succeed. */
struct env_case {
    struct env_plan *plan;
    struct env env;
};
void env_case_init(struct env_case *c, const struct env_fixture *f,
                   uint32_t local_rank);
void env_case_release(struct env_case *c);

/* What the rank gets for a name, as its own program would look it up; NULL:
 * nothing. */
const char *env_case_value(const struct env_case *c, const char *name);

/* The entry for a name, or NULL. */
const struct env_entry *env_case_entry(const struct env_case *c,
                                       const char *name);

/* All notices, each followed by a newline; static memory. */
const char *env_case_notices(const struct env_case *c);

#endif
