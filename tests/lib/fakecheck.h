/* SPDX-License-Identifier: Apache-2.0
 *
 * What doubles of agents answer in a check.
 */
#ifndef TESTS_LIB_FAKECHECK_H
#define TESTS_LIB_FAKECHECK_H

#include "tests/lib/cluster.h"

/* CLOCK_REALTIME of the coordinator when virtual time is `now_ms`. */
uint64_t fake_real_ns(uint64_t now_ms);

/* The job of the cluster is a check. */
void fake_check_begin(struct cluster *c);

/* The node tells its facts; answers a ping. */
void fake_survey(struct cluster *c, uint32_t index);
void fake_pong(struct cluster *c, uint32_t index, const Gpul__ClockPing *ping);

#endif
