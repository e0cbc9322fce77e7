/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a node dials when, and what it reports of it. Pure.
 *
 * In round d node i dials node (i + d) mod N, so that nobody is dialled by all
 * at once: first every node's first endpoint, then the second ones, and at
 * last, once more, what failed of nodes that were not reached by another.
 *
 * As a rule the first endpoints are on one network, the second ones on
 * another. One from which nothing answers would take 3 s for each 32 nodes: so
 * if the first dials bring nothing, what becomes of all that are in flight is
 * waited for, and after LINKPLAN_SILENT_MAX in a row that nobody answered the
 * others of that number are put off, and dialled at last, unless the node was
 * reached by another endpoint meanwhile.
 */
#ifndef WORKER_LINKPLAN_H
#define WORKER_LINKPLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hostlist.h"
#include "proto/limits.h"
#include "proto/message.h"

enum {
    LINKPLAN_DIALS_MAX = 32, /* in flight */
    LINKPLAN_DIAL_MS = 3000,
    /* Where the node has been reached by another endpoint already. */
    LINKPLAN_SPARE_DIAL_MS = 1000,
    LINKPLAN_NO_SOURCE = UINT8_MAX,
    LINKPLAN_SILENT_MAX = LINKPLAN_DIALS_MAX,
};

/* One dial that is to be made, or has been. */
struct linkplan_dial {
    uint32_t node;
    uint32_t endpoint; /* among all */
    const char *address;
    uint16_t port;
    uint32_t bound_ms;
    bool is_repeated;
};

struct linkplan_endpoint {
    char *address; /* owned */
    uint16_t port;
    uint8_t kind;         /* Gpul__LinkFailure__Kind of its failure */
    uint32_t answered_by; /* node rank + 1 */
};

struct linkplan {
    uint32_t self;
    uint32_t node_count;
    uint32_t own_count; /* own candidates */

    struct linkplan_endpoint *endpoints; /* node by node */
    uint32_t endpoint_count;
    uint32_t endpoint_room;
    uint32_t *firsts; /* node_count + 1 */
    uint32_t nodes_here;
    uint32_t page_next;
    uint32_t page_count; /* 0 before the first page */
    uint32_t dial_ms;    /* of all, from the last page on */

    uint32_t pass; /* endpoints of this number are dialled */
    uint32_t round;
    uint32_t silent;     /* dials of this pass in a row that nobody answered */
    bool has_answer;     /* somebody has answered one of this pass */
    bool has_rest;       /* dials were put off, and are not begun with */
    uint32_t rest_pass;  /* pass and round of the dials that were put off */
    uint32_t rest_round; /* 0: not begun */
    uint32_t put_off[GPUL_LINKS_MAX]; /* by pass: its first round; 0: none */
    uint32_t *again;                  /* endpoints */
    uint32_t again_count;
    uint32_t again_next;
    uint32_t in_flight;
    uint8_t *reached_from; /* by node, bits: own candidates */
    bool *is_reached;      /* by node */
    uint8_t *missed;       /* bits: endpoints */

    Gpul__LinkFailure failures[GPUL_LINK_FAILURES_MAX];
    Gpul__LinkFailure *failure_list[GPUL_LINK_FAILURES_MAX];
    uint32_t nodes_from[GPUL_LINKS_MAX];
};

/* Node `self` of `node_count`, which listens on `own_count` addresses. Errors:
 * GPUL_ENOMEM; the plan can be released either way. */
int linkplan_init(struct linkplan *p, uint32_t self, uint32_t node_count,
                  uint32_t own_count, struct gpul_error *err);

/* An all-zero one may be released too. */
void linkplan_release(struct linkplan *p);

/* Take the next page. Errors: GPUL_EPROTO saying what does not fit,
 * GPUL_ENOMEM; the plan is then good for release only. */
int linkplan_add(struct linkplan *p, const Gpul__LinkPeers *page,
                 struct gpul_error *err);

/* All pages are here. */
bool linkplan_is_complete(const struct linkplan *p);

/* The next dial of a complete plan; it is in flight from now on. False: there
 * are enough, or no more. */
bool linkplan_next(struct linkplan *p, struct linkplan_dial *out);

/* It has reached the node, from own candidate `source` (LINKPLAN_NO_SOURCE:
 * from another address). */
void linkplan_reached(struct linkplan *p, const struct linkplan_dial *dial,
                      uint8_t source);

/* It has not; `answered_by`: the rank of who answered instead + 1, or 0. */
void linkplan_failed(struct linkplan *p, const struct linkplan_dial *dial,
                     Gpul__LinkFailure__Kind kind, uint32_t answered_by);

/* Nothing is in flight, or left to dial. */
bool linkplan_is_over(const struct linkplan *p);

/* The report of what came of it; it points into the plan. */
void linkplan_fill(Gpul__LinkReport *out, struct linkplan *p);

#endif
