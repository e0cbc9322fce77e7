/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the keeper's core share: keeping.c takes events,
 * keeping_end.c stops ranks, leaves, and has the agent as a process.
 */
#ifndef WORKER_KEEPING_INTERNAL_H
#define WORKER_KEEPING_INTERNAL_H

#include "worker/keeping.h"

#define NEVER UINT64_MAX

#define KEEPING_STOPPED_TEXT "stopped by a signal while it had no agent"

struct keeping_action *keeping_put(struct keeping_actions *actions,
                                   enum keeping_action_type type);

/* Ranks that are not told as gone. */
bool keeping_has_ranks(const struct keeping *k);

void keeping_signal_all(struct keeping *k, int32_t signal, uint64_t now_ms,
                        struct keeping_actions *actions);

/* SIGKILL, and a bound to it. */
void keeping_kill_all(struct keeping *k, uint64_t now_ms,
                      struct keeping_actions *actions);

void keeping_finish_ranks(struct keeping *k, struct keeping_actions *actions);

void keeping_start_leaving(struct keeping *k, int exit_code, const char *why,
                           uint64_t now_ms, struct keeping_actions *actions);
void keeping_none_left_leaving(struct keeping *k, uint64_t now_ms,
                               struct keeping_actions *actions);
void keeping_give_up_waiting(struct keeping *k,
                             struct keeping_actions *actions);

void keeping_attach(struct keeping *k);
void keeping_agent_started(struct keeping *k, const struct keeping_event *event,
                           struct keeping_actions *actions);
void keeping_agent_ended(struct keeping *k, uint64_t now_ms,
                         struct keeping_actions *actions);

#endif
