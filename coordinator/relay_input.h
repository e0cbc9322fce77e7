/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input on its way to the ranks, and its credit. A part of
 * coordinator/core.h, which includes it.
 */
#ifndef COORDINATOR_RELAY_INPUT_H
#define COORDINATOR_RELAY_INPUT_H

#include "coordinator/rendezvous.h"
#include "coordinator/roster.h"

/* The ranks were launched: let the front end begin; after a restart, let them
 * have what came before. */
void relay_input_begin(struct rendezvous *r);
void relay_input(struct rendezvous *r, const Gpul__Input *input);
void relay_input_credit(struct rendezvous *r, struct node *node,
                        const Gpul__InputCredit *credit);

/* The ranks are stopped, and others begin with the first byte: these get
 * nothing more, since what comes meanwhile is not for them. */
void relay_input_end(struct rendezvous *r);

/* This node is gone, or nothing runs there any more. */
void relay_input_left(struct rendezvous *r, const struct node *node);

/* Has this node been sent input that it has not given credit for? */
bool relay_input_is_owed(const struct rendezvous *r, const struct node *node);

/* It owes none and is away; and it is back, and knows of its ranks. */
void relay_input_away(struct rendezvous *r, const struct node *node);
void relay_input_back(struct rendezvous *r, const struct node *node);

#endif
