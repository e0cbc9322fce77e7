/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper as a state machine: events in, actions out; it allocates nothing,
 * reads no clock and sends nothing. docs/supervision.md tells the story;
 * worker/keeper.h is the edge that feeds it.
 *
 *   IDLE --BEGIN--> RUNNING --STOP, or all ended--> STOPPING --gone--> IDLE
 *     |                |                                |
 *     +----------------+---------> LEAVING <------------+
 *
 * STOP is taken in IDLE too: what a probe left behind is below the keeper.
 * What the agent has to be told is not queued: each slot knows what it owes,
 * and keeping_next_packet() finds it. So an agent that does not read costs
 * nothing, and a new one is told everything again.
 */
#ifndef WORKER_KEEPING_H
#define WORKER_KEEPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "worker/keeperwire.h"

enum {
    KEEPING_EXIT_LOST = 75,      /* no agent attached in time */
    KEEPING_EXIT_FAILED = 125,   /* agents fail one after another */
    KEEPING_EXIT_SIGNALED = 128, /* plus the number of the signal */

    /* The n-th agent in a row that ended before it had attached is followed by
     * the next after (n - 1) steps; the first one at once. */
    KEEPING_RETRY_STEP_MS = 100,
    KEEPING_RETRY_MAX_MS = 1000,
    /* So many in a row that neither attached nor lived so long: give up. */
    KEEPING_FAILURES_MAX = 5,
    KEEPING_SHORT_LIFE_MS = 1000,
    /* SIGKILL is sent again, since orphans turn up while others die. */
    KEEPING_SWEEP_MS = 100,
    /* What SIGKILL has not ended by then does not end (uninterruptible). */
    KEEPING_KILL_MS = 5000,
    /* Beyond the grace: how long an agent may take to leave once it was sent a
     * signal; its own stop takes the grace, SIGKILL and the last output. */
    KEEPING_ORDERLY_MS = 30000,
    /* An agent that said LEAVE has ended by then, or is killed. */
    KEEPING_AGENT_END_MS = 5000,
    /* So long may an agent that was given up copy the last output to files. */
    KEEPING_LINGER_MS = 1000,
    /* Undertakers of one generation; somebody kills them. */
    KEEPING_UNDERTAKERS_MAX = 5,
};

enum keeping_state {
    KEEPING_IDLE = 1,
    KEEPING_RUNNING = 2,
    KEEPING_STOPPING = 3,
    KEEPING_LEAVING = 4,
};

enum keeping_slot_state {
    KEEPING_EMPTY = 0,
    KEEPING_ALIVE = 1,
    KEEPING_FAILED = 2, /* could not be started */
    KEEPING_ENDED = 3,
};

/* One local rank, from its START until the next BEGIN. */
struct keeping_slot {
    enum keeping_slot_state state;
    bool replays_rank; /* what the present agent has yet to be told: */
    bool replays_exit;
    bool owes_started;
    bool owes_exit;
    bool is_out_of_memory;
    bool has_input; /* the last one kept is where its input is written */
    int32_t pid;
    int32_t status;
    int32_t exec_errno;
    uint32_t kept_fds;
    uint64_t started_ms;
    uint64_t ended_ms;
    uint64_t cpu_ms;
    uint64_t rss_bytes;
    char text[KEEPER_TEXT_BYTES];
};

enum keeping_event_type {
    KEEPING_TICK = 1,          /* a deadline came, or nothing at all */
    KEEPING_AGENT_STARTED = 2, /* pid; 0: it could not be */
    KEEPING_AGENT_ENDED = 3,   /* all that it had sent came before */
    KEEPING_PACKET = 4,        /* packet */
    KEEPING_STARTED = 5,       /* slot, pid, kept_fds, has_input; or exec_errno,
                                  text */
    KEEPING_EXITED = 6,        /* slot, status and what was counted */
    KEEPING_NONE_LEFT = 7,     /* a look found no descendant */
    KEEPING_SIGNAL = 8,        /* signal: someone wants us out */
    KEEPING_UNDERTAKER_ENDED = 9,
};

struct keeping_event {
    enum keeping_event_type type;
    uint64_t now_ms;
    const struct keeper_packet *packet; /* borrowed for the call */
    const char *text;
    uint32_t slot;
    uint32_t kept_fds;
    int32_t pid;
    int32_t exec_errno;
    int32_t status;
    int32_t signal;
    bool is_out_of_memory;
    bool has_input;
    uint64_t cpu_ms;
    uint64_t rss_bytes;
};

