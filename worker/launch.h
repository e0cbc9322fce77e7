/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch: what is the same for all ranks of this node, made from what the
 * coordinator said and what the node has. It serves the start of the ranks
 * and the report of their environment alike, so that they cannot differ.
 * Pure.
 */
#ifndef WORKER_LAUNCH_H
#define WORKER_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/binding.h"
#include "worker/env.h"
#include "worker/world.h"

/* Of a rank: what it beats through, where it is watched; the next one, or this
 * one where it is not, is what it tells its figure by. */
enum { LAUNCH_BEAT_FD = 3 };

struct launch_input {
    const Gpul__Job *job;
    const Gpul__Assign *assign;
    const struct world *world; /* complete */
    uint32_t generation;
    uint32_t attempt;
    const char *node_name;
    uint32_t cores;
    char *const *devices;
    size_t device_count;
    bool devices_are_restricted;
    const char *interface;        /* that holds this node's address, or NULL */
    const char *const *inherited; /* "NAME=VALUE", NULL-terminated */
};

struct launch {
    char **arguments;        /* NULL-terminated argv of the command */
    char *working_directory; /* NULL: the worker's */
    char *log_folder;        /* <log_dir>/attempt-<n>, NULL: no log files */
    struct env_plan *plan;
    struct binding *binding; /* of the ranks; NULL: they are not bound */
    struct env_input input;  /* what the plan points into */
    uint32_t first_rank;
    uint32_t rank_count;
    uint32_t node_rank;
    uint16_t port_base;
    char nccl_magic[20]; /* "0x" and 16 digits; "": not shown */
    /* Owned memory behind `input`. */
    struct env_variable *user;
    char *strings; /* every text of the launch, one block */
};

/* What `in` points to must outlive the launch. Errors: GPUL_EINVAL,
 * GPUL_ELIMIT from the environment's rules with a sentence for the user,
 * GPUL_ENOMEM. */
int launch_create(struct launch **out, const struct launch_input *in,
                  struct gpul_error *err);
void launch_destroy(struct launch *l);

/* The ports that local rank `local_rank` was given: its own, and on node
 * rank 0 those of the job. Returns their number, at most LAUNCH_PORTS_MAX. */
enum { LAUNCH_PORTS_MAX = 4 };
size_t launch_ports(const struct launch *l, uint32_t local_rank,
                    uint16_t ports[LAUNCH_PORTS_MAX]);

/* Where Horovod programs look for their rendezvous. */
uint16_t launch_horovod_port(const struct launch *l);

/* A variable of a built environment, "" if it is not in it. */
const char *launch_variable(char *const *environment, const char *name);

#endif
