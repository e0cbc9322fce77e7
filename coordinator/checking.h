/* SPDX-License-Identifier: Apache-2.0
 *
 * Mode CHECK, docs/check.md. A part of coordinator/core.h, which includes it.
 */
#ifndef COORDINATOR_CHECKING_H
#define COORDINATOR_CHECKING_H

#include "coordinator/checks.h"
#include "coordinator/findings.h"
#include "coordinator/rendezvous.h"
#include "coordinator/surveys.h"

struct checking {
    struct findings findings;
    struct surveys surveys;
    struct checks checks; /* empty but in SURVEY */
};

/* Everybody is ready: ask them for their facts. */
void checking_survey(struct rendezvous *r, const char *why);
void checking_surveyed(struct rendezvous *r, struct node *node,
                       const Gpul__Survey *survey);
void checking_pong(struct rendezvous *r, struct node *node,
                   const Gpul__ClockPong *pong);

/* Of the phase. */
uint32_t checking_bound_ms(const struct rendezvous *r);

/* Something was found out; and the front end is to hear of what is new. */
void checking_add(struct rendezvous *r, const struct finding *finding);
void checking_tell(struct rendezvous *r);

/* A phase failed, of which the others depend: a finding, and the end. */
void checking_failed(struct rendezvous *r, enum outcome_code code,
                     const struct node *node, const char *why);

/* Nodes do not reach each other, as `why` says. */
void checking_unlinked(struct rendezvous *r, const struct node *node,
                       const char *why);

/* Something the self-test has to say beside its result: "ID sentence", or
 * without an id: false, and it is none of a check's. */
bool checking_noticed(struct rendezvous *r, const char *text);

/* The self-test has its figures. Returns whether the user asked for more. */
struct verdict_world;
bool checking_tested(struct rendezvous *r, const struct verdict_world *world);

/* It was not run, or something was not, and why. */
void checking_untested(struct rendezvous *r, const char *why);

/* Nothing more is to be found out: end by what was. */
void checking_conclude(struct rendezvous *r);

/* It ends by a deadline, a loss or the user: tell what is known so far. */
void checking_interrupted(struct rendezvous *r);
void checking_release(struct rendezvous *r);

#endif
