/* SPDX-License-Identifier: Apache-2.0
 *
 * Which processors each rank of a node is bound to, and for --bind numa which
 * memory. Pure.
 *
 *   core  the cores, in the machine's order, are divided evenly among the
 *         ranks of the host: a run of whole cores each (all hardware threads
 *         of them that are allowed), the longest of one core more than the
 *         shortest. With fewer cores than ranks, ranks share a core.
 *   numa  a rank gets the NUMA node in which its even run of cores has its
 *         middle; where there are more NUMA nodes than ranks, several. Its
 *         memory comes from there too.
 *   gpu   a rank gets all processors near its GPU, as the kernel says which
 *         they are: GPU number LOCAL_RANK of those that it sees (with more
 *         ranks than GPUs, modulo their number). With fewer ranks than GPUs
 *         it may use any of its even share as well: near one of all these.
 *         Ranks near the same processors share them.
 *
 * Several nodes of a job on one host are taken to have the same processors,
 * and divide them. Whatever happens, a rank's set is within the allowed one and
 * not empty: where a rule does not apply, it is the allowed one, and a notice
 * says why.
 */
#ifndef WORKER_BINDING_H
#define WORKER_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "worker/gpu_visible.h"
#include "worker/startspec.h"

enum binding_kind { /* as gpul.Bind */
                    BINDING_NONE = 0,
                    BINDING_NUMA = 1,
                    BINDING_GPU = 2,
                    BINDING_CORE = 3,
};

enum { BINDING_NO_NODE = UINT16_MAX };

/* A processor as the kernel numbers it: one hardware thread. */
struct binding_pu {
    uint16_t cpu;
    uint16_t core; /* equal for the threads of one core, which are in a row */
    uint16_t node; /* NUMA node, as the kernel numbers it, or NO_NODE */
};

/* What a machine is made of. */
struct binding_machine {
    uint32_t pu_count;
    struct binding_pu pus[STARTSPEC_CPUS_MAX];   /* neighbours are close */
    uint64_t memory_nodes[STARTSPEC_NODE_WORDS]; /* with memory, allowed */
};

/* The place of a GPU. */
struct binding_gpu {
    char bus_id[GPU_BUS_ID_BYTES];
    bool has_node; /* the kernel knows where it is */
    uint64_t cpus[STARTSPEC_CPU_WORDS];
};

struct binding_input {
    enum binding_kind kind; /* not NONE */
    uint32_t rank_count;    /* of this node, 1 at least */
    uint32_t host_node_index;
    uint32_t host_node_count;
    const uint64_t *allowed; /* STARTSPEC_CPU_WORDS, not empty */
    /* For core and numa; NULL: it cannot be read, and why. */
    const struct binding_machine *machine;
    const char *no_machine;
    bool can_bind_memory;
    /* For gpu; the picks are places in `gpus`. */
    const struct binding_gpu *gpus;
    const struct gpu_choice *visible; /* by local rank */
    bool has_one_node;                /* then near is everywhere */
};

struct binding_place {
    uint64_t cpus[STARTSPEC_CPU_WORDS];
    uint64_t nodes[STARTSPEC_NODE_WORDS];
    bool has_nodes; /* memory is bound to `nodes` */
};

enum { BINDING_NOTICES_MAX = 3, BINDING_NOTICE_BYTES = 512 };

struct binding {
    uint32_t rank_count;
    struct binding_place *places; /* by local rank */
    /* For the user; the same on equal nodes. */
    char notices[BINDING_NOTICES_MAX][BINDING_NOTICE_BYTES];
    size_t notice_count;
};

/* Errors: GPUL_ENOMEM. */
int binding_create(struct binding **out, const struct binding_input *in,
                   struct gpul_error *err);
void binding_destroy(struct binding *b);

/* Append what a local rank is bound to, as in "0-3,8": processors, and the NUMA
 * nodes of its memory. Nothing where it is not bound, or `b` is NULL. */
int binding_text(struct gpul_buf *cpus, struct gpul_buf *nodes,
                 const struct binding *b, uint32_t local_rank);

#endif
