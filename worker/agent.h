/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent: what one node does, as a state machine. Events in, actions out;
 * it never waits, reads a clock or sends. docs/protocol.md, "Agent states",
 * tells the story; worker/client.h is the edge that feeds it.
 *
 *   CONNECTING -> HELLO -> MEMBER <-> ASSIGNED <-> PROBING -> CLEARING
 *                            ^           |  ^         |          |  |
 *                            |        RUNNING +-------|----------+  |
 *                            |           v            |             |
 *                            +------- STOPPING <------+-------------+
 *   any state -> (STOPPING ->) LEAVING
 *
 * Ranks that end by themselves pass through STOPPING too: there what they
 * left behind is stopped, and the output is sent before Idle. In CLEARING a
 * self-test on GPUs has passed and their memory is waited for; a Launch that
 * comes meanwhile is kept.
 *
 * An agent that follows one that has died finds ranks that its keeper holds.
 * They run on while it joins; Launch of their generation makes them its own.
 */
#ifndef WORKER_AGENT_H
#define WORKER_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "worker/world.h"

/* Exit codes of the worker. */
enum agent_exit {
    AGENT_EXIT_OK = 0,
    AGENT_EXIT_DEADLINE = 40,  /* never became a member in time */
    AGENT_EXIT_LOST = 75,      /* the coordinator went away */
    AGENT_EXIT_FAILED = 125,   /* refused, or a fault of our own */
    AGENT_EXIT_SIGNALED = 128, /* plus the number of the signal */
};

enum agent_state {
    AGENT_CONNECTING = 1,
    AGENT_HELLO = 2,
    AGENT_MEMBER = 3,
    AGENT_ASSIGNED = 4,
    AGENT_PROBING = 5,
    AGENT_CLEARING = 6,
    AGENT_RUNNING = 7,
    AGENT_STOPPING = 8,
    AGENT_LEAVING = 9,
};

/* What the keeper runs when an agent starts. */
struct agent_held {
    uint32_t generation; /* 0: nothing */
    uint32_t attempt;
    uint32_t grace_ms;
    uint32_t orphan_ms; /* the ranks go on so long without an agent */
    int signal;         /* of the stop that is under way, or 0 */
};

/* Everything pointed to is borrowed and must outlive the agent. */
struct agent_config {
    const char *job_id;
    const char *node_name;
    const char *version;
    const char *coordinator; /* "address:port", for messages */
    uint32_t address_count;  /* of these; CONNECT takes one after another */
    uint64_t instance; /* of the keeper; seeds the jitter of the retries too */
    uint32_t attach;   /* which agent of its keeper this is, from 0 */
    struct agent_held held;
    uint32_t join_timeout_ms;
    bool tells_delay;         /* somebody is there to read SAY while it joins */
    const Gpul__Facts *facts; /* `address` is filled in from CONNECTED */
};

enum agent_event_type {
    AGENT_EVENT_TICK = 1,            /* a deadline came, or nothing at all */
    AGENT_EVENT_CONNECTED = 2,       /* text: our end's address */
    AGENT_EVENT_LOST = 3,            /* text: why; connect failures too */
    AGENT_EVENT_MESSAGE = 4,         /* frame */
    AGENT_EVENT_PORTS = 5,           /* port_base, or text: why there is none */
    AGENT_EVENT_PROBE_MESSAGE = 6,   /* probe, frame */
    AGENT_EVENT_PROBE_ENDED = 7,     /* probe, text: how it ended, or why it
                                        could not be started */
    AGENT_EVENT_RANKS_ENDED = 8,     /* exits */
    AGENT_EVENT_ALL_GONE = 9,        /* no rank, no descendant; or `unclean` */
    AGENT_EVENT_OUTPUT_DRAINED = 10, /* nothing of it is left here */
    AGENT_EVENT_SIGNAL = 11,         /* signal: someone wants us out */
    AGENT_EVENT_PROBE_HALTED = 12,   /* probe, signal: it is stopped by that,
                                        or (0) goes on */
    AGENT_EVENT_PROBE_STAGE = 13,    /* probe, stage: so far NCCL has come in
                                        it, see worker/nccl_log.h */
    AGENT_EVENT_KEEPER_LOST = 14,    /* and its ranks with it; `unclean`, text:
                                        how, NULL: it ended */
    AGENT_EVENT_REACHED = 15, /* who was dialled is there; CONNECTED follows
                                 once it has shown its key */
};

/* What a probe is started for. */
enum agent_probe_kind {
    AGENT_PROBE_HOST = 1,  /* the ring over host memory: probe 0 */
    AGENT_PROBE_SCOUT = 2, /* looks at the GPUs before the self-test: probe 0 */
    AGENT_PROBE_DEVICE = 3, /* one rank of the self-test on GPUs */
    AGENT_PROBE_WATCH = 4,  /* looks at the GPUs after it: probe 0 */
    AGENT_PROBE_PAIRS = 6,  /* trials with other nodes: probe 0 */
    AGENT_PROBE_SURVEY = 5, /* of a check, looks at the node: probe 0 */
};

/* Probes that a node may have at once, numbered from 0: one a device. */
enum { AGENT_PROBES_MAX = GPUL_DEVICES_MAX };

/* All pointers are borrowed for the call; those that an event does not use
 * may be NULL. */
