/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of its probes: this program again, each a child with a
 * socket pair for frames. A probe has ended when its process is waited for
 * and its channel is empty. Edge.
 */
#ifndef WORKER_PROBER_H
#define WORKER_PROBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "proto/message.h"
#include "worker/agent.h"
#include "worker/nccl_log.h"
#include "worker/probelog.h"
#include "worker/ranklogs.h"

struct gpul_transport;
struct prober;

struct prober_handlers {
    /* PROBE_MESSAGE, PROBE_HALTED and PROBE_STAGE, of which now_ms is the
     * caller's to fill in; borrowed for the call. */
    void (*on_event)(void *arg, struct agent_event *event);
    /* Once a start; `how` says how it ended, or "pid name" of one that was
     * abandoned. */
    void (*on_ended)(void *arg, uint32_t probe, const char *how,
                     bool is_abandoned);
};

enum {
    PROBER_HOW_BYTES = 760,
    PROBER_FAULT_BYTES = 128,
    PROBER_PATH_BYTES = 300, /* of a log; a longer one is not shown */
};

struct prober_process {
    struct prober *prober;
    struct gpul_transport *channel; /* NULL: closed */
    struct probelog *log;           /* NULL: its output is ours */
    struct probelog *nccl_log;      /* NULL: it has none */
    struct nccl_log stage;          /* that this log tells of */
    const char *log_pattern;        /* as in struct prober_start */
    pid_t pid;                      /* 0: not running */
    int status;                     /* that it was waited for with */
    bool is_abandoned;
    char fault[PROBER_FAULT_BYTES]; /* why it cannot be talked to; "": it can */
    char last_line[PROBELOG_LINE_BYTES]; /* that it wrote; "": none */
    char log_path[PROBER_PATH_BYTES];    /* "": none */
    char how[PROBER_HOW_BYTES];
};

struct prober {
    uv_loop_t *loop;
    struct prober_handlers handlers;
    void *arg;
    struct prober_process processes[AGENT_PROBES_MAX];
};

struct prober_start {
    uint32_t probe;       /* its number; not in use */
    const uint8_t *bytes; /* frames that are sent to it at once */
    size_t n;
    const char *command;           /* the ranks', NULL: of no interest to it */
    char *const *environment;      /* NULL: ours */
    const char *working_directory; /* NULL: ours */
    struct ranklogs *logs; /* takes its output; NULL: it goes to our stderr */
    const char *log_name;  /* see worker/probelog.h */
    /* What stands for this name in `how`: what went wrong alike on all nodes is
     * told in the same words then. Static; NULL: the name itself. */
    const char *log_pattern;
    /* The same for what it writes to AGENT_NCCL_LOG; NULL: it has no such. */
    const char *nccl_log_name;
};

void prober_init(struct prober *p, uv_loop_t *loop,
                 const struct prober_handlers *handlers, void *arg);

/* Kills what still runs; the loop must run once more. */
void prober_release(struct prober *p);

/* Start a probe. Errors: GPUL_ESYS, GPUL_ENOMEM; nothing is left of it then
 * and on_ended is not called. */
int prober_start(struct prober *p, const struct prober_start *start,
                 struct gpul_error *err);

/* Frames for all that run; one that is gone is no error. */
void prober_send(struct prober *p, const uint8_t *bytes, size_t n);

/* SIGKILL to all that run. */
void prober_kill(struct prober *p);

/* Count all that still run as ended: they would not die. */
void prober_abandon(struct prober *p);

/* Some child may have been stopped or continued: tell of those that were. */
void prober_look(struct prober *p);

/* A child has ended: true if it was a probe. */
bool prober_reap(struct prober *p, pid_t pid, int status);

#endif
