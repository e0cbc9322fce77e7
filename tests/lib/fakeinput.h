/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input in a cluster: a front end that sends as much as it has credit
 * for, and nodes that take it after a while, and check every byte of it.
 */
#ifndef TESTS_LIB_FAKEINPUT_H
#define TESTS_LIB_FAKEINPUT_H

#include "tests/lib/cluster.h"

/* The front end may send more of cluster.input_bytes. */
void fake_input_granted(struct cluster *c, const Gpul__InputCredit *credit);

/* A node has got some; what it has got is taken now. */
void fake_input(struct cluster *c, uint32_t node, const Gpul__Input *input);
void fake_input_take(struct cluster *c, uint32_t node);

#endif
