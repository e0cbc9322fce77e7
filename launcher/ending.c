/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ending.h"

#include "proto/limits.h"

enum {
    MARGIN_MS = 5000, /* for a coordinator that keeps its own bounds */
    LEAVE_MS = 5000,
    TOLD_MS = 3000,
    KILLED_MS = 5000,
};

void ending_init(struct ending *e, uint64_t now_ms, uint32_t timeout_ms,
                 uint32_t grace_ms)
{
    *e = (struct ending){.phase = ENDING_WORKING,
                         .deadline_ms = UINT64_MAX,
                         .grace_ms = grace_ms};
    if (timeout_ms > 0) {
        e->deadline_ms =
            now_ms + timeout_ms + grace_ms + GPUL_DRAIN_DEADLINE_MS + MARGIN_MS;
    }
}

static void enter(struct ending *e, enum ending_phase phase, uint64_t until_ms)
{
    e->phase = phase;
    e->deadline_ms = until_ms;
}

static unsigned kill_all(struct ending *e, uint64_t now_ms)
{
    enter(e, ENDING_KILLING, now_ms + KILLED_MS);
    return ENDING_KILL_ALL;
}

/* Time for the ranks' grace, their last output and a margin. */
static uint64_t stopped_by(const struct ending *e, uint64_t now_ms,
                           bool has_grace)
{
    return now_ms + (has_grace ? e->grace_ms : 0) + GPUL_DRAIN_DEADLINE_MS +
           MARGIN_MS;
}

/* The first signal stops the job in order, the second without grace, the
 * third at any price. */
static unsigned on_signal(struct ending *e, uint64_t now_ms)
{
    e->signal_count++;
    if (e->phase == ENDING_KILLING || e->phase == ENDING_GONE) {
        return 0;
    }
    if (e->signal_count >= 3) {
        return kill_all(e, now_ms);
    }
    if (e->phase == ENDING_ORPHANED) {
        return e->signal_count == 2 ? kill_all(e, now_ms) : 0;
    }
    if (e->phase == ENDING_WORKING) {
        enter(e, ENDING_STOPPING, stopped_by(e, now_ms, true));
        return ENDING_CANCEL;
    }
    if (e->phase == ENDING_STOPPING) {
        enter(e, ENDING_STOPPING, stopped_by(e, now_ms, false));
        return ENDING_CANCEL_NOW;
    }
    return 0;
}

static unsigned on_tick(struct ending *e, uint64_t now_ms)
{
    if (now_ms < e->deadline_ms) {
        return 0;
    }
    switch (e->phase) {
    case ENDING_LEAVING:
        enter(e, ENDING_TOLD, now_ms + TOLD_MS);
        return ENDING_TERM_WORKERS | ENDING_TERM_COORDINATOR;
    case ENDING_WORKING:
    case ENDING_STOPPING:
        return ENDING_LOSE_DESK | kill_all(e, now_ms);
    case ENDING_KILLING:
        enter(e, ENDING_GONE, UINT64_MAX);
        return 0;
    default:
        return kill_all(e, now_ms);
    }
}

static bool has_job(const struct ending *e)
{
    return e->phase == ENDING_WORKING || e->phase == ENDING_STOPPING;
}

unsigned ending_step(struct ending *e, enum ending_event event, uint64_t now_ms)
{
    switch (event) {
    case ENDING_SIGNAL:
        return on_signal(e, now_ms);
    case ENDING_JOB_END:
        if (!has_job(e)) {
            return 0;
        }
        enter(e, ENDING_LEAVING, now_ms + LEAVE_MS);
        return ENDING_TERM_ABSENT;
    case ENDING_DESK_LOST:
        if (!has_job(e)) {
            return 0;
        }
        enter(e, ENDING_ORPHANED, stopped_by(e, now_ms, true));
        return ENDING_TERM_WORKERS;
    case ENDING_WORKERS_GONE:
        /* Without workers a coordinator has little left to say. */
        if (has_job(e) && e->deadline_ms > now_ms + GPUL_LEASE_MS) {
            e->deadline_ms = now_ms + GPUL_LEASE_MS + MARGIN_MS;
        }
        return 0;
    case ENDING_ALL_GONE:
        enter(e, ENDING_GONE, UINT64_MAX);
        return 0;
    case ENDING_TICK:
        return on_tick(e, now_ms);
    }
    return 0;
}
