/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes that a job may run on, in the order of their ranks, whoever named
 * them: the user, a file, a scheduler. Pure: texts in, a list out.
 *
 * A name is what ssh and getaddrinfo take and nothing else: letters, digits,
 * `.`, `-`, `_`; IPv4 and IPv6 literals (with scope), kept byte for byte. A
 * name that begins with a dash would be an option to ssh, so none does,
 * whatever a scheduler or a file says.
 *
 * Slots are the ranks that whoever named the node grants it. A node that is
 * named again is one node: bare names add a slot each, as for mpirun. A
 * number of slots may be given once; a second mention beside a number is
 * refused, since some launchers would add and some would replace.
 *
 * Order: that of the user's list; else the scheduler's; else, where names are
 * a set, the natural one (node7 before node66).
 */
#ifndef LAUNCHER_NODES_H
#define LAUNCHER_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum nodes_source {
    NODES_NONE = 0,
    NODES_LOCAL, /* made up, on this machine */
    NODES_LIST,  /* the user's words, in order */
    NODES_SET,   /* the user's words, as a set */
    NODES_FILE,  /* a file of the user's */
    NODES_SLURM,
    NODES_PBS,
    NODES_LSF,
    NODES_GRID_ENGINE,
    NODES_FLUX,
    NODES_AWS_BATCH,
    NODES_KUBERNETES,
};

struct node {
    char *name;         /* owned; IPv6 without brackets */
    uint32_t slots;     /* 0: nothing is said */
    uint32_t slots_max; /* 0: nothing is said */
    uint32_t line;      /* of its first mention in a file, from 1; or 0 */
    bool has_number;    /* the slots are a number that somebody wrote */
};

/* All zero is an empty list. */
struct nodes {
    struct node *list;
    uint32_t count;
    uint32_t capacity;
    enum nodes_source source;
    char *where; /* owned: "--hosts", "hosts.txt", "SLURM_JOB_NODELIST" */
};

/* The bound on mentions in one source: a scheduler may name a node once for
 * each of its processors. */
enum { NODES_MENTIONS_MAX = 1 << 20 };

void nodes_release(struct nodes *n);

/* "node[01-16]:8,10.0.0.7,[fe80::1]:4,::1". One colon parts a name from its
 * slots; a name with more is an IPv6 literal, in brackets if slots follow.
 * `where` is the option or the variable, for messages. On failure the list is
 * empty. Errors: GPUL_EINVAL with the column, GPUL_ELIMIT, GPUL_ENOMEM. */
int nodes_parse_list(struct nodes *n, enum nodes_source source,
                     const char *text, const char *where,
                     struct gpul_error *err);

/* A host file as MPI, DeepSpeed and Horovod users write it: one node a line,
 * "name", "name:4", "name slots=4 max_slots=8"; names may be ranges; what
 * stands behind a # is a comment. `where` is its path, for messages of the
 * form "hosts.txt:3:7: what is wrong". Errors as above, and GPUL_EINVAL if it
 * names no node. */
int nodes_parse_file(struct nodes *n, const char *text, size_t bytes,
                     const char *where, struct gpul_error *err);

/* Keep the first `count` (1 or more) in order. Errors: GPUL_EINVAL naming
 * both numbers if there are fewer. */
int nodes_take(struct nodes *n, uint32_t count, struct gpul_error *err);

/* The ranks per node that the source grants: *slots is 0 if it says nothing.
 * Processors that a scheduler counts are no ranks. Errors: GPUL_EINVAL naming
 * two nodes that differ. */
int nodes_slots(const struct nodes *n, uint32_t *slots, struct gpul_error *err);

/* Is `count` ranks on each within every node's max_slots? GPUL_EINVAL. */
int nodes_check_ranks(const struct nodes *n, uint32_t count,
                      struct gpul_error *err);

/* "Slurm", "Grid Engine"; "--hosts" and the like have no such name: NULL. */
const char *nodes_scheduler(enum nodes_source source);

/* Append "4 nodes of --hosts, in its order: a,b[1-3]". Returns 0 or
 * GPUL_ELIMIT. */
int nodes_describe(struct gpul_buf *out, const struct nodes *n);

/* Append names first .. first+count-1 as a host list expression. Errors:
 * GPUL_ELIMIT, GPUL_ENOMEM. */
int nodes_fold(struct gpul_buf *out, const struct nodes *n, uint32_t first,
               uint32_t count);

/* Append the names as a host list expression, or fewer in full and how many
 * more there are, if it would take more than `bytes_max`. */
void nodes_append_names(struct gpul_buf *out, const struct nodes *n,
                        size_t bytes_max);

#endif
