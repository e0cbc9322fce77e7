/* SPDX-License-Identifier: Apache-2.0
 *
 * How a rank is started, as data: the agent writes it into a memory file, the
 * keeper maps that file privately and executes it without allocating. Pure.
 *
 * Happy path: encode, (across processes), decode in place. What can go wrong:
 * the bytes are not such a specification; the keeper refuses, the rank could
 * not be started.
 */
#ifndef WORKER_STARTSPEC_H
#define WORKER_STARTSPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

/* CPU numbers and NUMA nodes that a mask can hold: the kernel's own bounds
 * (CONFIG_NR_CPUS 8192, MAX_NUMNODES 1024). */
enum {
    STARTSPEC_CPUS_MAX = 8192,
    STARTSPEC_NODES_MAX = 1024,
    STARTSPEC_WORD_BITS = 64,
    STARTSPEC_CPU_WORDS = STARTSPEC_CPUS_MAX / STARTSPEC_WORD_BITS,
    STARTSPEC_NODE_WORDS = STARTSPEC_NODES_MAX / STARTSPEC_WORD_BITS,
    /* Above what execve takes (6 MiB), so that it is execve that refuses and
     * spawn's message that explains. */
    STARTSPEC_BYTES_MAX = 16 << 20,
};

struct startspec {
    char *path;              /* executed as it is */
    char **arguments;        /* NULL-terminated, one at least */
    char **environment;      /* NULL-terminated */
    char *working_directory; /* NULL: the keeper's */
    bool has_cpus;           /* bind to `cpus`; else leave as it is */
    bool has_nodes;          /* allocate memory from `nodes` (MPOL_BIND) */
    bool raises_limits;      /* nofile and memlock, soft to hard */
    uint64_t cpus[STARTSPEC_CPU_WORDS];
    uint64_t nodes[STARTSPEC_NODE_WORDS];
};

/* Append the encoded form to `out`. Errors: GPUL_ENOMEM, GPUL_ELIMIT. */
int startspec_encode(struct gpul_buf *out, const struct startspec *spec,
                     struct gpul_error *err);

/* Make `spec` point into `bytes` (aligned as a pointer), in which offsets
 * become pointers, so it works once. Errors: GPUL_EINVAL; `bytes` may be
 * changed then, and `spec` must not be used. */
int startspec_decode(struct startspec *spec, void *bytes, size_t n,
                     struct gpul_error *err);

#endif
