/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has told its facts in a check, and how far the clocks of the nodes are
 * apart. Pure.
 */
#ifndef COORDINATOR_SURVEYS_H
#define COORDINATOR_SURVEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/clockskew.h"
#include "coordinator/findings.h"
#include "coordinator/roster.h"
#include "proto/message.h"

enum {
    /* Exchanges with each node, of which the fastest counts. */
    SURVEYS_PINGS = CLOCKSKEW_KEPT,
    /* Clocks that differ by more make logs of several nodes hard to read
     * together; what NTP keeps is a tenth of it. */
    SURVEYS_SKEW_MS_MAX = 100,
};

struct survey_node {
    bool has_facts;
    uint32_t pings;         /* that were answered */
    uint64_t sent_ns;       /* the one that was not */
    struct clockskew clock; /* CLOCK_REALTIME, against ours */
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

/* Add a finding for each clock that is away from the others (of three nodes or
 * more: from the middle one; else from the coordinator's), or one that all are
 * together. Of a node whose clock was not told nothing is known. Returns 0 or
 * GPUL_ENOMEM. */
int surveys_judge_clocks(const struct surveys *s, const struct roster *roster,
                         uint64_t now_ns, struct findings *out);

#endif
