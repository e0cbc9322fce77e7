/* SPDX-License-Identifier: Apache-2.0
 *
 * Who reaches whom by what, and the address that each node gets by it. Pure.
 *
 * Every node tells its candidates once (links_add), all of them are told to
 * all (links_encode), and each node reports once what it has not reached
 * (links_report). docs/links.md has the rules of the choice.
 */
#ifndef COORDINATOR_LINKS_H
#define COORDINATOR_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "coordinator/roster.h"
#include "coordinator/text.h"
#include "proto/message.h"

enum {
    /* What reports of nodes that have missed something may take together;
     * beyond that they are counted, and no more is known of them. */
    LINKS_KEPT_BYTES_MAX = 64 << 20,
    LINKS_PAIRS_SHOWN = 10,
    LINKS_NONE = UINT8_MAX,
};

/* A candidate of a node. There may be some hundred thousand. */
struct link_endpoint {
    char *address; /* owned */
    uint32_t mbits;
    uint16_t port;
    uint8_t name_at; /* of its interface: in the same block, so far behind */
    uint8_t kind_at;
    bool is_rdma;
    bool is_tunnel;
    bool is_ipv6;
    bool is_joined;        /* by it the node has joined the job */
    uint32_t missed;       /* nodes that have not reached it */
    uint32_t reached_from; /* nodes that its own node has reached from it */
};

struct link_failure {
    uint32_t node_rank;
    uint32_t answered_by;
    uint8_t endpoint;
    uint8_t kind; /* Gpul__LinkFailure__Kind */
};

struct link_node {
    struct link_endpoint *endpoints; /* owned */
    uint32_t count;
    uint32_t rejected_count;
    char **rejected; /* owned; lines for the user */
    /* Of its report. NULL: it reached all, or that is not kept. */
    uint8_t *missed;
    struct link_failure *failures;
    uint32_t failure_count;
    uint8_t chosen; /* LINKS_NONE: none yet */
    bool has_missed;
    bool is_involved; /* in a pair that the user is told of */
};

struct links {
    uint32_t node_count;
    struct link_node *nodes;
    uint32_t *firsts; /* node_count + 1: its first endpoint among all */
    size_t kept_bytes;
    struct gpul_buf frames; /* the LinkPeers pages, until somebody reports */
};

/* Returns 0 or GPUL_ENOMEM; `l` can be released either way. */
int links_init(struct links *l, uint32_t node_count);

/* An all-zero one may be released too. */
void links_release(struct links *l);

/* The candidates of one node, which has joined by the address `joined`, once
 * each. Returns 0 or GPUL_ENOMEM. */
int links_add(struct links *l, uint32_t node_rank, const char *joined,
              const Gpul__LinkListening *listening);

/* All have been added: write `frames`. Errors: as gpul_message_encode. */
int links_encode(struct links *l, uint32_t epoch, uint32_t generation,
                 uint32_t deadline_ms, struct gpul_error *err);

/* What one node has found, once each. Returns 0, GPUL_ENOMEM, or GPUL_EPROTO
 * if it speaks of endpoints that there are not. */
int links_report(struct links *l, uint32_t node_rank,
                 const Gpul__LinkReport *report);

/* All have reported. False: there is no address for every node. */
bool links_choose(struct links *l);

/* The endpoint that was chosen; NULL: none. */
const struct link_endpoint *links_chosen(const struct links *l,
                                         uint32_t node_rank);

/* The interface that it is on, and what kind that is. */
const char *link_name(const struct link_endpoint *e);
const char *link_kind(const struct link_endpoint *e);

/* Put the candidates that were not chosen before the lines of each node.
 * Returns 0 or GPUL_ENOMEM. */
int links_list_candidates(struct links *l);

/* Nothing was chosen: why, in one sentence. Marks the nodes that it names. */
void links_explain(struct links *l, struct text *out, const struct roster *r);

/* The pairs of these, one by one: `from` does not reach `to` by the address
 * that most others reach it by, as `out` says. Where neither reaches the other
 * that is said once. All zero at the beginning; false: there are no more. */
struct links_pair {
    uint32_t to;
    uint32_t from;
    uint32_t next; /* after `from` */
};
bool links_next_pair(const struct links *l, struct text *out,
                     struct links_pair *pair, const struct roster *r);

#endif
