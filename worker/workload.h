/* SPDX-License-Identifier: Apache-2.0
 *
 * All that runs on this node for the job: the ranks and what they leave
 * behind, as the keeper tells of them, their output and logs, the surroundings
 * of probes on GPUs, and the rendezvous for Horovod programs. Edge; the loop
 * and the agent stay with worker/client.h.
 */
#ifndef WORKER_WORKLOAD_H
#define WORKER_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/agent.h"
#include "worker/facts.h"
#include "worker/keeperlink.h"
#include "worker/prober.h"

struct workload;

struct workload_handlers {
    /* An unstamped frame for the coordinator, borrowed for the call. */
    void (*on_frame)(void *arg, Gpul__Frame *frame);
    /* Exits wait to be taken. */
    void (*on_exits)(void *arg);
    /* Nothing is alive, or workload_abandon was called. */
    void (*on_gone)(void *arg);
    void (*on_drained)(void *arg);
};

/* `facts` and `node_name` are borrowed for its life. Errors: GPUL_ENOMEM. */
struct workload_config {
    uv_loop_t *loop;
    struct keeperlink *keeper;
    const struct facts *facts;
    const char *node_name;
    const char *job_id;
    struct keeper_packet state; /* STATE, as the keeper sent it */
};
int workload_create(struct workload **out, const struct workload_config *config,
                    const struct workload_handlers *handlers, void *arg,
                    struct gpul_error *err);

/* Lets go of everything but what is alive; the loop must run once more.
 * NULL is fine. */
void workload_destroy(struct workload *w);

/* Start the ranks of the agent's generation; those that the keeper holds are
 * ours then. What fails becomes exits. Errors: GPUL_ENOMEM. */
int workload_start(struct workload *w, const struct agent *agent,
                   struct gpul_error *err);

/* Mode ENV: send the environments that the job asks for. One that cannot be
 * built becomes an exit, as at a start. Errors: GPUL_ENOMEM. */
int workload_report(struct workload *w, const struct agent *agent,
                    struct gpul_error *err);

/* Fill in how a probe on GPUs is started, all but what is sent; good until
 * the next call. `rank` is that of a probe on a device. Errors: those of
 * launch_create. */
int workload_fill_probe(struct workload *w, const struct agent *agent,
                        enum agent_probe_kind kind, uint32_t rank,
                        struct prober_start *start, struct gpul_error *err);

/* Signal the ranks and all below them. SIGKILL also goes to whatever turns
 * up later. */
void workload_stop(struct workload *w, int signal);

/* Signal the process groups of the ranks. */
void workload_pass_signal(struct workload *w, int signal);

/* See input_put. */
int workload_feed(struct workload *w, uint32_t generation,
                  const Gpul__Input *input, struct gpul_error *err);

/* Do not wait for what is still alive. */
void workload_abandon(struct workload *w);

/* What the keeper says of the ranks and of what they leave; takes over the
 * descriptors. After the last one of a turn, call settle. */
void workload_take_mail(struct workload *w, struct keeper_mail *mail);
void workload_settle(struct workload *w);

/* The keeper is gone, and the ranks with it. Kill what else carries the job's
 * marker (within CLEANUP_BOUND_MS), so that nothing of them is left, or say in
 * workload_unclean how much is. */
void workload_bury(struct workload *w);

/* After that: what they wrote is taken in, then on_drained comes, and nothing
 * else. */
void workload_orphan(struct workload *w);

/* See worker/ranks.h. */
size_t workload_take_exits(struct workload *w, Gpul__Exit ***exits);

/* "pid name" of what was abandoned; valid until the next start. */
size_t workload_unclean(const struct workload *w, char ***unclean);

/* Send one line for the user; it is cleaned and cut as the wire needs it. */
void workload_notice(struct workload *w, const char *text);

void workload_credit(struct workload *w, uint64_t bytes);
void workload_discard_output(struct workload *w);
void workload_remove_logs(struct workload *w);

#endif
