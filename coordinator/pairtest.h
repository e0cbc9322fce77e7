/* SPDX-License-Identifier: Apache-2.0
 *
 * The pair trials of a check, as far as they are memory: who listens where,
 * which round is under way, and what each node has told of it. Pure.
 *
 * Happy path: pairtest_init, pairtest_listen for each node, then
 * pairtest_next, pairtest_tell for each of its nodes, pairtest_finish, and
 * again. A node tells of two ways at once; nothing is judged before both ends
 * of a pair have.
 */
#ifndef COORDINATOR_PAIRTEST_H
#define COORDINATOR_PAIRTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "coordinator/pairsearch.h"
#include "coordinator/trials.h"

enum { PAIRTEST_RESTS = UINT32_MAX };

enum pairtest_step {
    PAIRTEST_NONE = 0, /* all zero */
    PAIRTEST_OPENING,  /* every probe is to say where it listens */
    PAIRTEST_ROUND,    /* who is in a pair is to tell its result */
    PAIRTEST_CLOSING,  /* every probe is to end */
};

struct pairtest_node {
    uint16_t port;
    bool has_told;    /* its result of this round */
    bool dials_first; /* in this round */
    uint32_t partner; /* in this round, or PAIRTEST_RESTS */
    struct trial_side side;
};

struct pairtest {
    enum pairtest_step step;
    uint32_t node_count;
    uint32_t trial;   /* number of the round's trials; the same for all */
    uint32_t left;    /* nodes that have not told their result */
    double reference; /* see trial_figure; 0: not yet */
    struct pairsearch *search;
    struct pairsearch_round round; /* borrowed from the search */
    struct pairtest_node *nodes;
};

/* Errors: GPUL_ENOMEM, GPUL_ELIMIT for more nodes than a search takes. */
int pairtest_init(struct pairtest *t, uint32_t node_count,
                  struct gpul_error *err);

/* An all-zero one may be released too. */
void pairtest_release(struct pairtest *t);

/* Begin the next round; false: there is none. */
bool pairtest_next(struct pairtest *t);

/* Take the result of a node: returns 1 if it was the last of the round, 0 if
 * others are to come, or it does not belong to this round; GPUL_ENOMEM. */
int pairtest_tell(struct pairtest *t, uint32_t node_rank,
                  const Gpul__TrialResult *result);

/* All have told: give the figures to the search. */
int pairtest_finish(struct pairtest *t, struct gpul_error *err);

#endif
