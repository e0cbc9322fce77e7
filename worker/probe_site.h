/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the probes on this node's GPUs run: the ranks' environment and
 * working directory, and log files in <log_dir>/self-test. Edge.
 */
#ifndef WORKER_PROBE_SITE_H
#define WORKER_PROBE_SITE_H

#include "common/error.h"
#include "worker/agent.h"
#include "worker/env.h"
#include "worker/launch.h"
#include "worker/prober.h"
#include "worker/ranklogs.h"

struct probe_site {
    struct launch *launch; /* NULL: not made */
    struct env rank;       /* environment of the node's first rank */
    char **environment;    /* that, and what is for gpulaunch itself */
    struct ranklogs logs;
    char log_name[AGENT_LOG_NAME_BYTES]; /* of the last start, as all below */
    char nccl_log_name[AGENT_LOG_NAME_BYTES];
};

void probe_site_init(struct probe_site *s);
/* Files stay. */
void probe_site_release(struct probe_site *s);

/* Make ready for the probes of a generation. `in` is as for the ranks, its
 * attempt apart. Errors: those of launch_create. */
int probe_site_begin(struct probe_site *s, const struct launch_input *in,
                     struct gpul_error *err);

/* The ranks start: nothing is kept but the names of the files. */
void probe_site_end(struct probe_site *s);

/* Fill in all of `start` but what is sent; good until the next call. `rank`
 * is that of a probe on a device. */
void probe_site_fill(struct probe_site *s, enum agent_probe_kind kind,
                     uint32_t rank, struct prober_start *start);

#endif
