/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the client share: client.c feeds the agent and does what
 * it says, client_run.c has the keeper, the children, the beginning and the
 * end. Nobody else includes this.
 */
#ifndef WORKER_CLIENT_RUN_H
#define WORKER_CLIENT_RUN_H

#include <uv.h>

#include "common/buf.h"
#include "proto/transport.h"
#include "worker/agent.h"
#include "worker/client.h"
#include "worker/eventqueue.h"
#include "worker/facts.h"
#include "worker/keeperlink.h"
#include "worker/keeperwatch.h"
#include "worker/linker.h"
#include "worker/ports.h"
#include "worker/prober.h"
#include "worker/workload.h"

/* client_dial.c: which address is tried. */
struct dialing {
    uv_timer_t timer;
    uint32_t count; /* of tries */
    bool is_overdue;
    bool is_open; /* the connection; there is something to flush */
};

/* client_hear.c: standard input, where it has orders. */
struct hearing {
    uv_poll_t poll;
    bool is_on;
};

struct client {
    uv_loop_t loop;
    uv_timer_t timer;
    uv_timer_t keeper_timer; /* when the watch is to look */
    uv_signal_t child_signal;
    const struct client_config *config;
    struct gpul_buf coordinator; /* host:port, for messages */
    struct dialing dialing;
    struct hearing hearing;
    struct keeperlink *keeper;
    struct keeperwatch watch;
    int keeper_fd;              /* pidfd of the keeper, -1: none to be had */
    struct keeper_packet state; /* what it said first */
    struct agent *agent;
    struct agent_actions actions;
    struct gpul_keyring *keyring;     /* NULL: frames go as they are */
    struct gpul_transport *transport; /* NULL: none */
    struct facts facts;
    struct ports_lease lease;
    struct prober prober;
    struct linker linker;
    struct workload *workload;
    struct eventqueue queue;
    uint64_t heard_ns; /* when the last message came, CLOCK_REALTIME */
    bool is_pumping;
    bool has_joined; /* this agent, once */
    bool has_left;
    int exit_code;
    char text[CLIENT_TEXT_BYTES];
};

extern const struct workload_handlers client_workload_handlers;
extern const struct prober_handlers client_prober_handlers;
extern const struct linker_handlers client_linker_handlers;

/* Try the next address, for bound_ms (UINT64_MAX: as long as it takes). */
void client_dial(struct client *c, uint64_t bound_ms);
void client_disconnect(struct client *c);

/* Set up both; they end with client_leave. */
void client_dial_init(struct client *c);
void client_dial_close(struct client *c);
int client_hear(struct client *c, struct gpul_error *err);
void client_hear_close(struct client *c);

/* A message of the coordinator's. */
void client_take(struct client *c, const Gpul__Frame *frame);

/* An event for the agent; it waits for the next pump. */
struct waiting_event *client_post(struct client *c, enum agent_event_type type,
                                  const char *text);

/* Tell the agent of all that waits, and do what it says. */
void client_pump(struct client *c);

/* The last thing that is done in the loop. Without memory nothing is left to
 * be done in order; then the keeper stops the ranks. */
void client_leave(struct client *c, int exit_code, const char *text);

/* A packet that says nothing but its type, and the exit code. */
void client_tell_keeper(struct client *c, enum keeper_packet_type type);

#endif
