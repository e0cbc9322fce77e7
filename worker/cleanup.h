/* SPDX-License-Identifier: Apache-2.0
 *
 * The last net: find what ranks left behind by the marker in its environment,
 * whoever its parent is by now, and kill it. Never by name. Edge; allocates
 * nothing, and sleeps between looks.
 *
 * A process counts that is of this user, started no earlier than the keeper,
 * and carries GPULAUNCH_MARKER=<job>/<generation>/<rank> (worker/env_job.c) of
 * one of the ranks in question. It is held by a pidfd while it is looked at,
 * so a pid that comes to mean somebody else is not killed. What cleared its
 * environment, or became another user, is not found.
 */
#ifndef WORKER_CLEANUP_H
#define WORKER_CLEANUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

/* A bound for cleanup_run: it kills with SIGKILL, so what is there for so
 * long does not end. */
enum { CLEANUP_BOUND_MS = 5000 };

struct cleanup {
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    uint32_t generation;
    uint32_t first_rank;
    uint32_t rank_count;
    uint64_t since_ticks; /* start of the keeper, see below */
};

/* When a process started, in the kernel's clock ticks; 0: unknown. */
uint64_t cleanup_start_ticks(pid_t pid);

/* Kill until two looks in a row find nothing: 0. Otherwise the number found
 * by the last look within `bound_ms`. */
size_t cleanup_run(const struct cleanup *c, uint64_t bound_ms);

/* One look: send `signal` (0: none) to each; returns how many there are, or
 * SIZE_MAX when /proc cannot be read. */
size_t cleanup_look(const struct cleanup *c, int signal);

#endif