struct agent_event {
    enum agent_event_type type;
    uint64_t now_ms;
    const char *text;
    const Gpul__Frame *frame;
    uint16_t port_base;
    uint32_t probe;
    uint32_t stage;
    int signal;
    Gpul__Exit **exits;
    size_t exit_count;
    char **unclean; /* ALL_GONE, PROBE_ENDED, KEEPER_LOST: "pid name" of what
                       is left */
    size_t unclean_count;
};

enum agent_action_type {
    AGENT_CONNECT = 1,     /* dial the next address, for bound_ms at most;
                              answered by CONNECTED or LOST */
    AGENT_SEND = 2,        /* bytes of the arena */
    AGENT_LEASE_PORTS = 3, /* agent_assign(); answered by PORTS */
    AGENT_START_PROBE = 4, /* `probe` of `kind`, and send it bytes of the
                              arena; answered by PROBE_ENDED at last */
    AGENT_SEND_PROBES = 5, /* send all that live bytes of the arena */
    AGENT_KILL_PROBES = 6, /* all that live; each is answered by _ENDED */
    AGENT_START_RANKS = 7, /* those that the keeper does not hold; exec
                              failures come as RANKS_ENDED */
    AGENT_REPORT_ENV = 8,  /* what cannot be built comes as RANKS_ENDED */
    AGENT_STOP_RANKS = 9,  /* signal them and what they left behind */
    AGENT_KILL_RANKS = 10, /* SIGKILL, now and whatever turns up later */
    AGENT_ABANDON = 11,    /* wait no more for what was killed: PROBE_ENDED or
                              ALL_GONE with it as unclean */
    AGENT_CREDIT = 12,     /* bytes: the front end has written so many */
    AGENT_DISCARD_OUTPUT = 13, /* to the console; log files go on */
    AGENT_REMOVE_LOGS = 14,
    AGENT_DISCONNECT = 15,  /* close what is open, without a LOST */
    AGENT_LEAVE = 16,       /* exit_code, text (NULL: nothing to say) */
    AGENT_ATTACHED = 17,    /* tell the keeper that we are a member */
    AGENT_RENEW_PORTS = 18, /* lease again, from port_base, if it can be */
    AGENT_PASS_SIGNAL = 19, /* `signal` to the groups of the ranks: no stop */
    AGENT_FEED = 20,        /* `input` to the ranks, or to those to come */
    AGENT_OPEN_LINKS = 21,  /* listen on the candidates with `token`, and send
                               LinkListening */
    AGENT_DIAL_LINKS = 22,  /* a page of `peers`; behind the last one dial, and
                               send LinkReport */
    AGENT_CLOSE_LINKS = 23, /* all that has to do with these */
    AGENT_SAY = 24,         /* text, on standard error */
    AGENT_TELL_CLOCK = 25,  /* answer `ping` by a ClockPong */
};

struct agent_action {
    enum agent_action_type type;
    size_t offset; /* of the bytes in the arena: whole frames */
    size_t n;
    uint32_t probe;
    enum agent_probe_kind kind;
    uint32_t rank; /* of the self-test, DEVICE only */
    int signal;
    uint64_t bytes;
    uint64_t bound_ms; /* UINT64_MAX: as long as the network takes */
    uint16_t port_base;
    const Gpul__Input *input; /* of the event's frame; peers too */
    const Gpul__LinkPeers *peers;
    const Gpul__ClockPing *ping;
    uint64_t token;
    int exit_code;
    const char *text;
};

/* At most one for each probe, and a few more. */
enum { AGENT_ACTIONS_MAX = AGENT_PROBES_MAX + 16 };

/* What the caller must do, in order. Valid until the next step. */
struct agent_actions {
    struct agent_action items[AGENT_ACTIONS_MAX];
    size_t count;
    struct gpul_buf arena;
};

/* Opaque. */
struct agent;

/* The first TICK starts it. Errors: GPUL_ENOMEM. */
int agent_create(struct agent **out, const struct agent_config *config,
                 uint64_t now_ms, struct gpul_error *err);
void agent_destroy(struct agent *a);

void agent_actions_init(struct agent_actions *actions);
void agent_actions_release(struct agent_actions *actions);

/* Take one event. No peer and no order of events can make it fail but for
 * want of memory: GPUL_ENOMEM, after which only destroy is allowed. */
int agent_step(struct agent *a, const struct agent_event *event,
               struct agent_actions *actions, struct gpul_error *err);

/* When the next TICK is wanted; UINT64_MAX: none. */
uint64_t agent_next_deadline_ms(const struct agent *a);

enum agent_state agent_state(const struct agent *a);

/* What the edge needs to carry out an action; each NULL until it is known. */
const Gpul__Job *agent_job(const struct agent *a);
const Gpul__Assign *agent_assign(const struct agent *a);
const struct world *agent_world(const struct agent *a);
uint32_t agent_generation(const struct agent *a);
/* Launch.attempt of the running ranks: names their log folder. */
uint32_t agent_attempt(const struct agent *a);

/* Logs of the self-test on GPUs are in this folder of the job's. */
#define AGENT_TEST_FOLDER "self-test"
enum { AGENT_LOG_NAME_BYTES = 32 };

/* What NCCL is to take for its log in a probe on a device: a pipe to the
 * worker, which bounds the file. */
#define AGENT_NCCL_LOG "/proc/self/fd/4"
enum { AGENT_NCCL_LOG_FD = 4 };

/* Stamp a frame that the edge makes itself (Output, EnvReport, Notice). */
void agent_stamp(const struct agent *a, Gpul__Frame *frame);

#endif
