/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases of a job and which may follow which. Pure.
 *
 *   START -> GATHERING -> ASSIGNING -> LISTENING -> PROBING -> RUNNING
 *                          ^     |                              |  |
 *                          |     +-> RUNNING, REPORTING         |  |
 *                          +------------ RESTARTING <-----------+  |
 *                                                                  v
 *   every phase from ASSIGNING on -------------------------> DRAINING
 *   START, GATHERING ------------> DONE <-----------------------+
 *                                   +-> OVER
 */
#ifndef COORDINATOR_PHASE_H
#define COORDINATOR_PHASE_H

#include <stdbool.h>

enum phase {
    PHASE_START,      /* the front end has not said yet what the job is */
    PHASE_GATHERING,  /* waiting for every node's Hello */
    PHASE_ASSIGNING,  /* for every node's Ready */
    PHASE_LISTENING,  /* for every probe's address */
    PHASE_PROBING,    /* for every probe's result */
    PHASE_REPORTING,  /* mode ENV: for the reports */
    PHASE_RUNNING,    /* for the ranks */
    PHASE_RESTARTING, /* for every node to be idle, then ASSIGNING again */
    PHASE_DRAINING,   /* for every node to be idle, then DONE */
    PHASE_DONE,       /* JobEnd was sent; waiting for the nodes to leave */
    PHASE_OVER,       /* nothing is left to do */
    PHASE_COUNT,
};

const char *phase_name(enum phase phase);

bool phase_may_follow(enum phase from, enum phase to);

#endif
