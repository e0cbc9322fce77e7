/* SPDX-License-Identifier: Apache-2.0
 *
 * All that runs on this node for the job: the ranks, what they leave behind,
 * their output and logs, the surroundings of probes on GPUs, and the
 * rendezvous for Horovod programs. Edge; the loop and the agent stay with
 * worker/client.h.
 */
#ifndef WORKER_WORKLOAD_H
#define WORKER_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/agent.h"
#include "worker/facts.h"
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
int workload_create(struct workload **out, uv_loop_t *loop,
                    const struct facts *facts, const char *node_name,
                    const struct workload_handlers *handlers, void *arg,
                    struct gpul_error *err);

/* Lets go of everything but what is alive; the loop must run once more.
 * NULL is fine. */
void workload_destroy(struct workload *w);

/* Start the ranks of the agent's generation. What fails becomes exits.
 * Errors: GPUL_ENOMEM. */
int workload_start(struct workload *w, const struct agent *agent,
                   uint64_t now_ms, struct gpul_error *err);

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

/* Do not wait for what is still alive. */
void workload_abandon(struct workload *w);

/* A child has ended. After the last one of a turn, call settle. */
void workload_reap(struct workload *w, pid_t pid, int status, uint64_t now_ms);
void workload_settle(struct workload *w);

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
