/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has told its facts in a check, and the exchanges that compare the clocks
 * of the nodes with the coordinator's. Pure.
 */
#ifndef COORDINATOR_SURVEYS_H
#define COORDINATOR_SURVEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* Exchanges with each node: the fastest of them tells most. */
enum { SURVEYS_PINGS = 8 };

/* One exchange, CLOCK_REALTIME in nanoseconds: sent by the coordinator,
 * received and sent back by the node, received by the coordinator. */
struct survey_exchange {
    uint64_t t0_ns, t1_ns, t2_ns, t3_ns;
};

struct survey_node {
    bool has_facts;
    struct survey_exchange exchanges[SURVEYS_PINGS];
    uint32_t exchange_count; /* that are over */
};

struct surveys {
    struct survey_node *nodes; /* by node rank */
    uint32_t count;
};

/* Errors: GPUL_ENOMEM, and it is empty. */
int surveys_init(struct surveys *s, uint32_t count);

/* An all-zero one may be released too. */
void surveys_release(struct surveys *s);

/* The next ping to this node; false: it has had them all. */
bool surveys_ping(struct surveys *s, uint32_t node_rank, uint64_t now_ns,
                  Gpul__ClockPing *out);

/* Its answer. False: it is not the one that is due. */
bool surveys_pong(struct surveys *s, uint32_t node_rank,
                  const Gpul__ClockPong *pong, uint64_t now_ns);

/* Has this node said all that it was asked for? */
bool surveys_is_whole(const struct surveys *s, uint32_t node_rank);

#endif