enum keeping_action_type {
    KEEPING_DO_FORK_AGENT = 1, /* answered by AGENT_STARTED */
    KEEPING_DO_KILL_AGENT = 2, /* SIGKILL */
    KEEPING_DO_BEGIN = 3,      /* forget the last ranks' descriptors; cgroup,
                                  undertaker */
    KEEPING_DO_START = 4,      /* `slot`, from the packet's descriptors;
                                  answered by STARTED */
    KEEPING_DO_STOP = 5,       /* `signal` to all descendants, and SIGCONT to
                                  those that are stopped */
    KEEPING_DO_PASS = 6,       /* `signal` to the groups of the ranks, or of
                                  `slot` */
    KEEPING_DO_LIST = 7,       /* keeping_add_unclean() for each descendant */
    KEEPING_DO_FINISH = 8,     /* let go of undertaker and cgroup */
    KEEPING_DO_FORK_UNDERTAKER = 9,
    KEEPING_DO_LEAVE = 10, /* end with exit_code; name what is left */
    KEEPING_DO_CLOSE = 11, /* of `slot` the last descriptor that is kept */
};

struct keeping_action {
    enum keeping_action_type type;
    int32_t signal;
    uint32_t slot;
    int exit_code;
    const char *text; /* LEAVE: why, of the node; NULL: the agent said so */
};

enum { KEEPING_ACTIONS_MAX = 8 };

/* What the caller must do, in order. */
struct keeping_actions {
    struct keeping_action items[KEEPING_ACTIONS_MAX];
    size_t count;
};

/* How far the present agent has been told what there is. */
enum keeping_telling {
    KEEPING_TELLS_NOBODY = 0,
    KEEPING_TELLS_STATE = 1,
    KEEPING_TELLS_REPLAY = 2,
    KEEPING_TELLS_NEWS = 3,
};

/* Place it where memory costs nothing until it is touched; its fields are for
 * worker/keeping*.c alone. */
struct keeping {
    enum keeping_state state;
    uint64_t instance;

    uint32_t generation; /* of the last BEGIN, as the rest of this block */
    uint32_t attempt;
    uint32_t first_rank;
    uint32_t rank_count;
    uint32_t grace_ms;
    uint32_t orphan_ms;
    uint32_t tried; /* slots that are not EMPTY */
    uint32_t alive;
    uint32_t undertakers;
    int32_t stop_signal; /* 0: no stop is under way */
    bool is_suspended;   /* they were passed SIGTSTP, and no SIGCONT since */
    bool is_gone;        /* nothing of them is left, or it is listed */
    struct keeping_slot slots[GPUL_RANKS_PER_NODE_MAX];
    char unclean[GPUL_UNCLEAN_MAX][KEEPER_TEXT_BYTES];
    uint32_t unclean_count;

    int32_t agent_pid; /* 0: none */
    uint32_t agent;    /* number of the next one */
    uint64_t agent_since_ms;
    bool is_attached;
    uint32_t failures; /* agents in a row: neither attached nor lived long */
    uint32_t retries;  /* agents in a row that did not attach */

    enum keeping_telling telling;
    uint32_t cursor; /* REPLAY: the next slot; NEWS: where to look first */
    uint32_t owing;  /* slots' owes_started and owes_exit that are set */
    uint32_t told_unclean;
    bool replays_gone;
    bool owes_gone;
    uint64_t owed_signals; /* a bit each */
    bool owes_alive;       /* the agent has asked */

    bool is_done; /* LEAVING: no descendant was left, only the agent */
    int exit_code;
    const char *why;
    int32_t left_for; /* the signal for which the agent was told to leave */

    uint64_t fork_at_ms; /* UINT64_MAX: not now; as all below */
    uint64_t orphan_at_ms;
    uint64_t stop_at_ms;
    uint64_t sweep_at_ms;
    uint64_t leave_by_ms;
    uint64_t agent_end_by_ms;
};

/* `k` must be all zero. The first TICK starts the first agent. */
void keeping_init(struct keeping *k, uint64_t instance);

/* Take one event. No order of events and no agent can make it fail. */
void keeping_step(struct keeping *k, const struct keeping_event *event,
                  struct keeping_actions *actions);

/* When the next TICK is wanted; UINT64_MAX: none. */
uint64_t keeping_next_deadline_ms(const struct keeping *k);

/* Is a look for descendants wanted (a scan, so not more often than needed)?
 * Answered by NONE_LEFT if there is none. */
bool keeping_wants_look(const struct keeping *k);

/* While DO_LIST is carried out. */
void keeping_add_unclean(struct keeping *k, const char *text);

/* The next packet for the agent, until keeping_packet_sent() the same; false:
 * it has been told all. A RANK goes with its slot's kept descriptors. */
bool keeping_next_packet(const struct keeping *k, struct keeper_packet *packet);
void keeping_packet_sent(struct keeping *k);

/* The slot of a rank that lives; -1: none. */
int64_t keeping_find_slot(const struct keeping *k, int32_t pid);

#endif
