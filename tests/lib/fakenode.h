/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of an agent: the states of docs/protocol.md, in virtual time.
 */
#ifndef TESTS_LIB_FAKENODE_H
#define TESTS_LIB_FAKENODE_H

#include "tests/lib/cluster.h"

/* A frame as this node stamps it, and its way to the coordinator. */
Gpul__Frame fake_frame(const struct fake_node *node);
void fake_send(struct cluster *c, const struct fake_node *node,
               const Gpul__Frame *frame);

void fake_dial(struct cluster *c, uint32_t node);
void fake_message(struct cluster *c, uint32_t node, const Gpul__Frame *frame);
void fake_timer(struct cluster *c, uint32_t node, enum fake_timer timer,
                uint32_t generation);
void fake_closed(struct cluster *c, uint32_t node);
void fake_die(struct cluster *c, uint32_t node);

#endif
