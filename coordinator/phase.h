/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases of a job and which may follow which. Pure.
 *
 *   START -> GATHERING -> ASSIGNING -> LISTENING -> PROBING -> RUNNING
 *                          ^   |           ^                   ^  |  |
 *                          |   +-> FACTS --+-------------------+  |  |
 *                          |   |     |                         |  |  |
 *                          |   |     +-> CUDA -> UID -> INIT   |  |  |
 *                          |   |           -> COLL -> END -----+  |  |
 *                          |   +-> RUNNING, REPORTING             |  |
 *                          +------------ RESTARTING <-------------+  |
 *                                        ^ and from all between     |
 *                                          ASSIGNING and RUNNING    |
 *                                                                    v
 *   Behind ASSIGNING, in mode CHECK: SURVEY; behind that, where addresses are
 *   to be proved: LINKS -> DIALING. Mode CHECK goes to DRAINING where others
 *   go to RUNNING.
 *
 *   every phase from ASSIGNING on ---------------------------> DRAINING
 *   START, GATHERING ------------> DONE <-------------------------+
 *                                   +-> OVER
 */
#ifndef COORDINATOR_PHASE_H
#define COORDINATOR_PHASE_H

#include <stdbool.h>

enum phase {
    PHASE_START,      /* the front end has not said yet what the job is */
    PHASE_GATHERING,  /* waiting for every node's Hello */
    PHASE_ASSIGNING,  /* for every node's Ready */
    PHASE_SURVEY,     /* mode CHECK: for every node's facts */
    PHASE_LINKS,      /* for every node to listen on its addresses */
    PHASE_DIALING,    /* for every node to have dialled all others */
    PHASE_PAIRING,    /* mode CHECK: for the pair trials, see pairphase.c */
    PHASE_FACTS,      /* self-test on GPUs: for every scout's facts */
    PHASE_CUDA,       /* for a context on every device */
    PHASE_UID,        /* for every root's unique ID */
    PHASE_INIT,       /* for the communicator of every probe */
    PHASE_COLL,       /* for every sweep */
    PHASE_END,        /* for every result */
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

/* "probing"; "self-test phase init" for those of the self-test on GPUs. */
const char *phase_name(enum phase phase);

/* "init": the user's name of a phase of the self-test on GPUs. */
const char *phase_short_name(enum phase phase);

/* Is it one of the self-test on GPUs? */
bool phase_is_on_gpus(enum phase phase);

/* Is a generation being put together, ASSIGNING to the end of the self-test?
 * Nothing of the user's runs then. */
bool phase_is_forming(enum phase phase);

/* Does it wait for probes rather than for nodes? */
bool phase_waits_for_probes(enum phase phase);

bool phase_may_follow(enum phase from, enum phase to);

#endif
