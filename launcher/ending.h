/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job is brought to its end, whatever happens: signals, a coordinator
 * that is lost, processes that do not leave. Every wait has a bound. Pure.
 *
 *   WORKING --signal--> STOPPING --job end--> LEAVING --all gone--> GONE
 *      |                    |                    | 5 s
 *      |--- job end --------|------------------->|
 *      |                    |                    v
 *      |--- desk lost ---> ORPHANED --grace--> KILLING --5 s--> GONE
 *
 * LEAVING: the processes go by themselves, then are told to (SIGTERM), then
 * killed. ORPHANED: the workers have no coordinator; they are told to stop
 * their ranks.
 */
#ifndef LAUNCHER_ENDING_H
#define LAUNCHER_ENDING_H

#include <stdbool.h>
#include <stdint.h>

enum ending_phase {
    ENDING_WORKING = 0,
    ENDING_STOPPING,
    ENDING_LEAVING,
    ENDING_TOLD, /* LEAVING, after SIGTERM */
    ENDING_ORPHANED,
    ENDING_KILLING,
    ENDING_GONE,
};

enum ending_event {
    ENDING_TICK = 0,     /* time has passed */
    ENDING_SIGNAL,       /* the user, or the system, wants out */
    ENDING_JOB_END,      /* the coordinator told the outcome */
    ENDING_DESK_LOST,    /* the coordinator is gone or makes no sense */
    ENDING_WORKERS_GONE, /* every worker has ended, the coordinator has not */
    ENDING_ALL_GONE,     /* no child is left, and the outcome is known */
};

/* What to do now; several may be set. */
enum ending_action {
    ENDING_CANCEL = 1,           /* ask the coordinator to stop the job */
    ENDING_CANCEL_NOW = 2,       /* the same, without grace */
    ENDING_TERM_WORKERS = 4,     /* SIGTERM to every worker */
    ENDING_TERM_COORDINATOR = 8, /* and to the coordinator */
    ENDING_KILL_ALL = 16,        /* SIGKILL to every child */
    ENDING_LOSE_DESK = 32,       /* count the coordinator as lost */
    ENDING_TERM_ABSENT = 64,     /* SIGTERM to workers that never joined: the
                                    coordinator cannot tell them to leave */
};

struct ending {
    enum ending_phase phase;
    uint64_t deadline_ms; /* UINT64_MAX: none */
    uint32_t grace_ms;
    uint32_t signal_count;
};

/* `timeout_ms` is that of the job, 0 for none: the coordinator keeps it, and
 * this is the bound behind it. */
void ending_init(struct ending *e, uint64_t now_ms, uint32_t timeout_ms,
                 uint32_t grace_ms);

/* Take an event in; returns a mask of enum ending_action. */
unsigned ending_step(struct ending *e, enum ending_event event,
                     uint64_t now_ms);

#endif
