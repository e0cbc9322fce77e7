/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of doubles of agents, and what comes of their dials.
 */
#ifndef TESTS_LIB_FAKELINKS_H
#define TESTS_LIB_FAKELINKS_H

#include "tests/lib/cluster.h"

/* The node tells its candidates; what it has reached of the others'. */
void fake_links_listen(struct cluster *c, uint32_t index);
void fake_links_report(struct cluster *c, uint32_t index);

/* Candidates of a node. */
uint32_t fake_links_count(const struct fake_node *node);

/* Does every node of the job have one that all others reach, of one family? */
bool fake_links_are_good(const struct cluster *c);

/* Are the nodes on more than one host or in more than one namespace? */
bool fake_links_are_spread(const struct cluster *c);

#endif
