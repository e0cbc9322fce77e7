/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of an environment plan, for env.c, env_merge.c and the rule files
 * (env_rules.h) only.
 *
 * A plan comes about in three steps:
 *   1. env_plan_sort puts the inherited and the user's variables in order;
 *   2. each rule file *claims* the variables of its framework: the same value
 *      for all ranks of the node, or a function that writes it for one rank;
 *   3. env_merge settles inherited, user's and claimed variables into *slots*,
 *      one a name, in order, and writes the notices.
 * A rank's environment is then one walk over the slots.
 *
 * Failure is sticky: the first one is kept in `status` and `err`, and all
 * later calls do nothing, so that rule files need not check each claim.
 */
#ifndef WORKER_ENV_PLAN_H
#define WORKER_ENV_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/env.h"
#include "worker/tf_config.h"

enum env_strength {
    ENV_IDENTITY, /* ours: an inherited value that differs is replaced */
    ENV_TUNING,   /* a default: an inherited value is kept */
    ENV_ABSENT,   /* must not be there: an inherited value is dropped */
};

/* Write the value for one rank at `out`, without a NUL; return its end. */
typedef char *env_put_fn(char *out, const struct env_plan *plan,
                         uint32_t local_rank);

struct env_claim {
    const char *name;
    const char *rule;
    enum env_strength strength;
    const char *value; /* the same for all ranks, or NULL: `put` */
    env_put_fn *put;
    size_t bytes_max; /* of what `put` writes */
    bool is_per_node; /* other nodes have another value */
    bool is_quiet;    /* no notice: a rule has said all in one of its own */
};

/* One name, settled. */
struct env_slot {
    const char *name;
    const char *value; /* NULL: written for each rank by `claim` */
    char *string;      /* "NAME=VALUE"; NULL: dropped, or written for each */
    const char *rule;
    const char *inherited;         /* what `put` replaces, or NULL */
    const struct env_claim *claim; /* of values written for each rank */
    enum env_action action;        /* for those: where nothing is replaced */
};

/* A variable that came in, with a copy of its own. */
struct env_given {
    const char *name;
    const char *value;
    char *string;    /* "NAME=VALUE" */
    size_t priority; /* among equal names the lowest counts */
};

struct env_givens {
    struct env_given *items; /* sorted by name, each name once */
    size_t count;
};

struct env_block;

struct env_plan {
    const struct env_input *in;
    uint32_t first_rank;
    uint32_t rank_count;
    struct tf_config tf;
    size_t tf_bytes;      /* longest TF_CONFIG; 0: none */
    bool writes_tf_files; /* TF_CONFIG goes to a file */

    const char *const *rank_devices; /* one a rank, or NULL: not policy RANK */
    uint32_t visible_count; /* devices that a rank sees; 0: none or unknown */
    const uint32_t *cross_counts; /* Horovod, by local rank: two each */

    bool is_nested; /* within a rank of another job of gpulaunch */
    struct env_givens inherited;
    struct env_givens user;
    struct env_claim *claims;
    size_t claim_count;
    size_t claim_capacity;
    struct env_slot *slots;
    size_t slot_count;
    size_t rank_bytes; /* what one rank's own strings take at most */
    const char **notices;
    size_t notice_count;
    size_t notice_capacity;

    struct env_block *blocks; /* everything allocated with env_plan_alloc */
    int status;
    struct gpul_error *err; /* only while the plan is made */
};

/* Memory that lives as long as the plan, aligned for any type and zeroed;
 * NULL after a failure. */
void *env_plan_alloc(struct env_plan *p, size_t n);
char *env_plan_format(struct env_plan *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Record the first failure. */
void env_plan_fail(struct env_plan *p, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Step 1. */
void env_plan_sort(struct env_plan *p);

/* Value of an inherited or a user's variable, or NULL. */
const char *env_plan_inherited(const struct env_plan *p, const char *name);
const char *env_plan_user(const struct env_plan *p, const char *name);

/* Step 2. Names, rules and values are borrowed; each name is claimed once. */
void env_claim(struct env_plan *p, struct env_claim claim);
void env_claim_value(struct env_plan *p, const char *name, const char *rule,
                     const char *value);
void env_claim_u32(struct env_plan *p, const char *name, const char *rule,
                   uint32_t value);
void env_claim_default(struct env_plan *p, const char *name, const char *rule,
                       const char *value);
/* The same for what differs between nodes: the lines for the user must not,
 * or there is one for each of them. */
void env_claim_node_value(struct env_plan *p, const char *name,
                          const char *rule, const char *value);
void env_claim_node_u32(struct env_plan *p, const char *name, const char *rule,
                        uint32_t value);
void env_claim_node_default(struct env_plan *p, const char *name,
                            const char *rule, const char *value);
void env_claim_absent(struct env_plan *p, const char *name, const char *rule);
/* A number that `put` writes. */
void env_claim_each(struct env_plan *p, const char *name, const char *rule,
                    env_put_fn *put);

/* The two numbers that most frameworks want. */
char *env_put_rank(char *out, const struct env_plan *p, uint32_t local_rank);
char *env_put_local_rank(char *out, const struct env_plan *p,
                         uint32_t local_rank);

/* One line for the user, cut to what a Notice may hold. */
void env_plan_note(struct env_plan *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Step 3. */
void env_merge(struct env_plan *p);

/* Ports of node 0 behind those of its ranks. */
enum env_extra_port {
    ENV_PORT_MASTER = 0,
    ENV_PORT_JAX = 1,
    ENV_PORT_HOROVOD = 2,
};
uint32_t env_extra_port(const struct env_plan *p, enum env_extra_port which);

/* Address of the node that holds rank 0. */
const char *env_master_address(const struct env_plan *p);

#endif
